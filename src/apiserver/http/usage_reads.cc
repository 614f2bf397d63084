// SPDX-License-Identifier: Apache-2.0
#include "apiserver/http/usage_reads.h"

#include <cmath>
#include <utility>

#include "apis/compute/machine.h"
#include "apis/compute/machine_pool.h"
#include "apis/placement.h"
#include "apis/storage/bucket_pool.h"
#include "apis/storage/volume_pool.h"
#include "apiserver/http/answers.h"
#include "apiserver/registry/write_parts.h"
#include "meta/json.h"

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

void ReadHealth(const fleet::Fleet& fleet,
                const std::string& pool_uid,
                Time now,
                v1::Usage& usage) {
  for (const fleet::PoolHealth& health : fleet.Health()) {
    if (health.pool_uid != pool_uid) continue;
    usage.contact = ContactName(health.contact);
    const bool is_connected = health.contact == fleet::PoolHealth::Contact::kConnected;
    usage.heartbeat_age_ms =
        (now - (is_connected ? health.last_grant : health.silent_since)).millis();
  }
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

}  // namespace

v1::Usage UsageReads::OfPool(const meta::Object& pool) const {
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
  if (deps_.hosts.fleet != nullptr) {
    ReadHealth(*deps_.hosts.fleet, metadata.uid, deps_.loop.Now(), usage);
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

v1::Usage UsageReads::OfMachine(const meta::Object& object) const {
  v1::Usage usage = UsageOf(object);
  const auto& placement = apis::PlacementOf(object);
  if (!placement || placement->pool_uid.empty()) return usage;
  usage.pool = placement->pool;
  if (deps_.hosts.fleet != nullptr) {
    ReadMeasured(*deps_.hosts.fleet, placement->pool_uid, object.metadata().uid, usage);
  }
  return usage;
}

rt::Task<Result<net::HttpResponse>> UsageReads::Answer(CallPtr call) const {
  const bool is_elsewhere = deps_.hosts.fleet == nullptr && !deps_.hosts.leader.empty();
  if (is_elsewhere) co_return deps_.hosts.Missing();
  const meta::KindInfo& kind = *call->info.kind;
  ObjectKey key{.namespace_ = call->info.namespace_, .name = call->info.name};
  if (kind.scope == meta::Scope::kCluster) key.namespace_.clear();
  CO_TRY(const auto stored, co_await deps_.registry.Get(kind, std::move(key), std::string()));
  CO_TRY(const meta::Object object, Decode(kind, stored));
  const v1::Usage usage = apis::IsPool(kind) ? OfPool(object) : OfMachine(object);
  co_return JsonTextAnswer(200, meta::EncodeJsonOf(usage));
}

}  // namespace berth::apiserver
