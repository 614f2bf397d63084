// SPDX-License-Identifier: Apache-2.0
// Objects that can be decoded and that no validation would have let in, put into the store by hand:
// negative and absurd amounts, empty names and references, numbers at their ends, places and claims
// that are none. For tests: whoever follows objects must go on with the others (ADR 0038).
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apiserver/cache/keys.h"
#include "apiserver/registry/registry_world.h"
#include "base/check.h"
#include "meta/at_rest.h"
#include "meta/json.h"

namespace berth::apiserver {

// Past the API, as somebody with etcdctl would.
inline void PutByHand(RegistryWorld& world, const meta::Object& object) {
  const meta::ObjectMeta& metadata = object.metadata();
  store::Txn txn;
  txn.ops.push_back(store::Op::Put(StoreKey(object.kind(), {metadata.namespace_, metadata.name}),
                                   meta::EncodeAtRest(object)));
  CHECK(world.Run(world.store().Commit(std::move(txn))).ok());
  CHECK(world.Run(world.cache().CatchUp()).ok());
}
inline void RemoveByHand(RegistryWorld& world, const meta::Object& object) {
  const meta::ObjectMeta& metadata = object.metadata();
  store::Txn txn;
  txn.ops.push_back(
      store::Op::Delete(StoreKey(object.kind(), {metadata.namespace_, metadata.name})));
  CHECK(world.Run(world.store().Commit(std::move(txn))).ok());
  CHECK(world.Run(world.cache().CatchUp()).ok());
}

namespace internal {

struct PoisonText {
  std::string_view plural;
  std::string_view name;
  std::string_view rest;           // of the object, behind its metadata
  std::string_view metadata = {};  // beyond name, namespace and UID
};

inline constexpr PoisonText kPoisons[] = {
    // Pools.
    {"machinepools",
     "p-negative",
     R"("spec":{"limits":{"cpu":"-1","memory":"-9E"}},"status":{"state":"Ready","agent":{"mode":
     "Session","leaseSeconds":-2147483648},"capacity":{"cpu":"-8","memory":"-8E","":"-1"},
     "conditions":[{"type":"Ready","status":"True"}],"availableMachineClasses":[{"name":""},
     {"name":"small"},{"name":"small"}]})"},
    {"machinepools",
     "p-absurd",
     R"("spec":{"hostRef":{"name":""},"taints":[{"key":"","effect":""},{"key":"x","effect":"What"},
     {"key":"","effect":"NoExecute","timeAdded":"9999-12-31T23:59:59Z"},{"key":"y",
     "effect":"NoExecute","timeAdded":"0001-01-01T00:00:01Z"}]},"status":{"agent":{"mode":"Nonsense",
     "leaseSeconds":2147483647,"sessionSince":"9999-12-31T23:59:59Z"},"capacity":{"cpu":"1e29",
     "memory":"1e29","storage":"1e29"},"availableMachineClasses":[{"name":"small"}],
     "conditions":[{"type":"","status":""},{"type":"Ready","status":"True"},
     {"type":"Ready","status":"False"}]})"},
    {"machinepools",
     "p-counts",
     R"("spec":{},"status":{"state":"Ready","capacity":{"class/machine.small":"-4",
     "class/machine.large":"0","class/machine.":"9223372036854775807",
     "class/machine.x":"9223372036854775783","class/machine.y":"1e29"}})"},
    {"machinepools",
     "p-drained",
     R"("spec":{},"status":{"agent":{"mode":"Session"}})",
     R"("annotations":{"berth.dev/drain-requested":"","berth.dev/purge-orphans":",,*,"},
     "labels":{"":"","zone":"a"},"deletionTimestamp":"9999-12-31T23:59:59Z")"},
    {"machinepools", "", R"("spec":{"taints":[{"key":"a","effect":"NoExecute"}]},"status":{
     "state":"Ready","capacity":{"cpu":"100"},"availableMachineClasses":[{"name":"small"}]})"},
    {"machinepools",
     "a,b=c\n",
     R"("spec":{"taints":[{"key":"a","effect":"NoExecute"}]},"status":{
     "state":"Ready"})",
     R"("annotations":{"berth.dev/drain-requested":"now"})"},
    {"volumepools",
     "p-volumes",
     R"("spec":{"hostRef":{"name":""},"reach":"Nonsense"},"status":{"state":"Available",
     "capacity":{"storage":"-1e29","class/volume.disk":"-1"},"availableVolumeClasses":[{"name":""}]})"},
    {"bucketpools", "p-buckets", R"("spec":{},"status":{"availableBucketClasses":[{"name":""}]})"},
    // Classes.
    {"machineclasses", "c-negative", R"("capabilities":{"cpu":"-1","memory":"-1Gi"})"},
    {"machineclasses",
     "c-absurd",
     R"("capabilities":{"cpu":"1e29","memory":"1e29","share":"1e29"})"},
    {"machineclasses", "c-empty", R"("capabilities":{})"},
    {"machineclasses", "c-unnamed", R"("capabilities":{"":"1"})"},
    {"machineclasses", "", R"("capabilities":{"cpu":"1"})"},
    {"priorityclasses",
     "c-low",
     R"("value":-2147483648,"preemptionPolicy":"Nonsense")",
     R"("annotations":{"berth.dev/preemptible":"true"})"},
    {"priorityclasses", "c-high", R"("value":2147483647,"globalDefault":true)"},
    {"priorityclasses", "", R"("value":0,"globalDefault":true)"},
    // Machines without a place.
    {"machines", "m-empty", R"("spec":{"machineClassRef":{"name":""}},"status":{})"},
    {"machines", "", R"("spec":{"machineClassRef":{"name":"small"}},"status":{})"},
    {"machines", "m-negative", R"("spec":{"machineClassRef":{"name":"c-negative"},"volumes":[
     {"name":"","localDisk":{"sizeLimit":"-1"}}]},"status":{})"},
    {"machines", "m-absurd", R"("spec":{"machineClassRef":{"name":"c-absurd"},"volumes":[
     {"name":"a","localDisk":{"sizeLimit":"1e29"}},{"name":"b","localDisk":{"sizeLimit":"1e29"}},
     {"name":"c","emptyDisk":{"sizeLimit":"-1e29"}}]},"status":{})"},
    {"machines", "m-unnamed", R"("spec":{"machineClassRef":{"name":"c-unnamed"}},"status":{})"},
    {"machines", "m-selects", R"("spec":{"machineClassRef":{"name":"small"},"machinePoolSelector":
     {"":""},"tolerations":[{"key":"","operator":"","effect":"What","tolerationSeconds":-1},
     {"operator":"Nonsense","tolerationSeconds":9223372036854775807}],
     "machinePoolRef":{"name":""}},"status":{})"},
    {"machines", "m-volumes", R"("spec":{"machineClassRef":{"name":"small"},"volumes":[
     {"name":"a","volumeRef":{"name":"v-good"}},{"name":"a","volumeRef":{"name":"v-good"}},
     {"name":"","volumeRef":{"name":""}},{"name":"none"},{"name":"","ephemeral":{}},
     {"name":"x","ephemeral":{"volumeTemplate":{"spec":{"resources":{"storage":"-1"}}}}}]},"status":{})"},
    {"machines", "m-twice", R"("spec":{"machineClassRef":{"name":"small"},"volumes":[
     {"name":"a","volumeRef":{"name":"v-good"}},{"name":"b","volumeRef":{"name":"v-good"}}]},"status":{})"},
    {"machines", "m-nics", R"("spec":{"machineClassRef":{"name":"small"},"networkInterfaces":[
     {"name":"","networkInterfaceRef":{"name":""}},{"name":"e","ephemeral":{}},
     {"name":"f","ephemeral":{"networkInterfaceTemplate":{"spec":{"ips":[{}],"networkRef":{"name":""}}}}}],
     "ignitionRef":{"name":"","key":""},"imagePullSecretRef":{"name":""}},"status":{})"},
    {"machines", "m-wishes", R"("spec":{"machineClassRef":{"name":"small"},"placement":{
     "priorityClassName":"c-high","priority":2147483647,"policy":"Nonsense","onPoolLoss":"Nonsense",
     "affinity":{"preferred":[{"weight":-2147483648,"term":{"topologyKey":""}}]},
     "antiAffinity":{"preferred":[{"weight":-2147483648,"term":{"topologyKey":"zone"}},
     {"weight":2147483647,"term":{"topologyKey":"zone"}}]},
     "spread":[{"topologyKey":"","maxSkew":-2147483648},{"topologyKey":"zone","maxSkew":0,
     "whenUnsatisfiable":"Nonsense","labelSelector":{"matchExpressions":[{"key":"","operator":"What"}]}}]}},
     "status":{})"},
    {"machines", "m-low", R"("spec":{"machineClassRef":{"name":"large"},"placement":{
     "priorityClassName":"c-low","priority":-2147483648,"affinity":{"required":[{"topologyKey":""}]}}},
     "status":{})"},
    {"machines", "m-reserved", R"("spec":{"machineClassRef":{"name":"small"},"placement":{
     "reservationRef":{"name":""},"groupRef":{"name":""}}},"status":{})"},
    {"machines", "m-grouped", R"("spec":{"machineClassRef":{"name":"small"},"placement":{
     "groupRef":{"name":"g-negative"}}},"status":{})"},
    {"machines", "m-reserves", R"("spec":{"machineClassRef":{"name":"small"},"placement":{
     "reservationRef":{"name":"r-counts"}}},"status":{})"},
    // Machines that say that they have a place.
    {"machines", "m-placed", R"("spec":{"machineClassRef":{"name":"c-absurd"},"machinePoolRef":
     {"name":"taken"}},"status":{"placement":{"pool":"taken","poolUID":"$POOL",
     "epoch":9223372036854775807,"boundTime":"9999-12-31T23:59:59Z","resources":{"cpu":"-1e29"}}})"},
    {"machines", "m-back", R"("spec":{"machineClassRef":{"name":"c-negative"},"machinePoolRef":
     {"name":"taken"}},"status":{"placement":{"pool":"","poolUID":"$POOL",
     "epoch":-9223372036854775808,"boundTime":"0001-01-01T00:00:01Z","release":"Nonsense",
     "attempt":-1,"resources":{"cpu":"1e29"}}})"},
    {"machines",
     "m-moves",
     R"("spec":{"machineClassRef":{"name":""},"machinePoolRef":{"name":"taken"},
     "placement":{"onPoolLoss":"Move"}},"status":{"placement":{"pool":"taken","poolUID":"$POOL",
     "epoch":9223372036854775807}})"},
    {"machines",
     "m-replaced",
     R"("spec":{"machineClassRef":{"name":""},"machinePoolRef":{"name":
     "taken"}},"status":{"placement":{"pool":"taken","poolUID":"$POOL","epoch":1}})",
     R"("annotations":{"berth.dev/on-pool-loss":"Replace"},"finalizers":["berth.dev/placement"])"},
    {"machines", "m-abroad", R"("spec":{"machineClassRef":{"name":"small"}},"status":{"placement":{
     "pool":"taken-disks","poolUID":"$DISKS","epoch":1}})"},
    {"machines",
     "m-lost",
     R"("spec":{"machineClassRef":{"name":"small"},"placement":{
     "onPoolLoss":"Move"}},"status":{"placement":{"pool":"gone","poolUID":"nobody","epoch":3,
     "nominated":{"pool":"","poolUID":"","until":"9999-12-31T23:59:59Z"}}})",
     R"("annotations":{"berth.dev/on-pool-loss":"Replace"})"},
    {"machines", "m-nominated", R"("spec":{"machineClassRef":{"name":"large"},"placement":{
     "priority":2147483647}},"status":{"placement":{"epoch":-1,"nominated":{"pool":"taken",
     "poolUID":"$DISKS","until":"0001-01-01T00:00:01Z"}}})"},
    {"machines", "m-epoch", R"("spec":{"machineClassRef":{"name":"small"}},"status":{"placement":{
     "epoch":9223372036854775807}})"},
    {"machines",
     "m-owned",
     R"("spec":{"machineClassRef":{"name":"small"}},"status":{})",
     R"("ownerReferences":[{"apiVersion":"","kind":"","name":"","uid":""},{"apiVersion":
     "berth.dev/v1alpha1","kind":"MachineSet","name":"","uid":"","controller":true,
     "blockOwnerDeletion":true}],"finalizers":["","berth.dev/placement"],"generation":-1)"},
    {"machines",
     "m-going",
     R"("spec":{"machineClassRef":{"name":""}},"status":{})",
     R"("deletionTimestamp":"0001-01-01T00:00:01Z","deletionGracePeriodSeconds":-1,
     "finalizers":["foregroundDeletion","orphan","berth.dev/placement"])"},
    // Storage.
    {"volumes",
     "v-good",
     R"("spec":{"volumeClassRef":{"name":"disk"},"resources":{"storage":"1Gi"}},
     "status":{})"},
    {"volumes", "v-negative", R"("spec":{"volumeClassRef":{"name":"disk"},"resources":
     {"storage":"-1e29","":"-1"},"claimRef":{"name":"","uid":""}},"status":{})"},
    {"volumes", "v-absurd", R"("spec":{"volumeClassRef":{"name":""},"resources":{"storage":"1e29"},
     "volumePoolRef":{"name":""},"claimRef":{"name":"m-gone","uid":"nobody"}},"status":{
     "state":"Nonsense","resources":{"storage":"-1"}})"},
    {"volumes", "v-itself", R"("spec":{"volumeClassRef":{"name":"disk"},"dataSource":{"volumeRef":
     {"name":"v-itself"}}},"status":{"state":"Available"})"},
    {"volumes", "v-copy", R"("spec":{"volumeClassRef":{"name":"disk"},"dataSource":{"volumeRef":
     {"name":""},"volumeSnapshotRef":{"name":""},"osImage":{"image":""}}},"status":{})"},
    {"volumes",
     "v-restored",
     R"("spec":{"volumeClassRef":{"name":"disk"},"resources":{"storage":"-1"},
     "dataSource":{"volumeSnapshotRef":{"name":"s-absurd"}}},"status":{})"},
    {"volumes", "v-abroad", R"("spec":{"volumeClassRef":{"name":"disk"}},"status":{"placement":{
     "pool":"taken","poolUID":"$POOL","epoch":2,"resources":{"storage":"-1"}}})"},
    {"volumes", "", R"("spec":{},"status":{})"},
    {"volumesnapshots", "s-empty", R"("spec":{"volumeRef":{"name":""}},"status":{"size":"-1"})"},
    {"volumesnapshots", "s-absurd", R"("spec":{"volumeRef":{"name":"v-negative"}},"status":{
     "state":"Ready","size":"1e29","placement":{"pool":"taken-disks","poolUID":"$DISKS","epoch":1,
     "resources":{"storage":"1e29","share":"-1"}}})"},
    {"buckets", "b-empty", R"("spec":{"bucketClassRef":{"name":""},"bucketPoolRef":{"name":""}},
     "status":{"placement":{"pool":"taken-disks","poolUID":"$DISKS","epoch":-1}})"},
    // What keeps room, and groups.
    {"reservations", "r-counts", R"("spec":{"count":2147483647,"resources":{}},"status":{})"},
    {"reservations", "r-many", R"("spec":{"count":2147483647,"resources":{"cpu":"1e29"},
     "pools":["","taken"]},"status":{"placement":{"pool":"taken","poolUID":"$POOL","epoch":1}})"},
    {"reservations", "r-negative", R"("spec":{"count":-2147483648,"resources":{"cpu":"-1","":"1"},
     "ttl":"-1s"},"status":{"state":"Accepted","remaining":"-9h","consumers":[{},{},{}],
     "placement":{"pool":"taken","poolUID":"$POOL","epoch":1,"release":"x"}})"},
    {"reservations", "r-long", R"("spec":{"resources":{"cpu":"1m"},"ttl":"9223372036s"},"status":{
     "state":"Accepted","remaining":"9223372036s","placement":{"pool":"taken","poolUID":"$POOL",
     "epoch":1}})"},
    {"reservations", "r-all", R"("spec":{"mode":"All","count":-1,"classRef":{"name":""},
     "selector":{"":""},"pools":["",""],"ttl":"nonsense"},"status":{"state":"Nonsense","pools":[{}]})"},
    {"reservations",
     "r-part",
     R"("spec":{"mode":"All","pools":["taken"],"resources":{"cpu":"1"}},
     "status":{})",
     R"("labels":{"berth.dev/reservation":"r-part"})"},
    {"machinegroups", "g-negative", R"("spec":{"minMembers":-1,"timeout":"-1s"},"status":{"phase":
     "Committed","members":-1,"bound":-1,"committed":{"":"","nobody":"nowhere"}})"},
    {"machinegroups",
     "g-absurd",
     R"("spec":{"minMembers":2147483647,"timeout":"9223372036s"},"status":{})"},
    {"machinesets",
     "x-negative",
     R"("spec":{"replicas":-2147483648,"selector":{},"template":{"spec":
     {"machineClassRef":{"name":""}}},"strategy":{"rollingUpdate":{"maxSurge":-2147483648,
     "maxUnavailable":-2147483648}},"disruptionBudget":{"maxUnavailable":-2147483648}},"status":{})"},
    {"machinesets", "x-absurd", R"("spec":{"replicas":2147483647,"selector":{"matchExpressions":[
     {"key":"","operator":"What"}]},"template":{"metadata":{"labels":{"":""}},"spec":{
     "machineClassRef":{"name":""},"volumes":[{"name":""}]}},"strategy":{"rollingUpdate":{
     "maxSurge":2147483647,"maxUnavailable":2147483647}},"names":"Nonsense"},"status":{})"},
    // What others keep in order.
    {"resourcequotas", "q", R"("spec":{"hard":{"":"-1","requests.memory":"1e29","count/x":"1e29"},
     "scopeSelector":{"matchExpressions":[{"scopeName":"","operator":"","values":[""]}]}},"status":{
     "used":{"requests.memory":"-1e29"}})"},
    {"prefixes", "n-empty", R"("spec":{"ipFamily":"Nonsense","prefixLength":-2147483648,"parentRef":
     {"name":""}},"status":{})"},
    {"prefixes", "n-wide", R"("spec":{"ipFamily":"IPv4","prefixLength":2147483647,"parentRef":
     {"name":"n-wide"}},"status":{"phase":"Allocated","used":["0.0.0.0/0","::/0"]})"},
    {"prefixes", "n-all", R"("spec":{"prefix":"::/0"},"status":{"phase":"Allocated"})"},
    {"prefixallocations", "a-odd", R"("spec":{"prefixLength":-1,"prefixRef":{"name":"n-all"}},
     "status":{"phase":"Allocated","prefix":"0.0.0.0/0"})"},
    {"prefixallocations",
     "a-long",
     R"("spec":{"prefixLength":2147483647,"prefixRef":{"name":"n-all"}},
     "status":{})"},
    {"networkinterfaces", "i-empty", R"("spec":{"networkRef":{"name":""},"ipFamilies":["","IPv9"],
     "ips":[{},{"ephemeral":{}},{"ephemeral":{"prefixTemplate":{"spec":{"prefixLength":-1,
     "parentRef":{"name":""}}}}}],"machineRef":{"name":"","uid":""}},"status":{"ips":["::"]})"},
    {"leases", "", R"("spec":{"leaseDurationSeconds":-2147483648,"leaseTransitions":2147483647,
     "renewTime":"9999-12-31T23:59:59.999999Z"})"},
};

}  // namespace internal

// All of them; those with a namespace are in this one. `pool` and `disks` are the UIDs of a pool of
// machines, "taken", and of one of volumes, "taken-disks": they say that they are there, and so
// take all of their room. The volume "v-good" alone is healthy.
inline std::vector<meta::Object> Poisons(const meta::Scheme& scheme,
                                         const std::string& namespace_,
                                         const std::string& pool,
                                         const std::string& disks) {
  const auto replace = [](std::string& text, std::string_view what, const std::string& with) {
    for (size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += with.size()) {
      text.replace(at, what.size(), with);
    }
  };
  std::vector<meta::Object> objects;
  for (const internal::PoisonText& text : internal::kPoisons) {
    const meta::KindInfo* kind = nullptr;
    for (const meta::KindInfo* one : scheme.kinds()) {
      if (one->plural == text.plural && one->view == nullptr) kind = one;
    }
    CHECK(kind != nullptr) << text.plural;
    std::string json =
        R"({"metadata":{)" + std::string(text.metadata) + "}," + std::string(text.rest) + "}";
    replace(json, "$POOL", pool);
    replace(json, "$DISKS", disks);
    meta::Object& object = objects.emplace_back(*kind);
    const Status decoded = meta::DecodeJson(json, *kind->type, object.data());
    CHECK(decoded.ok()) << text.plural << " " << text.name << ": " << decoded;
    meta::ObjectMeta& metadata = object.metadata();
    metadata.name = text.name;
    if (kind->scope == meta::Scope::kNamespaced) metadata.namespace_ = namespace_;
    metadata.uid = "00000000-0000-4000-8000-00000000" + std::to_string(1000 + objects.size());
  }
  return objects;
}

}  // namespace berth::apiserver
