// SPDX-License-Identifier: Apache-2.0
#include "poollet/host/outbox.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/strings.h"
#include "berth/agent/v1/agent.pb.h"

namespace berth::poollet {
namespace {

namespace pb = ::berth::agent::v1;

template <class Words, class Map>
void Fill(const Words& words, Map* out) {
  for (const auto& [name, value] : words) (*out)[name] = value;
}

void FillLedger(const fleet::LedgerVersion& version, pb::LedgerVersion& out) {
  out.set_boot(version.boot);
  out.set_counter(version.counter);
}

void FillAnswer(const fleet::Answer& answer, pb::Answer& out) {
  out.mutable_id()->set_term(answer.id.term);
  out.mutable_id()->set_number(answer.id.number);
  switch (answer.verdict) {
    case fleet::Answer::Verdict::kAccepted: out.set_verdict(pb::Answer::ACCEPTED); break;
    case fleet::Answer::Verdict::kAlreadyHere: out.set_verdict(pb::Answer::ALREADY_HERE); break;
    case fleet::Answer::Verdict::kRejected:
    case fleet::Answer::Verdict::kNoAnswer: out.set_verdict(pb::Answer::REJECTED); break;
  }
  out.set_reason(answer.reason);
  Fill(answer.missing, out.mutable_missing());
  FillLedger(answer.ledger, *out.mutable_ledger());
  out.set_placement(answer.placement);
}

void FillParts(const std::vector<ReportPart>& parts,
               google::protobuf::RepeatedPtrField<pb::PartStatus>& out) {
  for (const auto& part : parts) {
    pb::PartStatus& made = *out.Add();
    made.set_name(part.name);
    made.set_handle(part.handle);
    made.set_state(part.state);
  }
}

void FillAccess(const iri::VolumeAccess& access, pb::VolumeAccess& out) {
  out.set_driver(access.driver);
  out.set_handle(access.handle);
  for (const auto& [key, value] : access.attributes) (*out.mutable_attributes())[key] = value;
  for (const auto& [key, value] : access.secret_data) (*out.mutable_secret_data())[key] = value;
}

void FillStatistics(const fleet::Statistics& statistics, pb::Statistics& out) {
  out.set_uid(statistics.uid);
  out.set_cpu_cores(statistics.cpu_cores);
  out.set_memory_bytes(statistics.memory_bytes);
  out.set_disk_bytes(statistics.disk_bytes);
  out.set_network_receive_bytes(statistics.network_receive_bytes);
  out.set_network_send_bytes(statistics.network_send_bytes);
  out.set_load(statistics.load);
}

void FillFacts(const SpokenFacts& facts, pb::PoolFacts& out) {
  out.set_pool_uid(facts.pool_uid);
  pb::Facts& figures = *out.mutable_facts();
  FillLedger(facts.ledger, *figures.mutable_ledger());
  Fill(facts.capacity, figures.mutable_capacity());
  Fill(facts.allocated, figures.mutable_allocated());
  Fill(facts.held, figures.mutable_held());
  figures.set_fence_ready(facts.fence_ready);
  figures.set_fence_problem(facts.fence_problem);
  out.set_problem(facts.problem);
  out.set_runtime_facts_changed(facts.runtime_facts.has_value());
  if (facts.runtime_facts.has_value()) Fill(*facts.runtime_facts, out.mutable_runtime_facts());
  if (!facts.classes.has_value()) return;
  out.set_classes_changed(true);
  for (const auto& offered : *facts.classes) {
    pb::ClassOffer& made = *out.add_classes();
    made.set_name(offered.name);
    for (const auto& [name, value] : offered.capabilities) {
      (*made.mutable_capabilities())[name] = value;
    }
    made.set_quantity(offered.quantity);
  }
}

}  // namespace

namespace internal {
void FillOrphan(const SpokenOrphan& orphan, pb::Orphan& out) {
  out.set_kind(std::string(fleet::NameOf(orphan.seen.kind)));
  out.set_uid(orphan.seen.uid);
  out.set_namespace_(orphan.seen.namespace_);
  out.set_name(orphan.seen.name);
  out.set_runtime_id(orphan.seen.id);
  out.set_state(orphan.seen.state);
  Fill(orphan.seen.amounts, out.mutable_resources());
  out.set_pool(orphan.pool);
}
}  // namespace internal

void Outbox::Begin(OutboxLimits limits, Time now) {
  limits_ = limits;
  pace_.Begin(limits.events_per_second, now);
}

// At most the limit, whole characters, nothing that is not text.
std::string Outbox::Short(const std::string& text) const {
  if (text.size() <= limits_.text_bytes && IsValidUtf8(text)) return text;
  std::string cut = text.substr(0, limits_.text_bytes);
  while (!cut.empty() && !IsValidUtf8(cut) && text.size() - cut.size() < limits_.text_bytes) {
    cut.pop_back();
  }
  return IsValidUtf8(cut) ? cut : Printable(text.substr(0, limits_.text_bytes / 4));
}

void Outbox::Answer(fleet::Answer answer) {
  answers_.push_back(std::move(answer));
  wake_(Urgency::kNow);
}

void Outbox::Ack(const std::string& uid, Placement placement, std::string hash) {
  acks_.insert_or_assign(uid, std::pair(placement, std::move(hash)));
  // What was not acknowledged is found by its hash when a session begins (P4); until then nobody
  // looks at it.
  wake_(Urgency::kIdle);
}

void Outbox::Refuse(const std::string& uid,
                    Placement placement,
                    std::string reason,
                    std::string message,
                    Amounts missing) {
  Drop(uid);
  refusals_.insert_or_assign(uid,
                             Refusal{.uid = uid,
                                     .placement = placement,
                                     .reason = std::move(reason),
                                     .message = std::move(message),
                                     .missing = std::move(missing)});
  wake_(Urgency::kNow);
}

void Outbox::Report(ObjectReport report) {
  const bool is_awaited = report.state == "Running" || report.state == "Available";
  std::string uid = report.uid;
  reports_.insert_or_assign(std::move(uid), std::move(report));
  wake_(is_awaited ? Urgency::kNext : Urgency::kSoon);
}

void Outbox::Gone(const std::string& uid, Placement placement) {
  Drop(uid);
  gone_.insert_or_assign(uid, placement);
  wake_(Urgency::kNow);
}

void Outbox::Event(SpokenEvent event) {
  if (events_.size() >= kEventsMax) {
    if (events_lost_++ == 0) {
      LOG_WARNING("{} events wait to be told: the oldest are dropped", kEventsMax);
    }
    // It is told to that pool; of one that no server knows yet there is nobody to hear.
    if (!events_.front().pool_uid.empty()) lost_of_ = std::move(events_.front().pool_uid);
    events_.pop_front();
  }
  events_.push_back(std::move(event));
  wake_(Urgency::kSoon);
}

void Outbox::Statistics(std::vector<fleet::Statistics> statistics) {
  statistics_ = std::move(statistics);
  wake_(Urgency::kIdle);
}

void Outbox::Facts(std::vector<SpokenFacts> facts) {
  // What was not said yet is not forgotten by a newer figure.
  for (auto& fact : facts) {
    for (auto& old : facts_) {
      if (old.pool_uid != fact.pool_uid) continue;
      if (!fact.classes.has_value()) fact.classes = std::move(old.classes);
      if (!fact.runtime_facts.has_value()) fact.runtime_facts = std::move(old.runtime_facts);
    }
  }
  facts_ = std::move(facts);
}

void Outbox::Orphans(std::vector<SpokenOrphan> orphans) {
  orphans_ = std::move(orphans);
  wake_(Urgency::kSoon);
}

void Outbox::Drop(const std::string& uid) {
  acks_.erase(uid);
  reports_.erase(uid);
}

void Outbox::SessionEnded() {
  answers_.clear();
  acks_.clear();
  refusals_.clear();
  gone_.clear();  // the next announce says it again
  facts_.clear();
  statistics_.clear();
  orphans_.reset();
}

// Answers, acks, refusals, gone: small, and somebody waits for them.
void Outbox::TakeWords(pb::HostBatch& batch, size_t& bytes) {
  while (!answers_.empty() && bytes < limits_.message_bytes) {
    pb::Answer& out = *batch.add_answers();
    FillAnswer(answers_.front(), out);
    out.set_message(Short(answers_.front().message));
    answers_.pop_front();
    bytes += out.ByteSizeLong() + 8;
  }
  while (!acks_.empty() && bytes < limits_.message_bytes) {
    pb::AssignAck& out = *batch.add_acks();
    out.set_uid(acks_.begin()->first);
    out.set_placement(acks_.begin()->second.first.number);
    out.set_hash(acks_.begin()->second.second);
    acks_.erase(acks_.begin());
    bytes += out.ByteSizeLong() + 8;
  }
  while (!refusals_.empty() && bytes < limits_.message_bytes) {
    const Refusal& refusal = refusals_.begin()->second;
    pb::AssignRefused& out = *batch.add_refusals();
    out.set_uid(refusal.uid);
    out.set_placement(refusal.placement.number);
    out.set_reason(refusal.reason);
    out.set_message(Short(refusal.message));
    Fill(refusal.missing, out.mutable_missing());
    refusals_.erase(refusals_.begin());
    bytes += out.ByteSizeLong() + 8;
  }
  while (!gone_.empty() && bytes < limits_.message_bytes) {
    pb::Gone& out = *batch.add_gone();
    out.set_uid(gone_.begin()->first);
    out.set_incarnation(gone_.begin()->second.incarnation);
    out.set_placement(gone_.begin()->second.number);
    gone_.erase(gone_.begin());
    bytes += out.ByteSizeLong() + 8;
  }
}

void Outbox::TakeStatuses(pb::HostBatch& batch, size_t& bytes) {
  size_t count = 0;
  while (!reports_.empty() && bytes < limits_.message_bytes &&
         count++ < limits_.statuses_per_batch) {
    const ObjectReport& report = reports_.begin()->second;
    pb::ObjectStatus& out = *batch.add_statuses();
    out.set_uid(report.uid);
    out.set_incarnation(report.placement.incarnation);
    out.set_placement(report.placement.number);
    out.set_kind(std::string(fleet::NameOf(report.kind)));
    out.set_state(report.state);
    out.set_runtime_id(report.runtime_id);
    out.set_observed_generation(report.observed_generation);
    for (const auto& condition : report.conditions) {
      pb::Condition& made = *out.add_conditions();
      made.set_type(condition.type);
      made.set_status(condition.is_true ? "True" : "False");
      made.set_reason(condition.reason);
      made.set_message(Short(condition.message));
    }
    FillParts(report.volumes, *out.mutable_volumes());
    FillParts(report.nics, *out.mutable_network_interfaces());
    if (report.access != iri::VolumeAccess()) FillAccess(report.access, *out.mutable_access());
    out.set_bucket_endpoint(report.bucket_endpoint);
    out.set_storage_bytes(report.storage_bytes);
    out.set_leased(report.is_leased);
    bytes += out.ByteSizeLong() + 8;
    reports_.erase(reports_.begin());
  }
}

// Once, after what was kept: one word for each that is lost would only lose more.
SpokenEvent Outbox::Lost() {
  SpokenEvent event;
  event.pool_uid = std::exchange(lost_of_, std::string());
  event.type = iri::EventType::kWarning;
  event.reason = "EventsDropped";
  event.message = fmt::format("{} events were not told: more than {} waited, and the oldest went",
                              std::exchange(events_lost_, 0),
                              kEventsMax);
  return event;
}

void Outbox::Say(const SpokenEvent& event, pb::HostBatch& batch, size_t& bytes) const {
  pb::HostEvent& out = *batch.add_events();
  out.set_uid(event.uid);
  out.set_pool_uid(event.pool_uid);
  out.set_type(event.type == iri::EventType::kNormal ? "Normal" : "Warning");
  out.set_reason(Short(event.reason));
  out.set_message(Short(event.message));
  bytes += out.ByteSizeLong() + 8;
}

void Outbox::TakeEvents(pb::HostBatch& batch, size_t& bytes, Time now) {
  for (auto it = events_.begin(); it != events_.end() && bytes < limits_.message_bytes;) {
    const EventFate fate = it->uid.empty() ? EventFate::kSay : fate_(it->uid);
    if (fate == EventFate::kKeep) {
      ++it;
      continue;
    }
    if (fate == EventFate::kSay) {
      if (!pace_.Take(now)) return;
      Say(*it, batch, bytes);
    }
    it = events_.erase(it);
  }
  if (events_.empty() && !lost_of_.empty() && pace_.Take(now)) Say(Lost(), batch, bytes);
}

void Outbox::TakeFigures(pb::HostBatch& batch) {
  for (const auto& facts : facts_) FillFacts(facts, *batch.add_facts());
  facts_.clear();
  for (const auto& statistics : statistics_) FillStatistics(statistics, *batch.add_statistics());
  statistics_.clear();
  if (orphans_.has_value()) {
    batch.set_orphans_changed(true);
    for (const auto& orphan : *orphans_) internal::FillOrphan(orphan, *batch.add_orphans());
    orphans_.reset();
  }
}

std::optional<std::string> Outbox::Take(Time now) {
  pb::HostMessage message;
  pb::HostBatch& batch = *message.mutable_batch();
  size_t bytes = 0;
  TakeWords(batch, bytes);
  TakeStatuses(batch, bytes);
  TakeEvents(batch, bytes, now);
  if (bytes < limits_.message_bytes) TakeFigures(batch);
  if (batch.ByteSizeLong() == 0) return std::nullopt;
  return message.SerializeAsString();
}

}  // namespace berth::poollet
