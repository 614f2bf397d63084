// SPDX-License-Identifier: Apache-2.0
// A RangeBook knows which parts of one range of IP addresses are held. Free parts are kept as the
// largest blocks that they make, so that a request takes the smallest block that is large enough
// and what is given back grows together again. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "meta/ip.h"

namespace berth::controller {

class RangeBook {
 public:
  enum class Verdict : uint8_t {
    kTaken,
    kOutside,  // not a part of the whole
    kHeld,     // some of it is held
  };

  // Whether a single address suits who asks; empty: each does. REQUIRES: of three in a row one
  // does.
  using Suits = std::function<bool(const meta::IpAddress&)>;

  // Bits beyond the length of `whole` do not matter, here and in all that follows.
  explicit RangeBook(const meta::IpPrefix& whole);

  const meta::IpPrefix& whole() const { return whole_; }
  // Exactly this part.
  Verdict Take(const meta::IpPrefix& part);
  // Any part of this length, and if that is an address one that suits; nullopt: none is free.
  std::optional<meta::IpPrefix> TakeAny(int length, const Suits& suits = {});
  // Gives back what was taken. False: it was not.
  bool Give(const meta::IpPrefix& part);

  bool IsFree(const meta::IpPrefix& part) const { return BlockAround(part).has_value(); }
  // Length of the smallest free block in which TakeAny() finds something, which is how much is
  // broken up for it; nullopt: none has it.
  std::optional<int> SmallestFor(int length, const Suits& suits = {}) const;
  // Length of the largest free block; nullopt: all is held.
  std::optional<int> LargestFree() const;
  size_t held() const { return held_.size(); }
  // What is held, in order, as few ranges as there can be.
  std::vector<meta::IpPrefix> HeldMerged() const;

 private:
  struct Place {
    meta::IpPrefix block;
    meta::IpPrefix part;
  };
  // The lowest part of the smallest free block that has one.
  std::optional<Place> FindAny(int length, const Suits& suits) const;
  // The free block that the part lies in.
  std::optional<meta::IpPrefix> BlockAround(const meta::IpPrefix& part) const;
  // Takes the part out of the free block: what is left of it stays free.
  void Cut(const meta::IpPrefix& block, const meta::IpPrefix& part);
  void AddFree(const meta::IpPrefix& block);
  void DropFree(const meta::IpPrefix& block);

  meta::IpPrefix whole_;
  std::map<int, std::set<meta::IpAddress>> free_;  // by length; no empty sets
  std::set<meta::IpPrefix> held_;
};

}  // namespace berth::controller
