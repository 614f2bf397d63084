// SPDX-License-Identifier: Apache-2.0
#include "gateway/rules/pool_plan.h"

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include "apis/compute/machine_pool.h"
#include "apis/core/taints.h"
#include "apis/storage/bucket_pool.h"
#include "apis/storage/volume_pool.h"
#include "base/strings.h"
#include "gateway/rules/limits.h"
#include "iri/local_disk.h"
#include "meta/names.h"
#include "meta/quantity.h"

namespace berth::gateway {
namespace {

using apis::compute::kMachinePoolKind;
using apis::compute::MachinePool;
using apis::storage::BucketPool;
using apis::storage::kBucketPoolKind;
using apis::storage::kVolumePoolKind;
using apis::storage::VolumePool;
namespace core = apis::core;

// Calls `visit` with the pool as its own type. Everything that pools share is written once.
template <class Visit>
auto WithPool(meta::Object& pool, Visit visit) {
  if (&pool.kind() == &kMachinePoolKind) return visit(pool.as<MachinePool>());
  if (&pool.kind() == &kVolumePoolKind) return visit(pool.as<VolumePool>());
  return visit(pool.as<BucketPool>());
}
template <class Visit>
auto WithPool(const meta::Object& pool, Visit visit) {
  if (&pool.kind() == &kMachinePoolKind) return visit(pool.as<MachinePool>());
  if (&pool.kind() == &kVolumePoolKind) return visit(pool.as<VolumePool>());
  return visit(pool.as<BucketPool>());
}

core::Taint TaintOf(std::string_view text) {
  core::Taint taint;
  const size_t colon = text.rfind(':');
  taint.effect = text.substr(colon + 1);
  const std::string_view rest = text.substr(0, colon);
  const size_t equals = rest.find('=');
  taint.key = rest.substr(0, equals);
  if (equals != std::string_view::npos) taint.value = rest.substr(equals + 1);
  return taint;
}

Result<core::ResourceList> LimitsOf(const pki::JoinGrant& grant) {
  core::ResourceList limits;
  for (const auto& [name, text] : grant.limits) {
    const auto quantity = meta::Quantity::Parse(text);
    if (!quantity.ok()) return quantity.status().Wrap("limit " + name + " of the join token");
    limits[name] = *quantity;
  }
  return limits;
}

Status CheckOwner(const meta::Object& pool, const std::string& host) {
  const PoolFace face = FaceOf(pool);
  if (!face.host.empty() && face.host != host) {
    return Forbidden("pool " + face.name + " belongs to host " + face.host);
  }
  if (face.mode == core::kPoolModeApi) {
    return Forbidden("pool " + face.name + " is run by a poollet that uses the API");
  }
  return OkStatus();
}

Status CheckGranted(const agent::PoolAnnounce& announce, const pki::JoinGrant& grant) {
  if (std::ranges::find(grant.pool_kinds, announce.kind()) == grant.pool_kinds.end()) {
    return Forbidden("the host's token is not for pools of kind " +
                     CleanText(announce.kind(), kWordMax));
  }
  if (!meta::IsDnsSubdomain(announce.name())) {
    return Forbidden("pool name " + Quote(CleanText(announce.name(), kWordMax)) +
                     ": must be a DNS subdomain");
  }
  if (!pki::MatchesPattern(grant.pool_pattern, announce.name())) {
    return Forbidden("the host's token is for pools named " + grant.pool_pattern + ", not " +
                     announce.name());
  }
  return OkStatus();
}

std::vector<const agent::ClassOffer*> ClassesOf(
    const google::protobuf::RepeatedPtrField<agent::ClassOffer>& classes) {
  std::vector<const agent::ClassOffer*> kept;
  std::set<std::string_view> seen;
  for (const agent::ClassOffer& offer : classes) {
    if (kept.size() >= kClassesMax) break;
    if (meta::IsDnsSubdomain(offer.name()) && seen.insert(offer.name()).second) {
      kept.push_back(&offer);
    }
  }
  return kept;
}

// How many of the class fit if nothing else runs.
int64_t CountOf(const agent::ClassOffer& offer, const fleet::Vector& capacity) {
  if (offer.quantity() > 0) return offer.quantity();
  int64_t count = std::numeric_limits<int64_t>::max();
  for (const auto& [name, amount] : FromProto(offer.capabilities())) {
    const auto room = capacity.find(name);
    if (room == capacity.end() || amount <= 0) continue;
    count = std::min(count, room->second / amount);
  }
  return count == std::numeric_limits<int64_t>::max() ? 0 : count;
}

void SetClasses(const google::protobuf::RepeatedPtrField<agent::ClassOffer>& classes,
                const fleet::Vector& capacity,
                meta::Object& pool) {
  std::vector<core::LocalObjectReference> names;
  core::ResourceList amounts = apis::ToResources({capacity.begin(), capacity.end()});
  const bool is_machine = &pool.kind() == &kMachinePoolKind;
  for (const agent::ClassOffer* offer : ClassesOf(classes)) {
    names.push_back({.name = offer->name()});
    if (const int64_t count = CountOf(*offer, capacity); count > 0) {
      amounts[is_machine ? core::MachineClassResource(offer->name())
                         : core::VolumeClassResource(offer->name())] = meta::Quantity(count);
    }
  }
  if (is_machine) {
    pool.as<MachinePool>().status.available_machine_classes = std::move(names);
    pool.as<MachinePool>().status.capacity = std::move(amounts);
  } else if (&pool.kind() == &kVolumePoolKind) {
    pool.as<VolumePool>().status.available_volume_classes = std::move(names);
    pool.as<VolumePool>().status.capacity = std::move(amounts);
  } else {
    pool.as<BucketPool>().status.available_bucket_classes = std::move(names);
  }
}

void SetAllocatable(const fleet::Vector& capacity,
                    const fleet::Vector& allocated,
                    meta::Object& pool) {
  if (&pool.kind() == &kBucketPoolKind) return;
  apis::Amounts left;
  for (const auto& [name, amount] : capacity) {
    const auto used = allocated.find(name);
    left[name] = std::max<int64_t>(0, amount - (used == allocated.end() ? 0 : used->second));
  }
  if (&pool.kind() == &kMachinePoolKind) {
    pool.as<MachinePool>().status.allocatable = apis::ToResources(left);
  } else {
    pool.as<VolumePool>().status.allocatable = apis::ToResources(left);
  }
}

// What a host says of itself, whatever its runtimes say.
std::vector<std::pair<std::string_view, std::string>> OwnFacts(const agent::HostFacts& host) {
  return {{"hostname", host.hostname()},
          {"os", host.os()},
          {"kernel", host.kernel()},
          {"architecture", host.architecture()},
          {"machineID", host.machine_id()},
          {"cpus", host.cpus() > 0 ? std::to_string(host.cpus()) : ""},
          {"memoryBytes", host.memory_bytes() > 0 ? std::to_string(host.memory_bytes()) : ""},
          {"storageBytes", host.storage_bytes() > 0 ? std::to_string(host.storage_bytes()) : ""}};
}

bool IsOwnFact(std::string_view key) {
  return std::ranges::any_of(OwnFacts({}), [key](const auto& own) { return own.first == key; });
}

std::map<std::string, std::string> FactsOf(const agent::PoolAnnounce& announce,
                                           const agent::HostFacts& host) {
  std::map<std::string, std::string> facts = CleanFacts(announce.facts());
  for (auto& [key, value] : CleanFacts(host.labels())) facts.emplace(key, value);
  for (const auto& [key, value] : OwnFacts(host)) {
    if (!value.empty()) facts[std::string(key)] = CleanText(value, kWordMax);
  }
  return facts;
}

std::string_view NameOf(ConditionStatus status) {
  switch (status) {
    case ConditionStatus::kTrue: return "True";
    case ConditionStatus::kFalse: return "False";
    case ConditionStatus::kUnknown: return "Unknown";
  }
  return "Unknown";
}

// The one-word state that older clients look at.
void SetState(meta::Object& pool, ConditionStatus ready) {
  const bool is_ready = ready == ConditionStatus::kTrue;
  if (&pool.kind() == &kMachinePoolKind) {
    pool.as<MachinePool>().status.state = is_ready ? "Ready" : "Offline";
  } else if (&pool.kind() == &kVolumePoolKind) {
    pool.as<VolumePool>().status.state = is_ready ? "Available" : "Unavailable";
  } else {
    pool.as<BucketPool>().status.state = is_ready ? "Available" : "Unavailable";
  }
}

// Disks of a host cannot be used from another one. "" if nothing is said.
std::string ReachSaid(const agent::PoolAnnounce& announce) {
  const auto said = announce.facts().find(std::string(iri::kVolumeReachFact));
  const bool is_host = said != announce.facts().end() && said->second == iri::kHostReach;
  return is_host ? std::string(apis::storage::kReachHost) : std::string();
}

// The host is back: what its drain did to the pool is undone.
template <class Pool>
void EndDrain(Pool& pool) {
  auto& annotations = pool.metadata.annotations;
  if (annotations.erase(std::string(core::kDrainCordonedAnnotation)) > 0) {
    pool.spec.unschedulable = false;
  }
  annotations.erase(std::string(core::kDrainRequestedAnnotation));
  annotations.erase(std::string(core::kDrainDoneAnnotation));
}

bool IsDrained(const std::map<std::string, std::string>& annotations) {
  const auto request = annotations.find(std::string(core::kDrainRequestedAnnotation));
  const auto done = annotations.find(std::string(core::kDrainDoneAnnotation));
  return request != annotations.end() && done != annotations.end() &&
         request->second == done->second;
}

}  // namespace

const meta::KindInfo* PoolKindNamed(std::string_view name) {
  if (name == kMachinePoolKind.kind) return &kMachinePoolKind;
  if (name == kVolumePoolKind.kind) return &kVolumePoolKind;
  if (name == kBucketPoolKind.kind) return &kBucketPoolKind;
  return nullptr;
}

Result<meta::Object> PlanPool(const agent::PoolAnnounce& announce,
                              const std::optional<meta::Object>& before,
                              const Announcer& announcer) {
  const pki::JoinGrant& grant = announcer.record.grant;
  const meta::KindInfo* kind = PoolKindNamed(announce.kind());
  if (kind == nullptr) {
    return Forbidden("no pool has the kind " + Quote(CleanText(announce.kind(), kWordMax)));
  }
  TRY_STATUS(CheckGranted(announce, grant));
  if (before) TRY_STATUS(CheckOwner(*before, announcer.host));
  TRY(core::ResourceList limits, LimitsOf(grant));
  meta::Object pool = before ? *before : meta::Object(*kind);
  const bool is_first = FaceOf(pool).host.empty();
  pool.metadata().name = announce.name();
  WithPool(pool, [&](auto& it) {
    if (it.spec.provider_id.empty()) {
      it.spec.provider_id = CleanText(announce.provider_id(), kWordMax * 2);
    }
    it.spec.host_ref = core::LocalObjectReference{.name = announcer.host};
    it.metadata.annotations.erase(std::string(kOffAnnotation));
    if (!announcer.is_leaving) EndDrain(it);
    if constexpr (requires { it.spec.reach; }) {
      // Its runtime may have been too late for the first announcement.
      if (it.spec.reach.empty()) it.spec.reach = ReachSaid(announce);
    }
    if (!is_first) return;  // from then on the operator decides
    for (const auto& [key, value] : grant.labels) it.metadata.labels.emplace(key, value);
    for (const auto& [name, limit] : limits) it.spec.limits.emplace(name, limit);
    if (before) return;
    for (const std::string& taint : grant.taints) it.spec.taints.push_back(TaintOf(taint));
  });
  return pool;
}

void ApplyAnnounce(const agent::PoolAnnounce& announce,
                   const agent::HostFacts& host,
                   const Announcer& announcer,
                   WallTime now,
                   meta::Object& pool) {
  const WallTime seconds = WallTime::FromSeconds(now.seconds());
  WithPool(pool, [&](auto& it) {
    it.status.agent = core::PoolAgent{.mode = std::string(core::kPoolModeSession),
                                      .version = CleanText(announcer.poollet_version, kWordMax),
                                      .session_since = seconds,
                                      .lease_seconds = LeaseSeconds(announcer.lease)};
    it.status.facts = FactsOf(announce, host);
    if (announcer.is_leaving) return;
    std::erase_if(it.status.conditions,
                  [](const auto& item) { return item.type == core::kPoolDrained; });
  });
  const PoolFace face = FaceOf(pool);
  const fleet::PoolFacts facts = FromProto(face.uid, announce.capacity(), face.limits);
  SetClasses(announce.classes(), facts.capacity, pool);
  SetAllocatable(facts.capacity, facts.allocated, pool);
  SetPoolCondition(pool,
                   {.type = core::kPoolReady,
                    .status = ConditionStatus::kTrue,
                    .reason = "Connected",
                    .message = "the host " + announcer.host + " is connected"},
                   now);
}

void ApplyFacts(const agent::PoolFacts& facts, meta::Object& pool) {
  const PoolFace face = FaceOf(pool);
  const fleet::PoolFacts figures = FromProto(face.uid, facts.facts(), face.limits);
  if (facts.classes_changed()) {
    SetClasses(facts.classes(), figures.capacity, pool);
  } else if (&pool.kind() != &kBucketPoolKind) {
    // The classes' counts stay as they were announced.
    core::ResourceList amounts =
        apis::ToResources({figures.capacity.begin(), figures.capacity.end()});
    auto& capacity = &pool.kind() == &kMachinePoolKind ? pool.as<MachinePool>().status.capacity
                                                       : pool.as<VolumePool>().status.capacity;
    for (const auto& [name, amount] : capacity) {
      if (name.starts_with("class/")) amounts.emplace(name, amount);
    }
    capacity = std::move(amounts);
  }
  SetAllocatable(figures.capacity, figures.allocated, pool);
}

bool ApplyRuntimeFacts(const agent::PoolFacts& facts, meta::Object& pool) {
  return WithPool(pool, [&](auto& it) {
    bool has_changed = false;
    for (auto& [key, value] : CleanFacts(facts.runtime_facts())) {
      const auto known = it.status.facts.find(key);
      const bool is_known = known != it.status.facts.end();
      const bool is_kept = is_known && (IsOwnFact(key) || known->second == value);
      if (is_kept || (!is_known && it.status.facts.size() >= kPoolFactsMax)) continue;
      it.status.facts[key] = std::move(value);
      has_changed = true;
    }
    return has_changed;
  });
}

int32_t LeaseSeconds(Duration lease) {
  return static_cast<int32_t>((lease + Duration::Seconds(1) - Duration::Nanos(1)).seconds());
}

bool ShortenLease(meta::Object& pool, Duration lease) {
  return WithPool(pool, [&](auto& it) {
    auto& agent = it.status.agent;
    if (!agent || agent->lease_seconds <= LeaseSeconds(lease)) return false;
    agent->lease_seconds = LeaseSeconds(lease);
    return true;
  });
}

bool SetPoolCondition(meta::Object& pool, const PoolCondition& condition, WallTime now) {
  if (condition.type == core::kPoolReady) SetState(pool, condition.status);
  return WithPool(pool, [&](auto& it) {
    auto& conditions = it.status.conditions;
    auto found = std::ranges::find_if(
        conditions, [&](const auto& item) { return item.type == condition.type; });
    if (found == conditions.end()) {
      found = conditions.emplace(conditions.end());
      found->type = condition.type;
    }
    const std::string_view status = NameOf(condition.status);
    const std::string message = CleanText(condition.message, kTextMax);
    const bool changed =
        found->status != status || found->reason != condition.reason || found->message != message;
    // A planned absence is counted from the goodbye, also of a pool that was not ready before.
    const bool goes_away =
        found->reason != condition.reason && condition.reason == kPlannedAbsenceReason;
    if (found->status != status || goes_away) {
      found->last_transition_time = WallTime::FromSeconds(now.seconds());
    }
    found->status = status;
    found->reason = condition.reason;
    found->message = message;
    return changed;
  });
}

PoolFace FaceOf(const meta::Object& pool) {
  PoolFace face;
  face.kind = &pool.kind();
  face.name = pool.metadata().name;
  face.uid = pool.metadata().uid;
  face.is_deleting = pool.metadata().deletion_timestamp.has_value();
  const auto& annotations = pool.metadata().annotations;
  if (const auto found = annotations.find(std::string(kPurgeOrphansAnnotation));
      found != annotations.end()) {
    face.purge = found->second;
  }
  const auto approval = annotations.find(std::string(kApproveDeletionsAnnotation));
  face.approves_deletions = approval != annotations.end() && approval->second == "true";
  const auto off = annotations.find(std::string(kOffAnnotation));
  face.is_off = off != annotations.end() && off->second == "true";
  face.is_drained = IsDrained(annotations);
  WithPool(pool, [&](const auto& it) {
    if (it.spec.host_ref) face.host = it.spec.host_ref->name;
    if (it.status.agent) {
      face.mode = it.status.agent->mode;
      const Duration said = Duration::Seconds(it.status.agent->lease_seconds);
      face.lease = std::clamp(said, Duration(), kLeaseMax);
    }
    for (const auto& condition : it.status.conditions) {
      if (condition.type != core::kPoolReady || condition.reason != kPlannedAbsenceReason) continue;
      face.away_since = condition.last_transition_time;
    }
    face.limits = apis::ToAmounts(it.spec.limits);
  });
  return face;
}

bool RequestDrain(meta::Object& pool, WallTime now) {
  return WithPool(pool, [&](auto& it) {
    auto& annotations = it.metadata.annotations;
    const std::string key(core::kDrainRequestedAnnotation);
    if (it.spec.unschedulable && annotations.contains(key)) return false;
    if (!it.spec.unschedulable) annotations[std::string(core::kDrainCordonedAnnotation)] = "true";
    it.spec.unschedulable = true;
    annotations.emplace(key, FormatRfc3339(now));
    return true;
  });
}

bool GiveUpDrain(meta::Object& pool) {
  auto& annotations = pool.metadata().annotations;
  const auto request = annotations.find(std::string(core::kDrainRequestedAnnotation));
  if (request == annotations.end()) return false;
  std::string& done = annotations[std::string(core::kDrainDoneAnnotation)];
  if (done == request->second) return false;
  done = request->second;
  return true;
}

}  // namespace berth::gateway
