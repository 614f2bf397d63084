// SPDX-License-Identifier: Apache-2.0
// The pools in columns: what they have, what is promised, who is usable, who has which label.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/large_memory.h"
#include "scheduler/core/answers.h"
#include "scheduler/core/internal/bitmap.h"
#include "scheduler/core/internal/shape.h"
#include "scheduler/core/pool.h"

namespace berth::scheduler {

// Dimensions come in fours: what one looks at together is one cache line.
inline constexpr size_t kLane = 4;
using Lane = float __attribute__((vector_size(kLane * sizeof(float))));
inline Lane Min(Lane a, Lane b) { return a < b ? a : b; }
inline Lane Max(Lane a, Lane b) { return a > b ? a : b; }

// What scoring reads of one pool in four dimensions.
struct alignas(64) ScoreLine {
  std::array<int64_t, kLane> free{};  // effective: the smaller of the two below
  Lane fraction{};                    // free / capacity
  Lane scale{};                       // 1 / capacity; 0 if the pool has nothing of it
};
// What accounting changes.
struct alignas(64) RoomLine {
  std::array<int64_t, kLane> server{};  // capacity - promised
  std::array<int64_t, kLane> host{};    // reported - what the report does not count yet
};

// Dimension 0 is the share of a pool that only knows class counts: its capacity is the least common
// multiple of the counts, so that every class is a whole number of parts.
inline constexpr size_t kShareDimension = 0;

// No report, in one dimension: more than anything, also after promises were taken from it.
inline constexpr int64_t kUnreported = int64_t{1} << 62;

class PoolTable {
 public:
  PoolTable();

  // ---- Pools
  size_t slots() const { return specs_.size(); }  // indexes below may be unused
  size_t words() const { return words_; }
  bool IsLive(size_t pool) const { return pool < specs_.size() && live_.Test(pool); }
  const PoolSpec& spec(size_t pool) const { return specs_[pool]; }
  size_t count(PoolKind kind) const { return counts_[static_cast<size_t>(kind)]; }
  std::optional<size_t> Find(PoolKind kind, std::string_view name) const;

  // A free slot for this kind and name. REQUIRES: Find fails.
  size_t Add(const PoolSpec& spec);
  void Remove(size_t pool);
  // Replaces everything but what is promised and reported; the caller recomputes that if the
  // capacity's form changed. Returns what may be better for somebody.
  Events Replace(size_t pool, const PoolSpec& spec);
  Events SetState(size_t pool, const PoolState& state);

  const Bitmap& of_kind(PoolKind kind) const { return kinds_[static_cast<size_t>(kind)]; }
  const Bitmap& usable(PoolKind kind) const { return usable_[static_cast<size_t>(kind)]; }
  const Bitmap& fence_ready() const { return fence_ready_; }
  // Pools that keep off whoever does not tolerate some taint of theirs, and how many they are.
  const Bitmap& tainted() const { return tainted_; }
  size_t tainted_count() const { return tainted_count_; }

  // ---- Classes and labels
  uint32_t ClassId(const std::string& name);  // 0 for the empty name
  bool Offers(size_t pool, uint32_t class_id) const {
    return class_id == 0 ? !is_counted(pool) : offers_[class_id].Contains(pool);
  }
  const PoolSet& offers(uint32_t class_id) const { return offers_[class_id]; }
  // All pools with this label key, by value; nullptr if there is none.
  const std::map<std::string, PoolSet>* LabelValues(const std::string& key) const;
  // Pools of one host share a number.
  uint32_t host_of(size_t pool) const { return hosts_[pool]; }
  const std::vector<uint32_t>& pools_of_host(uint32_t host) const { return host_members_[host]; }

  // ---- Dimensions
  size_t dimensions() const { return names_.size(); }
  // Changes whenever a resource becomes known; starts at 1.
  uint64_t dimensions_version() const { return names_.size(); }
  const std::string& dimension_name(size_t dimension) const { return names_[dimension]; }
  std::optional<size_t> DimensionOf(std::string_view resource) const;

  // ---- Room
  // The pool's lines() score lines.
  size_t lines() const { return lines_; }
  const ScoreLine* score(size_t pool) const { return &scores_[pool * lines_]; }
  int64_t free(size_t pool, size_t dimension) const {
    return scores_[pool * lines_ + dimension / kLane].free[dimension % kLane];
  }
  bool is_counted(size_t pool) const { return inverse_widths_[pool] < 0; }
  // 1 / the number of dimensions that the pool has anything of; negative for pools by counts.
  float inverse_width(size_t pool) const { return inverse_widths_[pool]; }
  // Parts of the pool that one machine of the class uses; all of it if the class is not offered.
  int64_t ShareOf(size_t pool, uint32_t class_id) const;
  int64_t capacity(size_t pool, size_t dimension) const {
    return capacities_[pool * lines_ * kLane + dimension];
  }
  int64_t promised(size_t pool, size_t dimension) const {
    return capacity(pool, dimension) - unpromised(pool, dimension);
  }
  // What the server alone would believe to be free.
  int64_t unpromised(size_t pool, size_t dimension) const {
    return room_[pool * lines_ + dimension / kLane].server[dimension % kLane];
  }

  // The pool's room will be asked for soon: memory may be fetched meanwhile.
  void Expect(size_t pool) const {
    __builtin_prefetch(&scores_[pool * lines_]);
    __builtin_prefetch(&room_[pool * lines_]);
    __builtin_prefetch(&inverse_widths_[pool]);
  }
  // What an object of this shape uses on this pool, as fn(dimension, amount).
  template <class Fn>
  void ForEachDemand(const CompiledShape& shape, size_t pool, Fn fn) const {
    if (is_counted(pool)) {
      fn(kShareDimension, ShareOf(pool, shape.class_id));
    } else {
      for (const Demand& demand : shape.demands) fn(demand.dimension, demand.amount);
    }
  }
  // Whether an object of this shape fits into the effective free room.
  bool HasRoom(const CompiledShape& shape, size_t pool) const {
    if (is_counted(pool)) [[unlikely]]
      return free(pool, kShareDimension) >= ShareOf(pool, shape.class_id);
    for (const Demand& demand : shape.demands)
      if (free(pool, demand.dimension) < demand.amount) return false;
    return shape.unknown.empty();
  }

  // An object comes (sign 1) or goes (-1). `is_unseen`: the host's report does not count it yet.
  void Charge(const CompiledShape& shape, size_t pool, int64_t sign, bool is_unseen);
  // The host's report counts an object (sign 1), or does not (-1).
  void CountByHost(const CompiledShape& shape, size_t pool, int64_t sign);
  // A report that counts everything; empty: none. INT64_MAX: nothing said of that dimension. Of a
  // pool by counts only its share counts, in parts of kReportedWhole, until its counts change.
  void SetReport(size_t pool, std::span<const int64_t> amounts);
  bool has_report(size_t pool) const { return has_report_.Test(pool); }
  // Recomputes the effective room after any of the above.
  void Settle(size_t pool);

  // ---- What changed
  // A touch names a pool whose room changed; with kStructural also its state, classes or form.
  static constexpr uint32_t kStructural = uint32_t{1} << 31;
  static constexpr size_t kTouchLog = 1 << 14;
  uint64_t touches() const { return touches_; }
  // One of the last kTouchLog touches.
  uint32_t touched(uint64_t touch) const { return touch_log_[touch % kTouchLog]; }
  // Whoever reads the log says how far.
  void NoteRead(uint64_t touch) const { read_ = std::max(read_, touch); }

  void Note(size_t pool, Events events);
  std::vector<Change> TakeChanges();

 private:
  struct Shares {
    std::map<uint32_t, int64_t> by_class;
  };

  void GrowTo(size_t slots);
  void Touch(size_t pool, uint32_t flags);
  size_t Dimension(const std::string& name);  // kDimensionsMax: no number left
  void Widen(size_t lines);
  int64_t& server(size_t pool, size_t dimension) {
    return room_[pool * lines_ + dimension / kLane].server[dimension % kLane];
  }
  int64_t& host(size_t pool, size_t dimension) {
    return room_[pool * lines_ + dimension / kLane].host[dimension % kLane];
  }
  void SetCapacity(size_t pool, const PoolSpec& spec);
  // Of a pool whose whole has `scale` parts: how many a share in parts of kReportedWhole is.
  static int64_t PartsOf(int64_t scale, int64_t reported);
  int64_t SetCounts(size_t pool, const PoolSpec& spec);  // the whole, in parts
  void Index(size_t pool);
  void Unindex(size_t pool);
  uint32_t HostNumber(const PoolSpec& spec);
  void ApplyState(size_t pool);
  void ApplyTaints(size_t pool);

  std::vector<PoolSpec> specs_;
  std::vector<uint32_t> unused_;
  size_t words_ = 0;
  Bitmap live_;
  std::array<Bitmap, kPoolKinds> kinds_;
  std::array<Bitmap, kPoolKinds> usable_;
  Bitmap fence_ready_;
  Bitmap tainted_;
  size_t tainted_count_ = 0;
  Bitmap has_report_;
  std::array<size_t, kPoolKinds> counts_{};
  std::array<std::map<std::string, uint32_t, std::less<>>, kPoolKinds> by_name_;

  std::map<std::string, std::map<std::string, PoolSet>> labels_;
  std::map<std::string, uint32_t> class_ids_;
  std::vector<PoolSet> offers_{1};  // by class id; 0 is nobody's
  std::map<std::string, uint32_t> host_ids_;
  std::vector<std::vector<uint32_t>> host_members_;
  std::vector<uint32_t> unused_hosts_;
  std::vector<uint32_t> hosts_;

  std::vector<std::string> names_;
  size_t lines_ = 1;  // per pool
  LargeVector<ScoreLine> scores_;
  LargeVector<RoomLine> room_;
  LargeVector<int64_t> capacities_;
  std::vector<float> inverse_widths_;
  std::vector<std::unique_ptr<Shares>> shares_;

  std::vector<uint32_t> touch_log_;
  uint64_t touches_ = 0;
  mutable uint64_t read_ = 0;
  std::vector<Events> events_;
  std::vector<uint32_t> changed_;
};

}  // namespace berth::scheduler
