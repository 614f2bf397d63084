// SPDX-License-Identifier: Apache-2.0
#include "controller/ipam/range_book.h"

#include <array>
#include <iterator>

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

std::optional<int> RangeBook::SmallestFor(int length) const {
  if (whole_.is_null() || length > whole_.address().bits()) return std::nullopt;
  const auto after = free_.upper_bound(length);
  if (after == free_.begin()) return std::nullopt;
  return std::prev(after)->first;
}

std::optional<IpPrefix> RangeBook::TakeAny(int length) {
  const std::optional<int> block_length = SmallestFor(length);
  if (!block_length) return std::nullopt;
  const IpPrefix block(*free_.at(*block_length).begin(), *block_length);
  const IpPrefix part(block.address(), length);
  Cut(block, part);
  return part;
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
