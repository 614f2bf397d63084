// SPDX-License-Identifier: Apache-2.0
// Pools and objects: everything that changes the board.
#include "scheduler/core/board.h"

#include <algorithm>
#include <array>

#include "base/check.h"
#include "scheduler/core/internal/state.h"

namespace berth::scheduler {
namespace {

void Append(std::string& text, std::string_view part) {
  text += std::to_string(part.size());
  text += ':';
  text += part;
}
void Append(std::string& text, int64_t number) {
  text += std::to_string(number);
  text += ',';
}
void Append(std::string& text, const Labels& labels) {
  Append(text, static_cast<int64_t>(labels.size()));
  for (const auto& [key, value] : labels) {
    Append(text, key);
    Append(text, value);
  }
}
void Append(std::string& text, const Selector& selector) {
  Append(text, static_cast<int64_t>(selector.terms.size()));
  for (const auto& term : selector.terms) {
    Append(text, term.key);
    Append(text, static_cast<int64_t>(term.op));
    Append(text, static_cast<int64_t>(term.values.size()));
    for (const auto& value : term.values) Append(text, value);
  }
}
void Append(std::string& text, const Company& company) {
  Append(text, company.selector);
  Append(text, static_cast<int64_t>(company.namespaces.size()));
  for (const auto& name : company.namespaces) Append(text, name);
  Append(text, company.topology_key);
}
void Append(std::string& text, const Toleration& toleration) {
  Append(text, toleration.key);
  Append(text, static_cast<int64_t>(toleration.op));
  Append(text, toleration.value);
  Append(text, toleration.effect ? static_cast<int64_t>(*toleration.effect) : -1);
}

// The same text for equal requirements and only for those: every part carries its length.
std::string KeyOf(const Requirements& r) {
  std::string text;
  text.reserve(256);
  Append(text, static_cast<int64_t>(r.kind));
  Append(text, r.class_name);
  Append(text, static_cast<int64_t>(r.resources.size()));
  for (const auto& [name, amount] : r.resources) {
    Append(text, name);
    Append(text, amount);
  }
  Append(text, r.pools);
  Append(text, static_cast<int64_t>(r.tolerations.size()));
  for (const auto& toleration : r.tolerations) Append(text, toleration);
  Append(text, static_cast<int64_t>(r.policy));
  Append(text, r.needs_fence ? 1 : 0);
  Append(text, r.namespace_name);
  Append(text, r.labels);
  Append(text, static_cast<int64_t>(r.affinity.size()));
  for (const auto& company : r.affinity) Append(text, company);
  Append(text, static_cast<int64_t>(r.anti_affinity.size()));
  for (const auto& company : r.anti_affinity) Append(text, company);
  Append(text, static_cast<int64_t>(r.spread.size()));
  for (const auto& rule : r.spread) {
    Append(text, rule.company);
    Append(text, rule.max_skew);
    Append(text, static_cast<int64_t>(rule.otherwise));
  }
  Append(text, static_cast<int64_t>(r.preferred_company.size()));
  for (const auto& preferred : r.preferred_company) {
    Append(text, preferred.company);
    Append(text, preferred.weight);
  }
  for (const auto& preferred : r.preferred_pools) {
    Append(text, preferred.selector);
    Append(text, preferred.weight);
  }
  return text;
}

}  // namespace

Board::Board(BoardOptions options) : state_(std::make_unique<BoardState>(std::move(options))) {}
Board::~Board() = default;

BoardState::BoardState(BoardOptions given) : options(std::move(given)) {}

BoardState::~BoardState() {
  // A shape that keeps itself alive ends with its last object, or here.
  std::vector<Shape> kept;
  objects.ForEach([&](Placed& object) {
    if (object.shape->kept != nullptr) kept.push_back(std::move(object.shape->kept));
  });
}

// ---- Pools

PoolIndex Board::SetPool(const PoolSpec& spec) {
  BoardState& s = *state_;
  const auto known = s.pools.Find(spec.kind, spec.name);
  size_t pool = 0;
  if (!known) {
    pool = s.pools.Add(spec);
    s.objects.GrowTo(s.pools.slots());
    s.avoid_until.resize(s.pools.slots());
    s.avoided.Resize(s.pools.words());
    s.PoolChanged(pool);
  } else {
    pool = *known;
    const PoolSpec& old = s.pools.spec(pool);
    if (old == spec) return PoolIndex{static_cast<uint32_t>(pool)};
    const bool has_other_room =
        old.capacity != spec.capacity || old.class_counts != spec.class_counts;
    s.CountObjects(pool, -1);
    if (has_other_room) s.ChargeObjects(pool, -1);
    const Events events = s.pools.Replace(pool, spec);
    s.PoolChanged(pool);
    s.CountObjects(pool, 1);
    if (has_other_room) s.ChargeObjects(pool, 1);
    s.pools.Settle(pool);
    s.pools.Note(pool, events);
  }
  if (s.dimensions_version != s.pools.dimensions_version()) s.RechargeAll();
  return PoolIndex{static_cast<uint32_t>(pool)};
}

void Board::SetPoolState(PoolIndex pool, const PoolState& state) {
  CHECK(state_->pools.IsLive(ToSize(pool)));
  state_->pools.Note(ToSize(pool), state_->pools.SetState(ToSize(pool), state));
}

void Board::RemovePool(PoolIndex pool) {
  BoardState& s = *state_;
  const size_t index = ToSize(pool);
  CHECK(s.pools.IsLive(index));
  while (!s.objects.on_pool(index).empty())
    s.RemoveObject(s.objects.at(s.objects.on_pool(index).back()));
  s.avoidances.erase({s.avoid_until[index], static_cast<uint32_t>(index)});
  s.avoid_until[index] = Time();
  s.avoided.Reset(index);
  s.objects.reported(index) = {};
  s.pools.Remove(index);
  s.PoolChanged(index);
}

std::optional<PoolIndex> Board::FindPool(PoolKind kind, std::string_view name) const {
  const auto found = state_->pools.Find(kind, name);
  if (!found) return std::nullopt;
  return PoolIndex{static_cast<uint32_t>(*found)};
}

const PoolSpec& Board::pool(PoolIndex pool) const {
  CHECK(state_->pools.IsLive(ToSize(pool)));
  return state_->pools.spec(ToSize(pool));
}

size_t Board::pool_count(PoolKind kind) const { return state_->pools.count(kind); }

std::vector<PoolIndex> Board::VolumePoolsFor(PoolIndex machine_pool) const {
  CHECK(state_->pools.IsLive(ToSize(machine_pool)));
  std::vector<PoolIndex> found;
  state_->pools.of_kind(PoolKind::kVolume).ForEach([&](size_t pool) {
    if (!state_->Reaches(pool, ToSize(machine_pool))) return;
    found.push_back(PoolIndex{static_cast<uint32_t>(pool)});
  });
  return found;
}

PoolRoom Board::RoomOf(PoolIndex pool) const {
  const PoolTable& pools = state_->pools;
  const size_t index = ToSize(pool);
  CHECK(pools.IsLive(index));
  PoolRoom room;
  for (size_t d = 0; d < pools.dimensions(); ++d) {
    if (pools.capacity(index, d) == 0 && pools.promised(index, d) == 0) continue;
    room.capacity[pools.dimension_name(d)] = pools.capacity(index, d);
    room.promised[pools.dimension_name(d)] = pools.promised(index, d);
    room.free[pools.dimension_name(d)] = pools.free(index, d);
  }
  room.objects = static_cast<int64_t>(state_->objects.on_pool(index).size());
  return room;
}

std::optional<size_t> Board::DimensionOf(std::string_view resource) const {
  return state_->pools.DimensionOf(resource);
}

void BoardState::PoolChanged(size_t pool) {
  views.PoolChanged(pool);
  census.PoolChanged(pool);
}

void BoardState::ChargeObjects(size_t pool, int64_t sign) {
  for (const uint32_t number : objects.on_pool(pool)) {
    const Placed& object = objects.at(number);
    if (object.is_charged) pools.Charge(*object.shape, pool, sign, object.is_unseen);
  }
}

// A resource became known: objects that use it count for more than before.
void BoardState::RechargeAll() {
  dimensions_version = pools.dimensions_version();
  for (size_t pool = 0; pool < pools.slots(); ++pool) ChargeObjects(pool, -1);
  objects.ForEach([&](Placed& object) { Compile(*object.shape); });
  for (size_t pool = 0; pool < pools.slots(); ++pool) {
    ChargeObjects(pool, 1);
    if (pools.IsLive(pool)) pools.Settle(pool);
  }
}

void BoardState::CountObjects(size_t pool, int32_t sign) {
  for (const uint32_t number : objects.on_pool(pool)) {
    CompiledShape& shape = *objects.at(number).shape;
    RefreshCounts(shape);
    census.Count(shape, pool, sign);
  }
}

// ---- Reports

void Board::Report(PoolIndex pool, LedgerVersion version, const Resources& free) {
  std::array<int64_t, kDimensionsMax> amounts;
  amounts.fill(INT64_MAX);
  for (const auto& [name, amount] : free)
    if (const auto dimension = state_->pools.DimensionOf(name)) amounts[*dimension] = amount;
  state_->TakeReport(pool, version, amounts);
}

void Board::Report(PoolIndex pool, LedgerVersion version, std::span<const int64_t> amounts) {
  state_->TakeReport(pool, version, amounts);
}

void BoardState::TakeReport(PoolIndex pool,
                            LedgerVersion version,
                            std::span<const int64_t> amounts) {
  const size_t index = ToSize(pool);
  CHECK(pools.IsLive(index));
  LedgerVersion& known = objects.reported(index);
  if (pools.has_report(index) && version.boot == known.boot && version.counter < known.counter)
    return;
  known = version;
  std::erase_if(objects.unseen(index), [&](const Unseen& one) {
    // What an earlier start of the poollet held is part of its record, or gone: both are in its
    // sum.
    const bool is_seen =
        one.is_held && (one.held_at.boot != version.boot || one.held_at.counter <= version.counter);
    if (is_seen) objects.at(one.number).is_unseen = false;
    return is_seen;
  });
  pools.SetReport(index, amounts);
  CountUnseen(index);
  pools.Settle(index);
}

// A fresh report does not count these yet.
void BoardState::CountUnseen(size_t pool) {
  for (const Unseen& one : objects.unseen(pool)) {
    const Placed& object = objects.at(one.number);
    if (object.is_charged) pools.CountByHost(*object.shape, pool, -1);
  }
}

void Board::ClearReport(PoolIndex pool) {
  BoardState& s = *state_;
  const size_t index = ToSize(pool);
  CHECK(s.pools.IsLive(index));
  s.objects.reported(index) = {};
  s.pools.SetReport(index, {});
  s.CountUnseen(index);
  s.pools.Settle(index);
}

void BoardState::MarkSeen(Placed& object) {
  object.is_unseen = false;
  if (object.is_charged) pools.CountByHost(*object.shape, object.pool, 1);
  objects.EraseUnseen(object);
}

// ---- Avoidance

void Board::Avoid(PoolIndex pool, Time until) {
  BoardState& s = *state_;
  const size_t index = ToSize(pool);
  CHECK(s.pools.IsLive(index));
  if (until <= s.now || until <= s.avoid_until[index]) return;
  s.avoidances.erase({s.avoid_until[index], static_cast<uint32_t>(index)});
  s.avoid_until[index] = until;
  s.avoidances.emplace(until, static_cast<uint32_t>(index));
  s.avoided.Set(index);
}

void Board::AdvanceTo(Time now) {
  BoardState& s = *state_;
  s.now = std::max(s.now, now);
  while (!s.avoidances.empty() && s.avoidances.begin()->first <= s.now) {
    const uint32_t index = s.avoidances.begin()->second;
    s.avoidances.erase(s.avoidances.begin());
    s.avoid_until[index] = Time();
    s.avoided.Reset(index);
  }
}

// ---- Shapes

Shape Board::Intern(const Requirements& requirements) {
  BoardState& s = *state_;
  // Copies of one set come in a row.
  if (Shape last = s.last_interned.lock(); last && last->requirements == requirements) return last;
  auto& known = s.shapes[KeyOf(requirements)];
  if (Shape shape = known.lock()) {
    s.last_interned = shape;
    return shape;
  }
  auto shape = std::make_shared<CompiledShape>(requirements);
  known = shape;
  s.last_interned = shape;
  for (const auto& company : requirements.affinity)
    shape->affinity.push_back(s.InternTerm(requirements, company));
  for (const auto& company : requirements.anti_affinity)
    shape->anti_affinity.push_back(s.InternTerm(requirements, company));
  for (const auto& rule : requirements.spread)
    shape->spread.push_back(s.InternTerm(requirements, rule.company));
  for (const auto& preferred : requirements.preferred_company)
    shape->preferred.push_back(s.InternTerm(requirements, preferred.company));
  shape->preferred_views.resize(requirements.preferred_pools.size());
  shape->has_preferences = !requirements.preferred_company.empty() ||
                           !requirements.preferred_pools.empty() ||
                           std::ranges::any_of(requirements.spread, [](const SpreadRule& rule) {
                             return rule.otherwise == SpreadRule::Otherwise::kScheduleAnyway;
                           });
  s.Compile(*shape);
  if (s.shapes.size() > 2 * s.shapes_swept) {
    std::erase_if(s.shapes, [](const auto& entry) { return entry.second.expired(); });
    s.shapes_swept = std::max<size_t>(64, s.shapes.size());
    s.census.Sweep();
  }
  return shape;
}

CompanyRef BoardState::InternTerm(const Requirements& requirements, const Company& company) {
  auto [term, is_new] = census.Intern(requirements.kind, requirements.namespace_name, company);
  if (!is_new) return term;
  std::map<const CompiledShape*, bool> counts;  // many objects, few shapes
  objects.ForEach([&](Placed& object) {
    const auto [entry, is_first] = counts.emplace(object.shape, false);
    if (is_first) entry->second = term->Counts(object.shape->requirements);
    if (entry->second) Census::CountOne(*term, object.pool, 1);
  });
  return term;
}

void BoardState::Compile(CompiledShape& shape) {
  if (shape.dimensions_version == pools.dimensions_version()) return;
  shape.dimensions_version = pools.dimensions_version();
  shape.class_id = pools.ClassId(shape.requirements.class_name);
  shape.demands.clear();
  shape.unknown.clear();
  shape.fit_index = {};
  for (const auto& [name, amount] : shape.requirements.resources) {
    if (amount <= 0) continue;
    const auto dimension = pools.DimensionOf(name);
    if (dimension && *dimension != kShareDimension)
      shape.demands.push_back({.dimension = *dimension, .amount = std::min(amount, kDemandMax)});
    else
      shape.unknown.push_back(name);
  }
  std::ranges::sort(shape.demands, {}, &Demand::dimension);
}

void BoardState::RefreshCounts(CompiledShape& shape) {
  if (shape.census_version == census.version()) return;
  shape.census_version = census.version();
  shape.counted_by = census.CountedBy(shape.requirements);
}

// ---- Objects

void BoardState::Apply(const Request& request, Placed& object) {
  object.priority = request.priority;
  object.is_preemptible = request.is_preemptible;
  object.has_local_state = request.has_local_state;
  object.set = request.set;
}

void BoardState::AddObject(const Request& request,
                           size_t pool,
                           ObjectKey reservation,
                           bool is_settled) {
  CompiledShape& shape = *request.shape;
  RefreshCounts(shape);
  Placed& object = objects.Add(request.key, pool);
  object.shape = &shape;
  if (shape.placed++ == 0) shape.kept = request.shape;
  Apply(request, object);
  object.is_confirmed = is_settled;
  object.is_unseen = !is_settled;
  if (reservation != ObjectKey{}) {
    objects.Join(object, *objects.Find(reservation));
    object.is_charged = false;
  }
  if (object.is_unseen) objects.unseen(pool).push_back({.number = objects.NumberOf(object)});
  census.Count(shape, pool, 1);
  if (!shape.counted_by.empty() || !shape.anti_affinity.empty())
    pools.Note(pool, ToEvents(Event::kCompany));
  if (request.is_reservation) pools.Note(pool, ToEvents(Event::kReservation));
  if (!object.is_charged) return;
  pools.Charge(shape, pool, 1, object.is_unseen);
  pools.Settle(pool);
}

void BoardState::RemoveObject(Placed& object) {
  const size_t pool = object.pool;
  CompiledShape& shape = *object.shape;
  RefreshCounts(shape);
  census.Count(shape, pool, -1);
  if (!shape.counted_by.empty() || !shape.anti_affinity.empty())
    pools.Note(pool, ToEvents(Event::kCompany));
  if (object.is_charged) pools.Charge(shape, pool, -1, object.is_unseen);
  if (object.is_unseen) objects.EraseUnseen(object);
  if (Placed* copy = objects.ReservationOf(object)) {
    objects.Part(object, *copy);
    pools.Note(pool, ToEvents(Event::kReservation));
  }
  // Whoever lives in a reservation that ends has to pay for itself.
  if (Placed* consumer = objects.ConsumerOf(object)) {
    objects.Part(*consumer, object);
    if (!consumer->is_charged) pools.Charge(*consumer->shape, pool, 1, consumer->is_unseen);
    consumer->is_charged = true;
  }
  objects.Remove(object);
  pools.Settle(pool);
  if (--shape.placed == 0) const Shape last = std::move(shape.kept);
}

void Board::Held(ObjectKey key, LedgerVersion version) {
  BoardState& s = *state_;
  Placed* object = s.objects.Find(key);
  if (object == nullptr || !object->is_unseen) return;
  const size_t pool = object->pool;
  const LedgerVersion known = s.objects.reported(pool);
  if (s.pools.has_report(pool) && version.boot == known.boot && version.counter <= known.counter) {
    s.MarkSeen(*object);
    return s.pools.Settle(pool);
  }
  Unseen& entry = s.objects.unseen_entry(*object);
  entry.is_held = true;
  entry.held_at = version;
}

void Board::Confirm(ObjectKey key) {
  BoardState& s = *state_;
  Placed* object = s.objects.Find(key);
  if (object == nullptr || object->is_confirmed) return;
  object->is_confirmed = true;
  const size_t pool = object->pool;
  bool has_changed = false;
  // Without an answer or a report there is nothing to wait for: the store's word is all there is.
  if (object->is_unseen &&
      (!s.pools.has_report(pool) || !s.objects.unseen_entry(*object).is_held)) {
    s.MarkSeen(*object);
    has_changed = true;
  }
  if (!object->is_charged) {
    // Its own demand instead of the reservation's: the surplus becomes free.
    if (Placed* copy = s.objects.ReservationOf(*object)) s.RemoveObject(*copy);
    has_changed = true;
  }
  if (has_changed) s.pools.Settle(pool);
}

void Board::Settle(const Request& request, PoolIndex pool) {
  BoardState& s = *state_;
  CHECK(request.shape != nullptr);
  if (!s.pools.IsLive(ToSize(pool))) return;
  s.Compile(*request.shape);
  Placed* object = s.objects.Find(request.key);
  if (object != nullptr && object->pool == ToSize(pool) && object->shape == request.shape.get()) {
    s.Apply(request, *object);
    return Confirm(request.key);
  }
  if (object != nullptr) s.RemoveObject(*object);
  s.AddObject(request, ToSize(pool), {}, true);
}

void Board::Keep(const Request& request, PoolIndex pool) {
  BoardState& s = *state_;
  CHECK(request.shape != nullptr);
  if (!s.pools.IsLive(ToSize(pool))) return;
  if (Placed* object = s.objects.Find(request.key)) {
    if (object->pool == ToSize(pool) && object->shape == request.shape.get()) return;
    s.RemoveObject(*object);
  }
  s.Compile(*request.shape);
  s.AddObject(request, ToSize(pool), {}, false);
}

void Board::Expect(std::span<const ObjectKey> keys) const {
  const BoardState& s = *state_;
  // Each pass needs what the one before has fetched.
  for (const ObjectKey& key : keys) s.objects.Expect(key);
  for (const ObjectKey& key : keys) s.objects.ExpectObject(key);
  for (const ObjectKey& key : keys) {
    const Placed* object = s.objects.Find(key);
    if (object == nullptr) continue;
    s.objects.ExpectAt(object->pool);
    s.pools.Expect(object->pool);
    s.indexes.Expect(object->pool);
    __builtin_prefetch(object->shape);
  }
  for (const ObjectKey& key : keys)
    if (const Placed* object = s.objects.Find(key)) s.objects.ExpectNumbers(object->pool);
}

bool Board::Forget(ObjectKey key) {
  Placed* object = state_->objects.Find(key);
  if (object == nullptr) return false;
  state_->RemoveObject(*object);
  return true;
}

void Board::ForgetAll(const Request& request) {
  // Of a commit whose answer was lost the store may have told meanwhile: that stands.
  if (!IsConfirmed(request.key)) Forget(request.key);
  for (const auto& volume : request.joint) {
    if (!IsConfirmed(volume.key)) Forget(volume.key);
  }
}

std::optional<PoolIndex> Board::PoolOf(ObjectKey key) const {
  const Placed* object = state_->objects.Find(key);
  if (object == nullptr) return std::nullopt;
  return PoolIndex{object->pool};
}

bool Board::IsConfirmed(ObjectKey key) const {
  const Placed* object = state_->objects.Find(key);
  return object != nullptr && object->is_confirmed;
}

size_t Board::object_count() const { return state_->objects.size(); }

std::vector<Change> Board::TakeChanges() { return state_->pools.TakeChanges(); }

void Board::TellAgain(std::span<const Change> changes) {
  for (const Change& change : changes) state_->pools.Note(ToSize(change.pool), change.events);
}

}  // namespace berth::scheduler
