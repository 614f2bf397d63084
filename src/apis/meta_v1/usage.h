// SPDX-License-Identifier: Apache-2.0
// The answer of the subresource `usage` of pools and machines: what is
// promised, free and really used at this moment. It is made when it is asked
// for, from memory; nothing of it is stored.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "meta/object_meta.h"
#include "meta/quantity.h"
#include "meta/type.h"

namespace berth::apis::meta_v1 {

inline constexpr std::string_view kUsageApiVersion = "berth.dev/v1alpha1";
inline constexpr std::string_view kUsageKind = "Usage";
// A list of machines or pools is one of their usages for whoever accepts
// application/json;as=UsageList;g=berth.dev;v=v1alpha1.
inline constexpr std::string_view kUsageListKind = "UsageList";

// How a host was last heard of.
inline constexpr std::string_view kContactConnected = "Connected";
inline constexpr std::string_view kContactAway = "Away";
inline constexpr std::string_view kContactSilent = "Silent";

struct Measured {
  meta::Quantity cpu;
  meta::Quantity memory;
  meta::Quantity disk;
  int64_t network_received_bytes = 0;
  int64_t network_sent_bytes = 0;
  double load = 0;
  WallTime time;
};
BERTH_DESCRIBE(
    Measured,
    "dev.berth.api.v1alpha1.Measured",
    "What is really used, as the host has measured it.",
    BERTH_FIELD(cpu, "cpu", "Processors, on average since the time before.", {.always = true}),
    BERTH_FIELD(memory, "memory", "Bytes of memory.", {.always = true}),
    BERTH_FIELD(disk, "disk", "Bytes on disks of the host."),
    BERTH_FIELD(network_received_bytes, "networkReceivedBytes", "A counter."),
    BERTH_FIELD(network_sent_bytes, "networkSentBytes", "A counter."),
    BERTH_FIELD(load, "load", "Of a host: how many processors are asked for."),
    BERTH_FIELD(time, "time", "When the figures came."))

// Something on a host that the store does not know.
struct UsageOrphan {
  std::string kind;
  std::string namespace_;
  std::string name;
  std::string uid;
  std::string state;
};
BERTH_DESCRIBE(UsageOrphan,
               "dev.berth.api.v1alpha1.UsageOrphan",
               "Something that runs on the pool's host and that the store does not know.",
               BERTH_FIELD(kind, "kind", "Machine, Volume or Bucket.", {.always = true}),
               BERTH_FIELD(namespace_, "namespace", "As its host remembers it."),
               BERTH_FIELD(name, "name", "As its host remembers it.", {.always = true}),
               BERTH_FIELD(uid, "uid", "The UID that it has there.", {.always = true}),
               BERTH_FIELD(state, "state", "What the runtime says of it."))

using Amounts = std::map<std::string, meta::Quantity>;

struct Usage {
  std::string api_version;
  std::string kind;
  meta::ObjectMeta metadata;
  std::string pool;
  std::string state;
  std::string host;
  std::string contact;
  std::optional<int64_t> heartbeat_age_ms;
  std::optional<int64_t> objects;
  Amounts capacity;
  Amounts allocated;
  Amounts free;
  std::optional<Measured> used;
  std::map<std::string, std::string> hardware;
  std::vector<UsageOrphan> orphans;
};
BERTH_DESCRIBE(
    Usage,
    "dev.berth.api.v1alpha1.Usage",
    "What of a pool or by a machine is promised, free and used.",
    BERTH_FIELD(api_version, "apiVersion", "berth.dev/v1alpha1."),
    BERTH_FIELD(kind, "kind", "Usage."),
    BERTH_FIELD(metadata, "metadata", "Name, namespace and UID of the object."),
    BERTH_FIELD(pool, "pool", "Of a machine: the pool that it is on."),
    BERTH_FIELD(state, "state", "Of a machine: its state."),
    BERTH_FIELD(host, "host", "Of a pool: the host that runs it."),
    BERTH_FIELD(contact,
                "contact",
                "Of a pool: Connected, Away (its host said goodbye and is "
                "expected back) or "
                "Silent; absent for pools without a session.",
                {.values = {"Connected", "Away", "Silent"}}),
    BERTH_FIELD(heartbeat_age_ms, "heartbeatAgeMs", "How long ago the host was last heard of."),
    BERTH_FIELD(objects, "objects", "How many objects are placed on the pool."),
    BERTH_FIELD(capacity, "capacity", "What the pool has, as far as its limits let it count."),
    BERTH_FIELD(allocated, "allocated", "What is promised to objects that are placed there."),
    BERTH_FIELD(free, "free", "What can still be placed, by the server's and the host's account."),
    BERTH_FIELD(used, "used", "What the machine, or the whole host of a pool, really uses."),
    BERTH_FIELD(hardware, "hardware", "What the host says of itself."),
    BERTH_FIELD(
        orphans,
        "orphans",
        "Of a pool: what its host has and the store does not know; left alone until somebody "
        "adopts or purges it."))

}  // namespace berth::apis::meta_v1
