// SPDX-License-Identifier: Apache-2.0
#include "apiserver/http/usage_reads.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "apis/compute/machine.h"
#include "apis/compute/machine_pool.h"
#include "apis/core/pool_parts.h"
#include "apis/placement.h"
#include "apis/storage/bucket_pool.h"
#include "apis/storage/volume_pool.h"
#include "apiserver/cache/keys.h"
#include "apiserver/http/answers.h"
#include "apiserver/http/negotiation.h"
#include "apiserver/registry/write_parts.h"
#include "base/strings.h"
#include "meta/json.h"
#include "meta/value.h"
#include "rt/sleep.h"

namespace berth::apiserver {
namespace {

namespace v1 = apis::meta_v1;

v1::Measured MeasuredOf(const fleet::Statistics& statistics) {
  const auto bytes = [](int64_t amount) {
    return meta::Quantity(amount, meta::Quantity::Format::kBinarySi);
  };
  v1::Measured out;
  out.cpu = meta::Quantity::Milli(std::llround(statistics.cpu_cores * 1000));
  out.memory = bytes(statistics.memory_bytes);
  out.disk = bytes(statistics.disk_bytes);
  out.network_received_bytes = statistics.network_receive_bytes;
  out.network_sent_bytes = statistics.network_send_bytes;
  out.load = statistics.load;
  out.time = statistics.time;
  return out;
}

std::string_view ContactName(fleet::PoolHealth::Contact contact) {
  switch (contact) {
    case fleet::PoolHealth::Contact::kConnected: return v1::kContactConnected;
    case fleet::PoolHealth::Contact::kAway: return v1::kContactAway;
    case fleet::PoolHealth::Contact::kSilent: return v1::kContactSilent;
  }
  return "";
}

v1::Usage UsageOf(const meta::Object& object) {
  v1::Usage usage;
  usage.api_version = v1::kUsageApiVersion;
  usage.kind = v1::kUsageKind;
  const meta::ObjectMeta& metadata = object.metadata();
  usage.metadata.name = metadata.name;
  usage.metadata.namespace_ = metadata.namespace_;
  usage.metadata.uid = metadata.uid;
  return usage;
}

// The parts that the three kinds of pools have alike.
template <class Pool>
void ReadPool(const meta::Object& object, v1::Usage& usage) {
  const auto& pool = object.as<Pool>();
  if (pool.spec.host_ref) usage.host = pool.spec.host_ref->name;
  usage.hardware = pool.status.facts;
}

void ShowHealth(const fleet::PoolHealth& health, Time now, v1::Usage& usage) {
  usage.contact = ContactName(health.contact);
  const bool is_connected = health.contact == fleet::PoolHealth::Contact::kConnected;
  usage.heartbeat_age_ms =
      (now - (is_connected ? health.last_grant : health.silent_since)).millis();
}

// The figures of one UID, "" for the host, that the pool's host has sent.
void ReadMeasured(const fleet::Fleet& fleet,
                  const std::string& pool_uid,
                  const std::string& uid,
                  v1::Usage& usage) {
  for (const fleet::Statistics& statistics : fleet.StatisticsOf(pool_uid)) {
    if (statistics.uid == uid) usage.used = MeasuredOf(statistics);
  }
}

bool IsElsewhere(const Hosts& hosts) { return hosts.fleet == nullptr && !hosts.leader.empty(); }

// A list has at most this many in one answer, whatever was asked for.
constexpr size_t kPageMax = 500;
constexpr size_t kPerTurn = 64;

std::string ListHead(const ListPage& page) {
  meta::Value metadata = meta::Value::Object();
  metadata.Set("resourceVersion", FormatResourceVersion(page.revision));
  if (!page.continue_token.empty()) metadata.Set("continue", page.continue_token);
  return R"({"apiVersion":")" + std::string(v1::kUsageApiVersion) + R"(","kind":")" +
         std::string(v1::kUsageListKind) + R"(","metadata":)" + meta::WriteJson(metadata) +
         R"(,"items":[)";
}

}  // namespace

UsageReads::Healths UsageReads::ReadHealths() const {
  Healths healths;
  if (deps_.hosts.fleet == nullptr) return healths;
  for (fleet::PoolHealth& health : deps_.hosts.fleet->Health()) {
    std::string uid = health.pool_uid;
    healths.insert_or_assign(std::move(uid), std::move(health));
  }
  return healths;
}

rt::Task<Status> UsageReads::LearnMode(meta::Object object, std::shared_ptr<Modes> modes) const {
  if (apis::IsPool(object.kind()) || apis::IsBound(object)) co_return OkStatus();
  const auto& reference = apis::PoolRefOf(object);
  if (!reference || modes->contains(reference->name)) co_return OkStatus();
  const meta::KindInfo& kind = apis::compute::kMachinePoolKind;
  ObjectKey key{.namespace_ = "", .name = reference->name};
  const auto stored = co_await deps_.registry.Get(kind, std::move(key), std::string());
  if (stored.status().Is(Reason::kCancelled)) co_return stored.status();
  std::string& mode = (*modes)[reference->name];
  if (!stored.ok()) co_return OkStatus();  // the figures of others are shown all the same
  const Result<meta::Object> pool = Decode(kind, *stored);
  if (pool.ok()) mode = apis::PoolTermsOf(*pool).mode;
  co_return OkStatus();
}

v1::Usage UsageReads::Of(const meta::Object& object,
                         const Healths& healths,
                         const Modes& modes) const {
  return apis::IsPool(object.kind()) ? OfPool(object, healths) : OfMachine(object, modes);
}

v1::Usage UsageReads::OfPool(const meta::Object& pool, const Healths& healths) const {
  v1::Usage usage = UsageOf(pool);
  if (&pool.kind() == &apis::compute::kMachinePoolKind) {
    ReadPool<apis::compute::MachinePool>(pool, usage);
  } else if (&pool.kind() == &apis::storage::kVolumePoolKind) {
    ReadPool<apis::storage::VolumePool>(pool, usage);
  } else {
    ReadPool<apis::storage::BucketPool>(pool, usage);
  }
  const meta::ObjectMeta& metadata = pool.metadata();
  if (deps_.hosts.rooms != nullptr) {
    if (auto room = deps_.hosts.rooms->RoomOf(pool.kind(), metadata.name)) {
      usage.objects = room->objects;
      usage.capacity = std::move(room->capacity);
      usage.allocated = std::move(room->allocated);
      usage.free = std::move(room->free);
    }
  }
  if (const auto health = healths.find(metadata.uid); health != healths.end()) {
    ShowHealth(health->second, deps_.loop.Now(), usage);
  }
  if (deps_.hosts.fleet != nullptr) {
    ReadMeasured(*deps_.hosts.fleet, metadata.uid, "", usage);
    for (fleet::Orphan& orphan : deps_.hosts.fleet->OrphansOf(metadata.uid)) {
      usage.orphans.push_back({.kind = std::move(orphan.kind),
                               .namespace_ = std::move(orphan.namespace_),
                               .name = std::move(orphan.name),
                               .uid = std::move(orphan.uid),
                               .state = std::move(orphan.state)});
    }
  }
  return usage;
}

v1::Usage UsageReads::OfMachine(const meta::Object& object, const Modes& modes) const {
  v1::Usage usage = UsageOf(object);
  usage.state = object.as<apis::compute::Machine>().status.state;
  const auto& placement = apis::PlacementOf(object);
  if (!placement || placement->pool_uid.empty()) {
    // In API mode the reference is the assignment, whoever wrote it (PROTOCOL 4.1).
    const auto& reference = apis::PoolRefOf(object);
    const auto mode = reference ? modes.find(reference->name) : modes.end();
    if (mode != modes.end() && mode->second == apis::core::kPoolModeApi) usage.pool = mode->first;
    return usage;
  }
  usage.pool = placement->pool;
  if (deps_.hosts.fleet != nullptr) {
    ReadMeasured(*deps_.hosts.fleet, placement->pool_uid, object.metadata().uid, usage);
  }
  return usage;
}

rt::Task<Result<net::HttpResponse>> UsageReads::Answer(CallPtr call) const {
  if (IsElsewhere(deps_.hosts)) co_return deps_.hosts.Missing();
  const meta::KindInfo& kind = *call->info.kind;
  ObjectKey key{.namespace_ = call->info.namespace_, .name = call->info.name};
  if (kind.scope == meta::Scope::kCluster) key.namespace_.clear();
  CO_TRY(const auto stored, co_await deps_.registry.Get(kind, std::move(key), std::string()));
  CO_TRY(const meta::Object object, Decode(kind, stored));
  const auto modes = std::make_shared<Modes>();
  CO_TRY_STATUS(co_await LearnMode(object, modes));
  co_return JsonTextAnswer(200, meta::EncodeJsonOf(Of(object, ReadHealths(), *modes)));
}

bool UsageReads::IsList(const Call& call) {
  return call.info.kind != nullptr && call.info.verb == "list" && call.info.subresource.empty() &&
         std::ranges::find(call.info.kind->subresources, "usage") !=
             call.info.kind->subresources.end() &&
         AsksForUsages(call.http.headers.Get("Accept"));
}

rt::Task<Result<net::HttpResponse>> UsageReads::AnswerList(CallPtr call) const {
  if (IsElsewhere(deps_.hosts)) co_return deps_.hosts.Missing();
  RequestInfo each = call->info;
  each.verb = "get";
  each.subresource = "usage";
  CO_TRY_STATUS(deps_.authorizer.Check(call->identity, each));
  CO_TRY(const auto limit, QueryCount(call->query, "limit"));
  ListRequest request;
  CO_TRY(request.selection, ReadSelection(*call));
  const size_t wanted = static_cast<size_t>(limit.value_or(0));
  request.limit = wanted == 0 ? kPageMax : std::min(wanted, kPageMax);
  request.continue_token = call->query.Get("continue");
  request.wants_remaining = false;
  const meta::KindInfo& kind = *call->info.kind;
  CO_TRY(const ListPage page, co_await deps_.registry.List(kind, std::move(request)));

  std::vector<std::string> unreadable;
  for (const PassedOver& one : page.passed_over) unreadable.push_back(one.key);
  const Healths healths = ReadHealths();
  const auto modes = std::make_shared<Modes>();
  std::string text = ListHead(page);
  bool is_first = true;
  for (size_t i = 0; i < page.items.size(); ++i) {
    // Others have their turns in between: each is decoded.
    if (i % kPerTurn == kPerTurn - 1) CO_TRY_STATUS(co_await rt::Yield());
    const Result<meta::Object> object = Decode(kind, page.items[i]);
    if (!object.ok()) {
      unreadable.push_back("number " + std::to_string(i + 1) + " of the page");
      continue;
    }
    CO_TRY_STATUS(co_await LearnMode(*object, modes));
    if (!std::exchange(is_first, false)) text += ',';
    text += meta::EncodeJsonOf(Of(*object, healths, *modes));
  }
  text += "]}";
  for (const std::string& name : unreadable) {
    call->warnings.push_back(std::string(kind.plural) + " " + Quote(name) +
                             " cannot be read and is left out");
  }
  co_return JsonTextAnswer(200, text);
}

}  // namespace berth::apiserver
