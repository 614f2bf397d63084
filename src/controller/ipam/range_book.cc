// SPDX-License-Identifier: Apache-2.0
#include "controller/ipam/range_book.h"

#include <array>

namespace berth::controller {
namespace {

using meta::IpAddress;
using meta::IpFamily;
using meta::IpPrefix;

// The other half of the block that is one bit larger.
IpPrefix BuddyOf(const IpPrefix& block) {
  std::array<uint8_t, 16> bytes = block.address().bytes();
  const auto bit = static_cast<size_t>(block.length() - 1);
  bytes[bit / 8] = static_cast<uint8_t>(bytes[bit / 8] ^ (0x80U >> (bit % 8)));
  if (block.family() == IpFamily::kV6) return {IpAddress::V6(bytes), block.length()};
  const uint32_t bits = uint32_t{bytes[0]} << 24U | uint32_t{bytes[1]} << 16U |
                        uint32_t{bytes[2]} << 8U | uint32_t{bytes[3]};
  return {IpAddress::V4(bits), block.length()};
}

IpPrefix BlockOf(const IpPrefix& part, int length) {
  return IpPrefix(part.address(), length).Masked();
}

// The lowest part of this length that suits.
std::optional<IpPrefix> FirstIn(const IpPrefix& block, int length, const RangeBook::Suits& suits) {
  constexpr int kLooks = 3;  // of three in a row one suits
  IpAddress address = block.address();
  if (!suits || length < address.bits()) return IpPrefix(address, length);
  for (int i = 0; i < kLooks && block.Contains(address); ++i) {
    if (suits(address)) return IpPrefix(address, length);
    address = address.Next();
  }
  return std::nullopt;
}

// Adds a block to blocks in order, and joins halves.
void Append(std::vector<IpPrefix>& blocks, IpPrefix block, int whole_length) {
  while (!blocks.empty() && block.length() > whole_length && blocks.back() == BuddyOf(block)) {
    block = BlockOf(blocks.back(), block.length() - 1);
    blocks.pop_back();
  }
  blocks.push_back(block);
}

}  // namespace

RangeBook::RangeBook(const IpPrefix& whole) : whole_(whole.Masked()) {
  if (!whole_.is_null()) AddFree(whole_);
}

void RangeBook::AddFree(const IpPrefix& block) { free_[block.length()].insert(block.address()); }

void RangeBook::DropFree(const IpPrefix& block) {
  const auto blocks = free_.find(block.length());
  blocks->second.erase(block.address());
  if (blocks->second.empty()) free_.erase(blocks);
}

std::optional<IpPrefix> RangeBook::BlockAround(const IpPrefix& part) const {
  if (!whole_.Contains(part)) return std::nullopt;
  // Few lengths are in use at a time.
  for (const auto& [length, blocks] : free_) {
    if (length > part.length()) break;
    const IpPrefix block = BlockOf(part, length);
    if (blocks.contains(block.address())) return block;
  }
  return std::nullopt;
}

void RangeBook::Cut(const IpPrefix& block, const IpPrefix& part) {
  DropFree(block);
  for (int length = block.length() + 1; length <= part.length(); ++length) {
    AddFree(BuddyOf(BlockOf(part, length)));
  }
  held_.insert(part);
}

RangeBook::Verdict RangeBook::Take(const IpPrefix& part) {
  const IpPrefix masked = part.Masked();
  if (masked.is_null() || !whole_.Contains(masked)) return Verdict::kOutside;
  const std::optional<IpPrefix> block = BlockAround(masked);
  if (!block) return Verdict::kHeld;
  Cut(*block, masked);
  return Verdict::kTaken;
}

std::optional<RangeBook::Place> RangeBook::FindAny(int length, const Suits& suits) const {
  if (whole_.is_null() || length > whole_.address().bits()) return std::nullopt;
  for (auto same = free_.upper_bound(length); same != free_.begin();) {
    --same;
    // Only blocks of one or two addresses may have none that suits.
    for (const IpAddress& first : same->second) {
      const IpPrefix block(first, same->first);
      if (const auto part = FirstIn(block, length, suits)) return Place{block, *part};
    }
  }
  return std::nullopt;
}

std::optional<int> RangeBook::SmallestFor(int length, const Suits& suits) const {
  const std::optional<Place> place = FindAny(length, suits);
  if (!place) return std::nullopt;
  return place->block.length();
}

std::optional<IpPrefix> RangeBook::TakeAny(int length, const Suits& suits) {
  const std::optional<Place> place = FindAny(length, suits);
  if (!place) return std::nullopt;
  Cut(place->block, place->part);
  return place->part;
}

bool RangeBook::Give(const IpPrefix& part) {
  IpPrefix block = part.Masked();
  if (held_.erase(block) == 0) return false;
  while (block.length() > whole_.length()) {
    const IpPrefix buddy = BuddyOf(block);
    const auto blocks = free_.find(block.length());
    if (blocks == free_.end() || !blocks->second.contains(buddy.address())) break;
    DropFree(buddy);
    block = BlockOf(block, block.length() - 1);
  }
  AddFree(block);
  return true;
}

std::optional<int> RangeBook::LargestFree() const {
  if (free_.empty()) return std::nullopt;
  return free_.begin()->first;
}

std::vector<IpPrefix> RangeBook::HeldMerged() const {
  std::vector<IpPrefix> merged;
  for (const IpPrefix& part : held_) Append(merged, part, whole_.length());
  return merged;
}

}  // namespace berth::controller
