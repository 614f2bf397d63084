// SPDX-License-Identifier: Apache-2.0
#include "scheduler/placing/bulk_placer.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>
#include <utility>

#include "apis/berth/machine_set.h"
#include "apis/compute/machine.h"
#include "base/log.h"
#include "base/uid.h"
#include "client/cache/informer.h"
#include "rt/chaos.h"
#include "rt/event.h"
#include "rt/gate.h"
#include "rt/join_all.h"
#include "rt/sleep.h"

namespace berth::scheduler {
namespace {

// Offers of one term have different numbers: the Placer counts from 1, this from here.
constexpr uint64_t kFirstOffer = uint64_t{1} << 62U;
// Copies that have an event each. Of ten thousand nobody reads them, and they would be as many
// writes.
constexpr size_t kToldSingly = 16;

// What one commit must decide together with other objects is left to the Placer.
bool IsPlain(const apis::compute::MachineSpec& spec) {
  if (spec.machine_pool_ref || !spec.volumes.empty()) return false;
  return !spec.placement || (!spec.placement->group_ref && !spec.placement->reservation_ref);
}

}  // namespace

// What all copies on one pool have in common: their shape is the same, so is what they take.
struct BulkPlacer::Place {
  std::string pool;
  std::string pool_uid;
  Resources taken;
  bool is_asked = false;  // else nobody need be asked
};

struct BulkPlacer::Copy {
  size_t number = 0;
  std::string uid;
  Request request;
  size_t place = 0;      // of Bulk::places
  fleet::OfferId offer;  // zero: its pool cannot be asked
  bool is_held = false;  // its host said yes, or need not be asked
};

struct BulkPlacer::Bulk {
  Bulk(meta::Object object, std::vector<std::string> all, size_t waves_at_once)
      : model(std::move(object)),
        names(std::move(all)),
        verdicts(names.size()),
        writing(waves_at_once) {}
  const meta::Object model;
  const std::vector<std::string> names;
  std::string class_name;
  Shape shape;
  Leadership leadership;
  const Place& PlaceOf(const Copy& copy) const { return places[copy.place]; }

  std::vector<Place> places;
  std::vector<Copy> copies;                                  // those with a place, by pool
  std::vector<std::optional<Result<std::string>>> verdicts;  // by number
  rt::Gate asking{1};
  rt::Gate writing;
};

// Copies of whole pools, asked for at once.
struct BulkPlacer::Wave {
  std::shared_ptr<Bulk> bulk;
  Time asked;
  size_t unanswered = 1;  // one for whoever asks
  bool is_over = false;   // answers from here on find nobody
  rt::Event answered;
};

BulkPlacer::BulkPlacer(Deps deps, BulkOptions options)
    : loop_(deps.loop),
      board_(deps.board),
      pools_(deps.pools),
      objects_(deps.objects),
      placer_(deps.placer),
      fleet_(deps.fleet),
      client_(deps.client),
      binder_(deps.binder),
      events_(deps.events),
      options_(options),
      placed_(deps.metrics.GetCounter("berth_scheduler_placed_total", "Objects that were bound.")),
      last_offer_(kFirstOffer) {}

Shape BulkPlacer::ShapeFor(const meta::Object& model) {
  // Those that wait for a place come first.
  if (!leadership_ || placer_.queue().active() > 0) return nullptr;
  if (&model.kind() != &apis::compute::kMachineKind) return nullptr;
  const auto& machine = model.as<apis::compute::Machine>();
  return IsPlain(machine.spec) ? objects_.ShapeOf(machine) : nullptr;
}

rt::Task<BulkPlacer::Verdicts> BulkPlacer::CreateBulk(meta::Object model,
                                                      std::vector<std::string> names) {
  auto bulk = std::make_shared<Bulk>(std::move(model), std::move(names), options_.waves_at_once);
  bulk->shape = ShapeFor(bulk->model);
  if (bulk->shape != nullptr) {
    bulk->leadership = *leadership_;
    bulk->class_name = bulk->model.as<apis::compute::Machine>().spec.machine_class_ref.name;
    Status status = co_await Decide(bulk.get());
    if (status.ok()) status = co_await PlaceAll(bulk);
    for (Copy& copy : bulk->copies) {
      if (!bulk->verdicts[copy.number]) Drop(*bulk, copy);
    }
    placer_.OnBoardChanged();  // for those that wait for the room
    Tell(*bulk);
  }
  // Whoever has no verdict found no place.
  const Status rest = co_await CreateRest(bulk.get());
  Verdicts verdicts;
  verdicts.reserve(bulk->verdicts.size());
  for (std::optional<Result<std::string>>& verdict : bulk->verdicts) {
    verdicts.push_back(verdict ? *std::move(verdict) : Result<std::string>(rest));
  }
  co_return verdicts;
}

// Each copy is assumed before the next one is decided on.
rt::Task<Status> BulkPlacer::Decide(Bulk* bulk) {
  std::vector<Copy>& copies = bulk->copies;
  std::unordered_map<PoolIndex, size_t> places;
  copies.reserve(bulk->names.size());
  for (size_t i = 0; i < bulk->names.size(); ++i) {
    if (i % options_.decide_per_turn == 0 && i > 0) {
      rt::Yield yield;
      CO_TRY_STATUS(co_await yield);
      board_.AdvanceTo(loop_.Now());
    }
    Copy copy;
    copy.number = i;
    copy.uid = NewUid(loop_.random());
    copy.request.key = ObjectKey::FromUid(copy.uid);
    copy.request.shape = bulk->shape;
    board_.Decide(copy.request, 1, decision_);
    if (decision_.ranked.empty()) break;  // no room for this one, and none for its likes
    const Candidate candidate = decision_.ranked.front();
    const PoolEntry* pool = pools_.Find(candidate.pool);
    if (pool == nullptr) break;
    if (board_.Assume(copy.request, candidate) != AssumeVerdict::kAssumed) continue;
    size_t& place = places[candidate.pool];
    const bool is_known =
        place < bulk->places.size() && bulk->places[place].pool_uid == pool->pool.spec.uid;
    if (!is_known) {
      place = bulk->places.size();
      bulk->places.push_back(PlaceOn(*bulk, pool->pool));
    }
    copy.place = place;
    copy.is_held = !bulk->places[place].is_asked;
    copies.push_back(std::move(copy));
  }
  SortByPool(*bulk);
  co_return OkStatus();
}

BulkPlacer::Place BulkPlacer::PlaceOn(const Bulk& bulk, const TranslatedPool& pool) {
  return {.pool = pool.spec.name,
          .pool_uid = pool.spec.uid,
          .taken = TakenOf(pool, bulk.class_name, RequirementsOf(bulk.shape).resources),
          .is_asked = pool.mode == PoolMode::kSession};
}

// Each copy is moved once: there are many, and few pools.
void BulkPlacer::SortByPool(Bulk& bulk) {
  std::vector<std::vector<size_t>> on(bulk.places.size());
  for (size_t i = 0; i < bulk.copies.size(); ++i) on[bulk.copies[i].place].push_back(i);
  std::vector<size_t> order(bulk.places.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(
      order, {}, [&](size_t place) -> const std::string& { return bulk.places[place].pool_uid; });
  std::vector<Copy> sorted;
  sorted.reserve(bulk.copies.size());
  for (const size_t place : order) {
    for (const size_t copy : on[place]) sorted.push_back(std::move(bulk.copies[copy]));
  }
  bulk.copies = std::move(sorted);
}

rt::Task<Status> BulkPlacer::PlaceAll(std::shared_ptr<Bulk> bulk) {
  const std::vector<Copy>& copies = bulk->copies;
  std::vector<rt::Task<Status>> waves;
  for (size_t first = 0; first < copies.size();) {
    size_t end = std::min(first + options_.wave, copies.size());
    while (end < copies.size() && copies[end].place == copies[end - 1].place) ++end;
    waves.push_back(PlaceWave(bulk, first, end));
    first = end;
  }
  for (const Status& status : co_await rt::JoinAll(std::move(waves))) CO_TRY_STATUS(status);
  co_return OkStatus();
}

rt::Task<Status> BulkPlacer::PlaceWave(std::shared_ptr<Bulk> bulk, size_t first, size_t end) {
  auto wave = std::make_shared<Wave>();
  wave->bulk = bulk;
  Status answered = co_await AskAll(wave, first, end);
  if (answered.ok()) answered = co_await wave->answered.Wait();
  wave->is_over = true;
  CO_TRY_STATUS(answered);
  CO_TRY(const rt::Gate::Permit permit, co_await bulk->writing.Enter());
  // A hold is used while it is young (S5).
  if (loop_.Now() - wave->asked > options_.hold_ttl / 2) co_return OkStatus();
  co_return co_await Bind(bulk.get(), first, end);
}

// One wave per turn of the loop: its offers leave before the next one asks.
rt::Task<Status> BulkPlacer::AskAll(std::shared_ptr<Wave> wave, size_t first, size_t end) {
  Bulk& bulk = *wave->bulk;
  CO_TRY(const rt::Gate::Permit permit, co_await bulk.asking.Enter());
  wave->asked = loop_.Now();
  for (size_t i = first; i < end; ++i) {
    if (!bulk.copies[i].is_held) Ask(wave, i);
  }
  if (--wave->unanswered == 0) wave->answered.Set();
  rt::Yield yield;
  co_return co_await yield;
}

void BulkPlacer::Ask(const std::shared_ptr<Wave>& wave, size_t index) {
  Copy& copy = wave->bulk->copies[index];
  const Place& place = wave->bulk->PlaceOf(copy);
  fleet::Offer offer;
  offer.id = {.term = static_cast<uint64_t>(wave->bulk->leadership.term), .number = ++last_offer_};
  offer.item = {.pool_uid = place.pool_uid,
                .kind = fleet::ObjectKind::kMachine,
                .uid = copy.uid,
                .placement = 1,
                .class_name = wave->bulk->class_name,
                .resources = fleet::Vector(place.taken.begin(), place.taken.end())};
  offer.hold_ttl = options_.hold_ttl;
  copy.offer = offer.id;
  ++wave->unanswered;
  fleet_.Ask(std::move(offer),
             options_.answer_limit,
             [self = self_, fleet = &fleet_, wave, index](const fleet::Answer& answer) {
               if (*self != nullptr && !wave->is_over) {
                 return (*self)->OnAnswer(*wave, index, answer);
               }
               if (answer.verdict == fleet::Answer::Verdict::kAccepted) {
                 const Bulk& bulk = *wave->bulk;
                 fleet->Release(bulk.PlaceOf(bulk.copies[index]).pool_uid, answer.id);
               }
             });
}

void BulkPlacer::OnAnswer(Wave& wave, size_t index, const fleet::Answer& answer) {
  Copy& copy = wave.bulk->copies[index];
  if (answer.verdict == fleet::Answer::Verdict::kAccepted) {
    copy.is_held = true;
    board_.Held(copy.request.key, VersionOf(answer.ledger));
  } else {
    REACHED("scheduler.bulk_refused");
  }
  if (--wave.unanswered == 0) wave.answered.Set();
}

rt::Task<Status> BulkPlacer::Bind(Bulk* bulk, size_t first, size_t end) {
  std::vector<Copy*> held;
  std::vector<client::BindItem> items;
  held.reserve(end - first);
  items.reserve(end - first);
  const client::ObjectKey model = client::KeyOf(bulk->model);
  for (size_t i = first; i < end; ++i) {
    Copy& copy = bulk->copies[i];
    if (!copy.is_held) continue;
    const Place& place = bulk->PlaceOf(copy);
    held.push_back(&copy);
    items.push_back({.kind = &bulk->model.kind(),
                     .key = {.namespace_ = model.namespace_, .name = bulk->names[copy.number]},
                     .uid = copy.uid,
                     .generation = 0,
                     .placement = 0,
                     .pool = place.pool,
                     .pool_uid = place.pool_uid,
                     .resources = client::Amounts(place.taken.begin(), place.taken.end())});
  }
  if (held.empty()) co_return OkStatus();
  std::vector<Status> made = co_await binder_.CreateBoundBatch(
      bulk->model, std::move(items), bulk->leadership.holder, bulk->leadership.term);
  for (size_t i = 0; i < held.size(); ++i) {
    Copy& copy = *held[i];
    if (made[i].ok()) {
      placed_.Add();
      board_.Confirm(copy.request.key);
      bulk->verdicts[copy.number] = copy.uid;
      continue;
    }
    LOG_DEBUG("creating {} bound: {}", copy.uid, made[i].ToString());
    // What exists, or may, is not made a second time; the store will tell.
    const bool is_final = IsUnknownOutcome(made[i]) || made[i].Is(Reason::kAlreadyExists) ||
                          made[i].Is(Reason::kInvalid);
    Drop(*bulk, copy);
    if (is_final) bulk->verdicts[copy.number] = std::move(made[i]);
  }
  placer_.OnBoardChanged();  // for those that wait for the room of whoever was not made
  co_return OkStatus();
}

rt::Task<Status> BulkPlacer::CreateRest(Bulk* bulk) {
  std::vector<size_t> rest;
  for (size_t i = 0; i < bulk->names.size(); ++i) {
    if (!bulk->verdicts[i]) rest.push_back(i);
  }
  if (!rest.empty() && bulk->shape != nullptr) REACHED("scheduler.bulk_without_place");
  const client::WriteOptions options;
  const size_t limit = options_.wave * options_.waves_at_once;
  for (size_t first = 0; first < rest.size(); first += limit) {
    const size_t end = std::min(first + limit, rest.size());
    std::vector<std::string> names;
    for (size_t i = first; i < end; ++i) names.push_back(bulk->names[rest[i]]);
    const auto made = co_await client_.CreateBatch(client::CopiesOf(bulk->model, names), options);
    for (size_t i = first; i < end; ++i) {
      const Result<meta::Object>& one = made[i - first];
      bulk->verdicts[rest[i]] =
          one.ok() ? Result<std::string>(one->metadata().uid) : Result<std::string>(one.status());
    }
  }
  co_return OkStatus();
}

void BulkPlacer::Tell(const Bulk& bulk) {
  const meta::ObjectMeta& model = bulk.model.metadata();
  std::vector<const Copy*> placed;
  size_t pools = 0;
  std::optional<size_t> last;  // copies are sorted by pool
  for (const Copy& copy : bulk.copies) {
    const auto& verdict = bulk.verdicts[copy.number];
    if (!verdict || !verdict->ok()) continue;
    placed.push_back(&copy);
    if (last != copy.place) ++pools;
    last = copy.place;
  }
  const auto record = [&](const client::EventSubject& subject, std::string message) {
    events_.Record(subject, client::EventType::kNormal, "Scheduled", "Binding", std::move(message));
  };
  if (placed.size() <= kToldSingly) {
    for (const Copy* copy : placed) {
      record({.kind = &bulk.model.kind(),
              .key = {.namespace_ = model.namespace_, .name = bulk.names[copy->number]},
              .uid = copy->uid},
             "placed on pool " + bulk.PlaceOf(*copy).pool);
    }
    return;
  }
  for (const meta::OwnerReference& owner : model.owner_references) {
    if (owner.kind != apis::berth_dev::kMachineSetKind.kind) continue;
    record({.kind = &apis::berth_dev::kMachineSetKind,
            .key = {.namespace_ = model.namespace_, .name = owner.name},
            .uid = owner.uid},
           std::to_string(placed.size()) + " machines were placed on " + std::to_string(pools) +
               " pools");
  }
}

void BulkPlacer::Drop(const Bulk& bulk, Copy& copy) {
  board_.ForgetAll(copy.request);
  if (copy.offer.number != 0) fleet_.Release(bulk.PlaceOf(copy).pool_uid, copy.offer);
  copy.offer = {};
}

}  // namespace berth::scheduler
