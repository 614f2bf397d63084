// SPDX-License-Identifier: Apache-2.0
#include "app/bench/bench_host.h"

#include <utility>

#include "base/uid.h"
#include "base/version.h"
#include "berth/agent/v1/agent.pb.h"

namespace berth::app {
namespace {

namespace pb = ::berth::agent::v1;

constexpr char kPoolKind[] = "MachinePool";
constexpr char kMachine[] = "Machine";

fleet::Vector ClassAmounts() { return {{"cpu", kBenchCpuMillis}, {"memory", kBenchMemory}}; }

fleet::Vector HostAmounts() {
  fleet::Vector amounts = ClassAmounts();
  for (auto& [_, amount] : amounts) amount *= kBenchMachinesPerHost;
  return amounts;
}

fleet::Offer ToOffer(const pb::Offer& message) {
  fleet::Offer offer;
  offer.id = {.term = message.id().term(), .number = message.id().number()};
  offer.item.pool_uid = message.pool_uid();
  offer.item.uid = message.uid();
  offer.item.placement = message.placement();
  offer.item.class_name = message.class_name();
  offer.item.resources.insert(message.resources().begin(), message.resources().end());
  offer.hold_ttl = Duration::Millis(static_cast<int64_t>(message.hold_ms()));
  return offer;
}

void ToProto(const fleet::Answer& answer, pb::Answer& out) {
  out.mutable_id()->set_term(answer.id.term);
  out.mutable_id()->set_number(answer.id.number);
  switch (answer.verdict) {
    case fleet::Answer::Verdict::kAccepted: out.set_verdict(pb::Answer::ACCEPTED); break;
    case fleet::Answer::Verdict::kAlreadyHere: out.set_verdict(pb::Answer::ALREADY_HERE); break;
    case fleet::Answer::Verdict::kRejected:
    case fleet::Answer::Verdict::kNoAnswer: out.set_verdict(pb::Answer::REJECTED); break;
  }
  out.set_reason(answer.reason);
  out.set_message(answer.message);
  out.set_placement(answer.placement);
  out.mutable_ledger()->set_boot(answer.ledger.boot);
  out.mutable_ledger()->set_counter(answer.ledger.counter);
}

}  // namespace

BenchHost::BenchHost(rt::AsioLoop& loop, HostBoard& board, Options options)
    : loop_(loop),
      board_(board),
      options_(std::move(options)),
      dialer_(loop),
      credentials_(options_.credentials),
      ledger_(NewUid(loop.random())),
      session_(loop, dialer_, credentials_, *this, {}) {
  ledger_.SetCapacity(HostAmounts());
}

BenchHost::~BenchHost() = default;

std::vector<std::string> BenchHost::held() const {
  std::vector<std::string> uids;
  uids.reserve(known_.size());
  for (const auto& [uid, _] : known_) uids.push_back(uid);
  return uids;
}

pb::HostBatch& BenchHost::Batch() {
  if (outgoing_ == nullptr) outgoing_ = std::make_unique<pb::HostMessage>();
  return *outgoing_->mutable_batch();
}

std::string BenchHost::Hello() {
  pb::HostMessage message;
  pb::Hello& hello = *message.mutable_hello();
  hello.set_poollet_version(std::string(kVersion));
  hello.set_boot_id(ledger_.version().boot);
  hello.set_incarnation(incarnation_);
  hello.set_term(term_);
  return message.SerializeAsString();
}

Status BenchHost::Welcomed(const pb::Welcome& welcome) {
  incarnation_ = welcome.incarnation();
  outgoing_.reset();
  return OkStatus();
}

void BenchHost::FillFacts(pb::Facts& facts) const {
  facts.mutable_ledger()->set_boot(ledger_.version().boot);
  facts.mutable_ledger()->set_counter(ledger_.version().counter);
  for (const auto& [name, amount] : HostAmounts()) (*facts.mutable_capacity())[name] = amount;
  for (const auto& [name, amount] : ledger_.AllocatedOf(pool_uid_)) {
    (*facts.mutable_allocated())[name] = amount;
  }
  for (const auto& [name, amount] : ledger_.HeldOf(pool_uid_)) {
    (*facts.mutable_held())[name] = amount;
  }
  facts.set_fence_ready(true);
}

std::vector<std::string> BenchHost::Announce() {
  pb::HostMessage message;
  pb::Announce& announce = *message.mutable_announce();
  announce.mutable_host()->set_hostname(options_.name);
  announce.mutable_host()->set_fence_ready(true);
  pb::PoolAnnounce& pool = *announce.add_pools();
  pool.set_kind(kPoolKind);
  pool.set_name(options_.name);
  pool.set_provider_id("bench://" + options_.name);
  pb::ClassOffer& offered = *pool.add_classes();
  offered.set_name(kBenchClass);
  for (const auto& [name, amount] : ClassAmounts()) {
    (*offered.mutable_capabilities())[name] = amount;
  }
  FillFacts(*pool.mutable_capacity());
  for (const auto& [uid, known] : known_) {
    pb::Known& out = *announce.add_known();
    out.set_uid(uid);
    out.set_incarnation(known.incarnation);
    out.set_placement(known.placement);
    out.set_hash(known.hash);
    out.set_pool_uid(pool_uid_);
  }
  announce.set_last(true);
  return {message.SerializeAsString()};
}

void BenchHost::Received(const pb::ServerBatch& batch) {
  ledger_.Expire(loop_.Now());
  for (const auto& pool : batch.pools()) {
    pool_uid_ = pool.uid();
    poollet::PoolBudget budget;
    budget.uid = pool_uid_;
    ledger_.SetPool(std::move(budget));
  }
  for (const auto& release : batch.releases()) {
    ledger_.Release({.term = release.term(), .number = release.number()});
  }
  for (const auto& message : batch.deletes()) OnDelete(message);
  for (const auto& offer : batch.offers()) OnOffer(offer);
  for (const auto& assign : batch.assigns()) OnAssign(assign);
  if (outgoing_ == nullptr) return;
  // As a poollet's outbox: somebody waits for answers, nobody for acknowledgements.
  const pb::HostBatch& words = outgoing_->batch();
  if (words.answers_size() > 0 || words.refusals_size() > 0 || words.gone_size() > 0) {
    session_.Wake(poollet::Urgency::kNow);
  } else {
    session_.Wake(words.statuses_size() > 0 ? poollet::Urgency::kSoon : poollet::Urgency::kIdle);
  }
}

void BenchHost::OnOffer(const pb::Offer& message) {
  const fleet::Offer offer = ToOffer(message);
  term_ = std::max(term_, offer.id.term);
  ToProto(ledger_.Ask(offer, term_, loop_.Now()), *Batch().add_answers());
}

void BenchHost::OnAssign(const pb::Assign& assign) {
  poollet::Allocation allocation;
  allocation.uid = assign.uid();
  allocation.pool_uid = pool_uid_;
  allocation.class_name = kBenchClass;
  allocation.placement = assign.placement();
  allocation.amounts.insert(assign.resources().begin(), assign.resources().end());
  const poollet::Verdict verdict = ledger_.Admit(allocation, loop_.Now());
  if (!verdict.fits) {
    pb::AssignRefused& refused = *Batch().add_refusals();
    refused.set_uid(assign.uid());
    refused.set_placement(assign.placement());
    refused.set_reason(verdict.reason);
    refused.set_message(verdict.message);
    return;
  }
  const auto [known, is_new] = known_.insert_or_assign(assign.uid(),
                                                       Known{.incarnation = assign.incarnation(),
                                                             .placement = assign.placement(),
                                                             .hash = assign.hash()});
  if (is_new) board_.assigned.fetch_add(1, std::memory_order_relaxed);
  Report(known->first, known->second);
}

void BenchHost::Report(const std::string& uid, const Known& known) {
  if (!board_.reports_running.load(std::memory_order_relaxed)) {
    pb::AssignAck& ack = *Batch().add_acks();
    ack.set_uid(uid);
    ack.set_placement(known.placement);
    ack.set_hash(known.hash);
    return;
  }
  pb::ObjectStatus& status = *Batch().add_statuses();
  status.set_uid(uid);
  status.set_incarnation(known.incarnation);
  status.set_placement(known.placement);
  status.set_kind(kMachine);
  status.set_state("Running");
  status.set_runtime_id("bench://" + uid);
}

void BenchHost::OnDelete(const pb::Delete& message) {
  ledger_.Free(message.uid());
  known_.erase(message.uid());
  pb::Gone& gone = *Batch().add_gone();
  gone.set_uid(message.uid());
  gone.set_incarnation(message.incarnation());
  gone.set_placement(message.placement());
}

void BenchHost::Synced(uint64_t /*revision*/, poollet::HistoryState /*history*/) {
  is_counted_ = true;
  board_.synced.fetch_add(1);
  board_.syncs.fetch_add(1);
}

void BenchHost::Ended(const Status& /*why*/) {
  if (std::exchange(is_counted_, false)) board_.synced.fetch_sub(1);
}

void BenchHost::Tick() {
  if (!session_.is_synced() || pool_uid_.empty()) return;
  ledger_.Expire(loop_.Now());
  if (ledger_.version().counter == facts_said_) return;
  facts_said_ = ledger_.version().counter;
  pb::PoolFacts& facts = *Batch().add_facts();
  facts.set_pool_uid(pool_uid_);
  FillFacts(*facts.mutable_facts());
  session_.Wake(poollet::Urgency::kSoon);
}

std::optional<std::string> BenchHost::TakeBatch() {
  if (outgoing_ == nullptr) return std::nullopt;
  std::string bytes = outgoing_->SerializeAsString();
  outgoing_.reset();
  return bytes;
}

rt::Task<Status> BenchHost::Tunnel(pb::TunnelRequest /*request*/, net::MessageStream* stream) {
  constexpr uint32_t kEnd = 3;
  pb::TunnelFrame frame;
  frame.set_channel(kEnd);
  frame.set_data("a host of a bench runs nothing");
  co_return co_await stream->Write(frame.SerializeAsString());
}

}  // namespace berth::app
