// SPDX-License-Identifier: Apache-2.0
#include "scheduler/core/internal/pool_table.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"

namespace berth::scheduler {
namespace {

// Amounts are kept far from overflow: sums of promises on one pool stay below 2^62 as long as an
// object asks for less than a pool may have.
constexpr int64_t kAmountMax = int64_t{1} << 53;  // 9 PB of memory; exact as a double
constexpr int64_t kShareScaleMax = int64_t{1} << 53;

int64_t Bounded(int64_t amount) { return std::clamp<int64_t>(amount, 0, kAmountMax); }

// A pool without a host is alone on one. The prefix keeps it apart from every real name.
std::string HostName(const PoolSpec& spec) {
  if (!spec.host.empty()) return spec.host;
  return "\n" + std::to_string(static_cast<int>(spec.kind)) + spec.name;
}

constexpr RoomLine kNothingKnown = {.server = {},
                                    .host = {kUnreported, kUnreported, kUnreported, kUnreported}};

bool IsUsable(const PoolState& state) {
  return state.is_ready && state.has_session && !state.is_cordoned && !state.is_deleting;
}

}  // namespace

PoolTable::PoolTable() : touch_log_(kTouchLog) {
  // The share first, then what every board needs: a host that announces strange resources cannot
  // take their place.
  for (const std::string_view name : {kShareResource,
                                      std::string_view("cpu"),
                                      std::string_view("memory"),
                                      std::string_view("storage")})
    names_.emplace_back(name);
}

// ---- Pools

std::optional<size_t> PoolTable::Find(PoolKind kind, std::string_view name) const {
  const auto& names = by_name_[static_cast<size_t>(kind)];
  const auto found = names.find(name);
  if (found == names.end()) return std::nullopt;
  return found->second;
}

void PoolTable::GrowTo(size_t slots) {
  specs_.resize(slots);
  hosts_.resize(slots);
  inverse_widths_.resize(slots);
  shares_.resize(slots);
  events_.resize(slots);
  scores_.resize(slots * lines_);
  room_.resize(slots * lines_, kNothingKnown);
  capacities_.resize(slots * lines_ * kLane);
  const size_t words = (slots + kWordBits - 1) / kWordBits;
  if (words <= words_) return;
  words_ = words;
  live_.Resize(words);
  fence_ready_.Resize(words);
  tainted_.Resize(words);
  has_report_.Resize(words);
  for (auto& kind : kinds_) kind.Resize(words);
  for (auto& kind : usable_) kind.Resize(words);
}

size_t PoolTable::Add(const PoolSpec& spec) {
  size_t pool = specs_.size();
  if (!unused_.empty()) {
    pool = unused_.back();
    unused_.pop_back();
  } else {
    GrowTo(pool + 1);
  }
  const auto kind = static_cast<size_t>(spec.kind);
  CHECK(by_name_[kind].emplace(spec.name, static_cast<uint32_t>(pool)).second) << spec.name;
  live_.Set(pool);
  kinds_[kind].Set(pool);
  ++counts_[kind];
  specs_[pool] = spec;
  Index(pool);
  SetCapacity(pool, spec);
  ApplyState(pool);
  Settle(pool);
  Touch(pool, kStructural);
  Note(pool, ToEvents(Event::kUsable));
  return pool;
}

void PoolTable::Remove(size_t pool) {
  const PoolSpec& spec = specs_[pool];
  const auto kind = static_cast<size_t>(spec.kind);
  Unindex(pool);
  by_name_[kind].erase(spec.name);
  --counts_[kind];
  live_.Reset(pool);
  kinds_[kind].Reset(pool);
  usable_[kind].Reset(pool);
  fence_ready_.Reset(pool);
  has_report_.Reset(pool);
  shares_[pool].reset();
  inverse_widths_[pool] = 0;
  for (size_t line = pool * lines_; line < (pool + 1) * lines_; ++line) {
    scores_[line] = {};
    room_[line] = kNothingKnown;
  }
  std::fill_n(&capacities_[pool * lines_ * kLane], lines_ * kLane, 0);
  specs_[pool] = {};
  ApplyTaints(pool);
  // Of what it was itself nothing helps anybody, but others may be glad that its objects went.
  events_[pool] &= ToEvents(Event::kCompany);
  Note(pool, ToEvents(Event::kLost));
  unused_.push_back(static_cast<uint32_t>(pool));
  Touch(pool, kStructural);
}

Events PoolTable::Replace(size_t pool, const PoolSpec& spec) {
  const PoolSpec& old = specs_[pool];
  Events events = 0;
  if (old.taints != spec.taints) events |= ToEvents(Event::kTaints);
  if (old.labels != spec.labels || old.host != spec.host || old.reach != spec.reach)
    events |= ToEvents(Event::kLabels);
  if (old.classes != spec.classes || old.class_counts != spec.class_counts)
    events |= ToEvents(Event::kClasses);
  const bool has_other_room =
      old.capacity != spec.capacity || old.class_counts != spec.class_counts;
  Unindex(pool);
  const PoolState before = old.state;
  specs_[pool] = spec;
  specs_[pool].state = before;
  Index(pool);
  if (has_other_room) SetCapacity(pool, spec);
  Touch(pool, kStructural);
  return events | SetState(pool, spec.state);
}

Events PoolTable::SetState(size_t pool, const PoolState& state) {
  const PoolState old = specs_[pool].state;
  if (old == state) return 0;
  specs_[pool].state = state;
  ApplyState(pool);
  Touch(pool, kStructural);
  Events events = 0;
  if (!IsUsable(old) && IsUsable(state)) events |= ToEvents(Event::kUsable);
  if (IsUsable(old) && !IsUsable(state)) events |= ToEvents(Event::kLost);
  if (!old.is_fence_ready && state.is_fence_ready) events |= ToEvents(Event::kFence);
  return events;
}

void PoolTable::ApplyState(size_t pool) {
  const PoolSpec& spec = specs_[pool];
  usable_[static_cast<size_t>(spec.kind)].Assign(pool, IsUsable(spec.state));
  fence_ready_.Assign(pool, spec.state.is_fence_ready);
}

void PoolTable::ApplyTaints(size_t pool) {
  const bool is_tainted = std::ranges::any_of(specs_[pool].taints, [](const Taint& taint) {
    return taint.effect != TaintEffect::kPreferNoSchedule;
  });
  tainted_count_ += is_tainted;
  tainted_count_ -= tainted_.Test(pool);
  tainted_.Assign(pool, is_tainted);
}

// ---- Classes, labels, hosts

uint32_t PoolTable::ClassId(const std::string& name) {
  if (name.empty()) return 0;
  const auto [entry, is_new] =
      class_ids_.emplace(name, static_cast<uint32_t>(class_ids_.size() + 1));
  if (is_new) offers_.emplace_back();
  return entry->second;
}

const std::map<std::string, PoolSet>* PoolTable::LabelValues(const std::string& key) const {
  const auto found = labels_.find(key);
  return found == labels_.end() ? nullptr : &found->second;
}

uint32_t PoolTable::HostNumber(const PoolSpec& spec) {
  const std::string name = HostName(spec);
  const auto found = host_ids_.find(name);
  if (found != host_ids_.end()) return found->second;
  auto number = static_cast<uint32_t>(host_members_.size());
  if (!unused_hosts_.empty()) {
    number = unused_hosts_.back();
    unused_hosts_.pop_back();
  } else {
    host_members_.emplace_back();
  }
  host_ids_.emplace(name, number);
  return number;
}

void PoolTable::Index(size_t pool) {
  const PoolSpec& spec = specs_[pool];
  ApplyTaints(pool);
  for (const auto& [key, value] : spec.labels) labels_[key][value].Insert(pool);
  hosts_[pool] = HostNumber(spec);
  host_members_[hosts_[pool]].push_back(static_cast<uint32_t>(pool));
  if (!spec.class_counts.empty()) {
    for (const auto& [name, count] : spec.class_counts)
      if (count > 0) offers_[ClassId(name)].Insert(pool);
  } else {
    for (const auto& name : spec.classes)
      if (!name.empty()) offers_[ClassId(name)].Insert(pool);
  }
}

void PoolTable::Unindex(size_t pool) {
  const PoolSpec& spec = specs_[pool];
  for (const auto& [key, value] : spec.labels) {
    auto& values = labels_[key];
    values[value].Erase(pool);
    if (values[value].empty()) values.erase(value);
    if (values.empty()) labels_.erase(key);
  }
  auto& members = host_members_[hosts_[pool]];
  std::erase(members, static_cast<uint32_t>(pool));
  if (members.empty()) {
    host_ids_.erase(HostName(spec));
    unused_hosts_.push_back(hosts_[pool]);
  }
  for (const auto& [name, count] : spec.class_counts) offers_[ClassId(name)].Erase(pool);
  for (const auto& name : spec.classes) offers_[ClassId(name)].Erase(pool);
}

// ---- Dimensions and capacity

std::optional<size_t> PoolTable::DimensionOf(std::string_view resource) const {
  const auto found = std::ranges::find(names_, resource);
  if (found == names_.end()) return std::nullopt;
  return static_cast<size_t>(found - names_.begin());
}

size_t PoolTable::Dimension(const std::string& name) {
  if (const auto known = DimensionOf(name)) return *known;
  if (names_.size() == kDimensionsMax) return kDimensionsMax;
  names_.push_back(name);
  if (names_.size() > lines_ * kLane) Widen(lines_ + 1);
  return names_.size() - 1;
}

void PoolTable::Widen(size_t lines) {
  LargeVector<ScoreLine> scores(specs_.size() * lines);
  LargeVector<RoomLine> room(specs_.size() * lines, kNothingKnown);
  LargeVector<int64_t> capacities(specs_.size() * lines * kLane);
  for (size_t pool = 0; pool < specs_.size(); ++pool) {
    std::copy_n(&scores_[pool * lines_], lines_, &scores[pool * lines]);
    std::copy_n(&room_[pool * lines_], lines_, &room[pool * lines]);
    std::copy_n(
        &capacities_[pool * lines_ * kLane], lines_ * kLane, &capacities[pool * lines * kLane]);
  }
  scores_ = std::move(scores);
  room_ = std::move(room);
  capacities_ = std::move(capacities);
  lines_ = lines;
}

void PoolTable::SetCapacity(size_t pool, const PoolSpec& spec) {
  // Numbers first: naming a dimension may move the columns.
  std::vector<std::pair<size_t, int64_t>> amounts;
  shares_[pool].reset();
  if (spec.class_counts.empty()) {
    for (const auto& [name, amount] : spec.capacity)
      if (name != kShareResource) amounts.emplace_back(Dimension(name), Bounded(amount));
  } else {
    amounts.emplace_back(kShareDimension, SetCounts(pool, spec));
    host(pool, kShareDimension) = kUnreported;
  }
  int64_t* capacities = &capacities_[pool * lines_ * kLane];
  for (size_t d = 0; d < lines_ * kLane; ++d) {
    server(pool, d) -= capacities[d];
    capacities[d] = 0;
  }
  for (size_t line = 0; line < lines_; ++line) scores_[pool * lines_ + line].scale = Lane{};
  float width = 0;
  for (const auto& [dimension, amount] : amounts) {
    if (dimension >= kDimensionsMax || amount == 0) continue;
    capacities[dimension] = amount;
    server(pool, dimension) += amount;
    scores_[pool * lines_ + dimension / kLane].scale[dimension % kLane] =
        1 / static_cast<float>(amount);
    width += 1;
  }
  inverse_widths_[pool] = spec.class_counts.empty() ? 1 / std::max(1.0F, width) : -1;
}

// One machine of class c uses 1/count of the pool. With the least common multiple of all counts as
// the whole, each of them is an exact number of parts. Should that number grow out of bounds, parts
// are rounded up: a machine less may fit, never one too many.
int64_t PoolTable::SetCounts(size_t pool, const PoolSpec& spec) {
  int64_t scale = 1;
  for (const auto& [name, count] : spec.class_counts) {
    if (count <= 0) continue;
    const int64_t factor = count / std::gcd(scale, count);
    if (factor > kShareScaleMax / scale) {
      scale = kShareScaleMax;
      break;
    }
    scale *= factor;
  }
  auto shares = std::make_unique<Shares>();
  for (const auto& [name, count] : spec.class_counts) {
    if (count <= 0) continue;
    const int64_t whole = scale / count;
    shares->by_class[ClassId(name)] =
        std::max<int64_t>(1, whole * count == scale ? whole : whole + 1);
  }
  shares_[pool] = std::move(shares);
  return scale;
}

// Rounded down: a part that is not whole is no room for anything.
int64_t PoolTable::PartsOf(int64_t scale, int64_t reported) {
  const __int128 parts = static_cast<__int128>(reported) * scale;
  const bool rounds_up = parts < 0 && parts % kReportedWhole != 0;
  return static_cast<int64_t>(parts / kReportedWhole) - (rounds_up ? 1 : 0);
}

int64_t PoolTable::ShareOf(size_t pool, uint32_t class_id) const {
  const auto& by_class = shares_[pool]->by_class;
  const auto found = by_class.find(class_id);
  return found == by_class.end() ? capacity(pool, kShareDimension) : found->second;
}

// ---- Room

void PoolTable::Charge(const CompiledShape& shape, size_t pool, int64_t sign, bool is_unseen) {
  ForEachDemand(shape, pool, [&](size_t dimension, int64_t amount) {
    server(pool, dimension) -= sign * amount;
    if (is_unseen) host(pool, dimension) -= sign * amount;
  });
}

void PoolTable::CountByHost(const CompiledShape& shape, size_t pool, int64_t sign) {
  ForEachDemand(shape, pool, [&](size_t dimension, int64_t amount) {
    host(pool, dimension) += sign * amount;
  });
}

void PoolTable::SetReport(size_t pool, std::span<const int64_t> amounts) {
  for (size_t d = 0; d < lines_ * kLane; ++d) {
    const int64_t amount = d < amounts.size() ? amounts[d] : INT64_MAX;
    host(pool, d) = amount == INT64_MAX ? kUnreported : std::clamp(amount, -kAmountMax, kAmountMax);
  }
  int64_t& share = host(pool, kShareDimension);
  if (share != kUnreported) {
    share = is_counted(pool) ? PartsOf(capacity(pool, kShareDimension), share) : kUnreported;
  }
  has_report_.Assign(pool, !amounts.empty());
}

void PoolTable::Settle(size_t pool) {
  bool grew = false;
  for (size_t line = pool * lines_; line < (pool + 1) * lines_; ++line) {
    ScoreLine& score = scores_[line];
    const RoomLine& room = room_[line];
    Lane free{};
    for (size_t i = 0; i < kLane; ++i) {
      const int64_t effective = std::min(room.server[i], room.host[i]);
      grew |= effective > score.free[i];
      score.free[i] = effective;
      free[i] = static_cast<float>(effective);
    }
    score.fraction = free * score.scale;
  }
  if (grew) Note(pool, ToEvents(Event::kRoom));
  Touch(pool, 0);
}

// ---- What changed

void PoolTable::Touch(size_t pool, uint32_t flags) {
  // Nobody has read the last entry yet: it may stand for this one too.
  if (touches_ > read_) {
    uint32_t& last = touch_log_[(touches_ - 1) % kTouchLog];
    if ((last & ~kStructural) == pool) {
      last |= flags;
      return;
    }
  }
  touch_log_[touches_ % kTouchLog] = static_cast<uint32_t>(pool) | flags;
  ++touches_;
}

void PoolTable::Note(size_t pool, Events events) {
  if (events == 0) return;
  if (events_[pool] == 0) changed_.push_back(static_cast<uint32_t>(pool));
  events_[pool] |= events;
}

std::vector<Change> PoolTable::TakeChanges() {
  std::ranges::sort(changed_);
  std::vector<Change> changes;
  for (const uint32_t pool : changed_) {
    // One that was removed may stand here twice.
    if (events_[pool] == 0) continue;
    changes.push_back({.pool = PoolIndex{pool}, .events = events_[pool]});
    events_[pool] = 0;
  }
  changed_.clear();
  return changes;
}

}  // namespace berth::scheduler
