// SPDX-License-Identifier: Apache-2.0
#include "scheduler/placing/bulk_placer.h"

#include <algorithm>
#include <utility>

#include "apis/compute/machine.h"
#include "base/log.h"
#include "base/uid.h"
#include "client/cache/informer.h"
#include "rt/chaos.h"
#include "rt/event.h"
#include "rt/join_all.h"
#include "rt/sleep.h"

namespace berth::scheduler {
namespace {

// Offers of one term have different numbers: the Placer counts from 1, this from here.
constexpr uint64_t kFirstOffer = uint64_t{1} << 62U;

// What one commit must decide together with other objects is left to the Placer.
bool IsPlain(const apis::compute::MachineSpec& spec) {
  if (spec.machine_pool_ref || !spec.volumes.empty()) return false;
  return !spec.placement || (!spec.placement->group_ref && !spec.placement->reservation_ref);
}

}  // namespace

struct BulkPlacer::Copy {
  size_t number = 0;
  std::string uid;
  Request request;
  std::string pool;
  std::string pool_uid;
  Resources taken;
  fleet::OfferId offer;  // zero: its pool cannot be asked
  bool is_held = false;  // its host said yes, or need not be asked
};

struct BulkPlacer::Bulk {
  std::vector<Copy> copies;  // those with a place, by number
  Shape shape;
  Leadership leadership;
  Time asked;
  size_t unanswered = 0;
  bool is_over = false;  // answers from here on find nobody
  rt::Event answered;
  std::vector<std::optional<Result<meta::Object>>> verdicts;  // by number
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
      options_(options),
      placed_(deps.metrics.GetCounter("berth_scheduler_placed_total", "Objects that were bound.")),
      last_offer_(kFirstOffer) {}

Shape BulkPlacer::ShapeFor(const std::vector<meta::Object>& copies) {
  // Those that wait for a place come first.
  if (!leadership_ || copies.empty() || placer_.queue().active() > 0) return nullptr;
  if (&copies.front().kind() != &apis::compute::kMachineKind) return nullptr;
  const auto& machine = copies.front().as<apis::compute::Machine>();
  return IsPlain(machine.spec) ? objects_.ShapeOf(machine) : nullptr;
}

rt::Task<BulkPlacer::Verdicts> BulkPlacer::CreateBulk(std::vector<meta::Object> copies) {
  const client::WriteOptions options;
  Shape shape = ShapeFor(copies);
  if (shape == nullptr) co_return co_await client_.CreateBatch(std::move(copies), options);
  auto bulk = std::make_shared<Bulk>();
  bulk->shape = std::move(shape);
  bulk->leadership = *leadership_;
  bulk->verdicts.resize(copies.size());
  Status status = co_await Decide(bulk, &copies);
  if (status.ok()) status = co_await bulk->answered.Wait();
  bulk->is_over = true;
  if (status.ok()) status = co_await Bind(bulk.get(), &copies);
  for (Copy& copy : bulk->copies) {
    if (!bulk->verdicts[copy.number]) Drop(copy);
  }
  // Whoever has no verdict found no place.
  std::vector<meta::Object> rest;
  for (size_t i = 0; i < copies.size(); ++i) {
    if (!bulk->verdicts[i]) rest.push_back(std::move(copies[i]));
  }
  Verdicts made;
  if (!rest.empty()) {
    REACHED("scheduler.bulk_without_place");
    made = co_await client_.CreateBatch(std::move(rest), options);
  }
  Verdicts verdicts;
  verdicts.reserve(copies.size());
  for (size_t i = 0, next = 0; i < copies.size(); ++i) {
    verdicts.push_back(bulk->verdicts[i] ? *std::move(bulk->verdicts[i]) : std::move(made[next++]));
  }
  co_return verdicts;
}

// Each copy is assumed before the next one is decided on, and asked for in the same turn.
rt::Task<Status> BulkPlacer::Decide(std::shared_ptr<Bulk> bulk,
                                    const std::vector<meta::Object>* copies) {
  bulk->asked = loop_.Now();
  bulk->copies.reserve(copies->size());  // answers come while later ones are decided on
  bulk->unanswered = 1;                  // this function
  const std::string class_name =
      copies->front().as<apis::compute::Machine>().spec.machine_class_ref.name;
  for (size_t i = 0; i < copies->size(); ++i) {
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
    copy.pool = pool->pool.spec.name;
    copy.pool_uid = pool->pool.spec.uid;
    copy.taken = TakenOf(pool->pool, class_name, RequirementsOf(bulk->shape).resources);
    copy.is_held = pool->pool.mode != PoolMode::kSession;
    bulk->copies.push_back(std::move(copy));
    if (!bulk->copies.back().is_held) {
      fleet::Offer offer;
      Copy& kept = bulk->copies.back();
      offer.id = {.term = static_cast<uint64_t>(bulk->leadership.term), .number = ++last_offer_};
      offer.item = {.pool_uid = kept.pool_uid,
                    .kind = fleet::ObjectKind::kMachine,
                    .uid = kept.uid,
                    .placement = 1,
                    .class_name = class_name,
                    .resources = fleet::Vector(kept.taken.begin(), kept.taken.end())};
      offer.hold_ttl = options_.hold_ttl;
      kept.offer = offer.id;
      Ask(bulk, bulk->copies.size() - 1, std::move(offer));
    }
  }
  if (--bulk->unanswered == 0) bulk->answered.Set();
  co_return OkStatus();
}

void BulkPlacer::Ask(const std::shared_ptr<Bulk>& bulk, size_t index, fleet::Offer offer) {
  ++bulk->unanswered;
  const std::string pool_uid = offer.item.pool_uid;
  fleet_.Ask(std::move(offer),
             options_.answer_limit,
             [self = self_, fleet = &fleet_, bulk, index, pool_uid](const fleet::Answer& answer) {
               if (*self != nullptr && !bulk->is_over) {
                 return (*self)->OnAnswer(*bulk, index, answer);
               }
               if (answer.verdict == fleet::Answer::Verdict::kAccepted) {
                 fleet->Release(pool_uid, answer.id);
               }
             });
}

void BulkPlacer::OnAnswer(Bulk& bulk, size_t index, const fleet::Answer& answer) {
  Copy& copy = bulk.copies[index];
  if (answer.verdict == fleet::Answer::Verdict::kAccepted) {
    copy.is_held = true;
    board_.Held(copy.request.key, VersionOf(answer.ledger));
  } else {
    REACHED("scheduler.bulk_refused");
  }
  if (--bulk.unanswered == 0) bulk.answered.Set();
}

rt::Task<Status> BulkPlacer::Bind(Bulk* bulk, std::vector<meta::Object>* copies) {
  Copies held;
  for (Copy& copy : bulk->copies) {
    if (copy.is_held) held.push_back(&copy);
  }
  // Copies of one pool go together: they share its guard.
  std::ranges::sort(held, {}, [](const Copy* copy) {
    return std::pair(std::string_view(copy->pool_uid), copy->number);
  });
  size_t at = 0;
  while (at < held.size()) {
    if (loop_.Now() - bulk->asked > options_.hold_ttl / 2) co_return OkStatus();
    std::vector<rt::Task<Status>> slices;
    while (at < held.size() && slices.size() < options_.slices_at_once) {
      size_t end = std::min(at + options_.slice, held.size());
      while (end < held.size() && held[end]->pool_uid == held[end - 1]->pool_uid) ++end;
      slices.push_back(BindSlice(bulk,
                                 copies,
                                 Copies(held.begin() + static_cast<ptrdiff_t>(at),
                                        held.begin() + static_cast<ptrdiff_t>(end))));
      at = end;
    }
    for (const Status& status : co_await rt::JoinAll(std::move(slices))) CO_TRY_STATUS(status);
  }
  co_return OkStatus();
}

rt::Task<Status> BulkPlacer::BindSlice(Bulk* bulk,
                                       std::vector<meta::Object>* copies,
                                       Copies slice) {
  std::vector<meta::Object> objects;
  std::vector<client::BindItem> items;
  for (const Copy* copy : slice) {
    const meta::Object& object = objects.emplace_back((*copies)[copy->number]);
    items.push_back({.kind = &object.kind(),
                     .key = client::KeyOf(object),
                     .uid = copy->uid,
                     .generation = 0,
                     .placement = 0,
                     .pool = copy->pool,
                     .pool_uid = copy->pool_uid,
                     .resources = client::Amounts(copy->taken.begin(), copy->taken.end())});
  }
  Verdicts made = co_await binder_.CreateBoundBatch(
      std::move(objects), std::move(items), bulk->leadership.holder, bulk->leadership.term);
  for (size_t i = 0; i < slice.size(); ++i) {
    Copy& copy = *slice[i];
    if (made[i].ok()) {
      placed_.Add();
      board_.Confirm(copy.request.key);
      bulk->verdicts[copy.number] = std::move(made[i]);
      continue;
    }
    LOG_DEBUG("creating {} bound: {}", copy.uid, made[i].status().ToString());
    // What exists, or may, is not made a second time; the store will tell.
    const bool is_final = IsUnknownOutcome(made[i].status()) ||
                          made[i].status().Is(Reason::kAlreadyExists) ||
                          made[i].status().Is(Reason::kInvalid);
    Drop(copy);
    if (is_final) bulk->verdicts[copy.number] = std::move(made[i]);
  }
  co_return OkStatus();
}

void BulkPlacer::Drop(Copy& copy) {
  board_.Forget(copy.request.key);
  if (copy.offer.number != 0) fleet_.Release(copy.pool_uid, copy.offer);
  copy.offer = {};
}

}  // namespace berth::scheduler
