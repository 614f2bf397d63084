// SPDX-License-Identifier: Apache-2.0
#include "sim/users.h"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <utility>

#include "apis/berth/machine_group.h"
#include "apis/berth/machine_set.h"
#include "apis/compute/machine.h"
#include "apis/compute/machine_class.h"
#include "apis/compute/machine_pool.h"
#include "apis/core/reservation.h"
#include "apis/k8s/priority_class.h"
#include "apis/storage/bucket_class.h"
#include "apis/storage/bucket_pool.h"
#include "apis/storage/volume.h"
#include "apis/storage/volume_class.h"
#include "apis/storage/volume_pool.h"
#include "gateway/rules/pool_plan.h"

namespace berth::sim {
namespace {

using apis::compute::kMachineKind;
using apis::compute::kMachinePoolKind;
using apis::storage::kVolumeKind;
using apis::storage::kVolumePoolKind;

// Of a host; not every one has all of them.
constexpr const meta::KindInfo* kPoolKinds[] = {
    &kMachinePoolKind, &kVolumePoolKind, &apis::storage::kBucketPoolKind};

constexpr std::string_view kClasses[] = {"small", "medium", "large", "huge"};
// The priority class of machines for which those of kSpare may be stopped.
constexpr std::string_view kUrgent = "urgent";
// More of them would leave no room for anything else.
constexpr size_t kUrgentMax = 2;
constexpr size_t kGroupsMax = 3;
// Of the taints that come and go.
constexpr std::string_view kTaintKey = "sim.berth.dev/fire";

// How often the operator looks at the hosts, and how likely a decision is then.
constexpr Duration kOperatorLooks = Duration::Seconds(5);
constexpr double kOperatorDecides = 0.2;

// Machines begin within this part of the time with faults.
constexpr double kRamp = 0.15;

template <class Class>
meta::Object ClassObject(const meta::KindInfo& kind,
                         std::string_view name,
                         const apis::Amounts& amounts) {
  Class made;
  made.metadata.name = std::string(name);
  made.capabilities = apis::ToResources(amounts);
  return meta::Object::Of(kind, std::move(made));
}

meta::Object Priority(std::string_view name, int32_t value, std::string_view preemptible) {
  apis::k8s::PriorityClass made;
  made.metadata.name = std::string(name);
  made.metadata.annotations[std::string(apis::k8s::kPreemptibleAnnotation)] =
      std::string(preemptible);
  made.value = value;
  return meta::Object::Of(apis::k8s::kPriorityClassKind, std::move(made));
}

// Some cannot leave their host, and some need not: for ever, or for a while.
void AddTraits(apis::compute::Machine& machine, Random& random, const Scenario& scenario) {
  if (scenario.tied_share > 0 && random.Chance(scenario.tied_share)) {
    apis::compute::MachineVolume disk;
    disk.name = "scratch";
    disk.local_disk.emplace();
    machine.spec.volumes.push_back(std::move(disk));
  }
  if (scenario.tolerant_share > 0 && random.Chance(scenario.tolerant_share)) {
    apis::core::Toleration toleration;
    toleration.key = std::string(kTaintKey);
    toleration.operator_ = std::string(apis::core::kTolerateExists);
    if (random.Chance(0.5)) {
      toleration.effect = std::string(apis::core::kNoExecute);
      toleration.toleration_seconds = random.Between(1, 30);
    }
    machine.spec.tolerations.push_back(std::move(toleration));
  }
}

}  // namespace

client::Client* Users::client() { return &world_.server()->client(); }

// The outcome of a request is known to nobody if the server dies meanwhile.
void Users::Send(std::string_view what, rt::Task<Status> request) {
  world_.Send(what, std::move(request));
}

rt::Task<Status> Users::PatchObject(client::Client* client,
                                    const meta::KindInfo* kind,
                                    client::ObjectKey key,
                                    std::string body,
                                    client::Subresource subresource) {
  client::WriteOptions options;
  options.subresource = subresource;
  (void)co_await client->Patch(
      *kind, std::move(key), client::PatchType::kMerge, std::move(body), options);
  co_return OkStatus();
}

rt::Task<Status> Users::EditObject(client::Client* client,
                                   std::string uid,
                                   const meta::KindInfo* kind,
                                   client::ObjectKey key,
                                   std::string body) {
  (void)co_await client->Patch(
      *kind, std::move(key), client::PatchType::kMerge, std::move(body), client::WriteOptions());
  editing_.erase(uid);
  co_return OkStatus();
}

rt::Task<Status> Users::DeleteObject(client::Client* client,
                                     const meta::KindInfo* kind,
                                     client::ObjectKey key,
                                     client::DeleteOptions options) {
  (void)co_await client->Delete(*kind, std::move(key), std::move(options));
  co_return OkStatus();
}

rt::Task<Status> Users::CreateObjects(client::Client* client, std::vector<meta::Object> objects) {
  for (meta::Object& object : objects) {
    (void)co_await client->Create(std::move(object), client::WriteOptions());
  }
  co_return OkStatus();
}

void Users::Begin() {
  is_on_ = true;
  std::vector<meta::Object> objects;
  for (const std::string_view name : kClasses) {
    objects.push_back(ClassObject<apis::compute::MachineClass>(
        apis::compute::kMachineClassKind, name, ClassAmounts(name)));
  }
  objects.push_back(ClassObject<apis::storage::VolumeClass>(
      apis::storage::kVolumeClassKind, "fast", {{"tps", 100 << 20}, {"iops", 10'000}}));
  objects.push_back(ClassObject<apis::storage::BucketClass>(
      apis::storage::kBucketClassKind, "standard", {{"tps", 100 << 20}, {"iops", 1'000}}));
  objects.push_back(Priority(kSpare, -10, "true"));
  objects.push_back(Priority(kUrgent, 1000, "false"));
  const auto sets = static_cast<int>(world_.scenario().sets);
  for (int i = 0; i < sets; ++i) {
    apis::berth_dev::MachineSet set;
    set.metadata.namespace_ = kNamespace;
    set.metadata.name = fmt::format("set-{}", i);
    set.spec.replicas = static_cast<int32_t>(world_.scenario().machines / 2 / sets);
    set.spec.selector.match_labels["set"] = set.metadata.name;
    set.spec.machine_template.metadata.labels["set"] = set.metadata.name;
    set.spec.machine_template.spec.machine_class_ref.name = "small";
    if (i % 2 == 0) set.spec.on_pool_loss = std::string(apis::core::kOnPoolLossReplace);
    objects.push_back(meta::Object::Of(apis::berth_dev::kMachineSetKind, std::move(set)));
  }
  const Status made =
      world_.RunOn(world_.server()->loop(), CreateObjects(client(), std::move(objects)));
  CHECK(made.ok()) << made;

  const Scenario& scenario = world_.scenario();
  const double lone = scenario.sets > 0 ? scenario.machines / 2 : scenario.machines;
  const double ramp = scenario.minutes * kRamp;
  for (int i = 0; i < static_cast<int>(lone); ++i) {
    const auto delay = static_cast<int64_t>(random_.Unit() * ramp * 60'000);
    world_.At(Duration::Millis(delay), [this] { CreateMachine(); });
  }
  Repeat(scenario.creations, &Users::Create);
  Repeat(scenario.deletions, &Users::DeleteSome);
  Repeat(scenario.forced_deletions, &Users::ForceSome);
  Repeat(scenario.edits, &Users::EditSome);
  Repeat(scenario.cordons, &Users::CordonSome);
  Repeat(scenario.drains, &Users::DrainSome);
  Repeat(scenario.moves, &Users::MoveSome);
  Repeat(scenario.scalings, &Users::ScaleSome);
  Repeat(scenario.groups, &Users::GroupUp);
  Repeat(scenario.urgent, &Users::CreateUrgent);
  Repeat(scenario.reservations, &Users::Reserve);
  Repeat(scenario.buckets, &Users::CreateOrDeleteBucket);
  Repeat(scenario.taints, &Users::TaintSome);
  if (world_.broken() == Broken::kRogue) Repeat(1, &Users::DeleteRogue);
  world_.At(kOperatorLooks, [this] { Operate(); });
}

void Users::End() {
  is_on_ = false;
  if (world_.server() == nullptr) return;
  for (const auto& [uid, pool] : world_.truth().pools()) {
    if (pool.is_cordoned) Cordon(pool.name, false);
    if (!pool.taints.empty()) Taint(pool.name, "");
  }
}

void Users::Repeat(double per_minute, void (Users::*act)()) {
  if (per_minute <= 0) return;
  const double minutes = -std::log(1 - random_.Unit()) / per_minute;
  world_.At(Duration::Millis(static_cast<int64_t>(minutes * 60'000) + 1), [this, per_minute, act] {
    if (!is_on_) return;
    if (world_.server() != nullptr) (this->*act)();
    Repeat(per_minute, act);
  });
}

size_t Users::CountOf(const std::function<bool(const PlacedFact&)>& wanted) const {
  size_t count = 0;
  for (const auto& [uid, fact] : world_.truth().placed()) {
    if (fact.kind == &kMachineKind && !fact.is_deleting && wanted(fact)) ++count;
  }
  return count;
}

size_t Users::lone_machines() const {
  return CountOf([](const PlacedFact& fact) { return fact.set_uid.empty(); });
}

void Users::Create() {
  const Scenario& scenario = world_.scenario();
  const double lone = scenario.sets > 0 ? scenario.machines / 2 : scenario.machines;
  if (static_cast<double>(lone_machines()) < lone) CreateMachine();
}

void Users::CreateMachine() {
  if (!is_on_ || world_.server() == nullptr) return;
  const Scenario& scenario = world_.scenario();
  apis::compute::Machine machine;
  machine.metadata.namespace_ = kNamespace;
  machine.metadata.name = fmt::format("m-{}", ++last_name_);
  // Mostly small ones: the sum of all stays below what is there.
  const uint64_t size = random_.Below(10);
  machine.spec.machine_class_ref.name = kClasses[size < 8 ? 0 : size - 7];
  apis::core::Placement placement;
  if (random_.Chance(scenario.move_share)) placement.on_pool_loss = apis::core::kOnPoolLossMove;
  if (random_.Chance(scenario.binpack_share)) placement.policy = apis::core::kPolicyBinpack;
  std::vector<meta::Object> objects;
  if (random_.Chance(scenario.volumes / std::max(1.0, scenario.machines))) {
    apis::storage::Volume volume;
    volume.metadata.namespace_ = kNamespace;
    volume.metadata.name = machine.metadata.name + "-data";
    volume.spec.volume_class_ref = apis::core::LocalObjectReference{.name = "fast"};
    volume.spec.resources["storage"] = meta::Quantity(10LL << 30);
    objects.push_back(meta::Object::Of(kVolumeKind, volume));
    apis::compute::MachineVolume disk;
    disk.name = "data";
    disk.volume_ref = apis::core::LocalObjectReference{.name = volume.metadata.name};
    machine.spec.volumes.push_back(std::move(disk));
    // Its volume can be used from every pool, so one that moves keeps it. By its number, so that
    // nothing is drawn for it.
    if (last_name_ % 2 == 0) placement.on_pool_loss.clear();
  }
  if (random_.Chance(scenario.hopeless_share)) {
    machine.spec.machine_pool_selector["nowhere"] = "true";
  }
  if (machine.spec.volumes.empty() && random_.Chance(0.5)) {
    placement.priority_class_name = std::string(kSpare);
  }
  AddTraits(machine, random_, scenario);
  machine.spec.placement = placement;
  objects.push_back(meta::Object::Of(kMachineKind, std::move(machine)));
  Send("sim.create", CreateObjects(client(), std::move(objects)));
}

void Users::CreateProbe() {
  if (world_.server() == nullptr) return;
  apis::compute::Machine machine;
  machine.metadata.namespace_ = kNamespace;
  machine.metadata.name = fmt::format("probe-{}", ++last_name_);
  machine.spec.machine_class_ref.name = kClasses[0];
  std::vector<meta::Object> objects;
  objects.push_back(meta::Object::Of(kMachineKind, std::move(machine)));
  Send("sim.create", CreateObjects(client(), std::move(objects)));
}

// It takes half of a host: somewhere others have to go for it.
void Users::CreateUrgent() {
  if (CountOf([](const PlacedFact& fact) { return fact.class_name == "huge"; }) >= kUrgentMax) {
    const PlacedFact* fact = Pick([](const PlacedFact& one) { return one.class_name == "huge"; });
    return Delete(fact->uid, client::Force::kNo);
  }
  apis::compute::Machine machine;
  machine.metadata.namespace_ = kNamespace;
  machine.metadata.name = fmt::format("urgent-{}", ++last_name_);
  machine.spec.machine_class_ref.name = "huge";
  machine.spec.placement.emplace();
  machine.spec.placement->priority_class_name = std::string(kUrgent);
  std::vector<meta::Object> objects;
  objects.push_back(meta::Object::Of(kMachineKind, std::move(machine)));
  Send("sim.create", CreateObjects(client(), std::move(objects)));
}

// One more group, or one less if there are enough.
void Users::GroupUp() {
  std::map<std::string, std::vector<client::ObjectKey>> groups;
  for (const auto& [uid, fact] : world_.truth().placed()) {
    if (!fact.group.empty()) groups[fact.group].push_back(fact.key);
  }
  if (groups.size() >= kGroupsMax) {
    auto group = groups.begin();
    std::advance(group, static_cast<int64_t>(random_.Below(groups.size())));
    for (const auto& [uid, fact] : world_.truth().placed()) {
      if (fact.group == group->first) world_.AskDeletion(uid);
    }
    return Send("sim.ungroup", DeleteGroup(client(), group->first, std::move(group->second)));
  }
  apis::berth_dev::MachineGroup group;
  group.metadata.namespace_ = kNamespace;
  group.metadata.name = fmt::format("group-{}", ++last_name_);
  group.spec.min_members = static_cast<int32_t>(random_.Between(2, 5));
  group.spec.timeout = "30s";
  std::vector<meta::Object> objects;
  objects.push_back(meta::Object::Of(apis::berth_dev::kMachineGroupKind, group));
  for (int i = 0; i < group.spec.min_members; ++i) {
    apis::compute::Machine machine;
    machine.metadata.namespace_ = kNamespace;
    machine.metadata.name = fmt::format("{}-{}", group.metadata.name, i);
    machine.spec.machine_class_ref.name = "small";
    machine.spec.placement.emplace();
    machine.spec.placement->group_ref =
        apis::core::LocalObjectReference{.name = group.metadata.name};
    objects.push_back(meta::Object::Of(kMachineKind, std::move(machine)));
  }
  Send("sim.group", CreateObjects(client(), std::move(objects)));
}

rt::Task<Status> Users::DeleteGroup(client::Client* client,
                                    std::string group,
                                    std::vector<client::ObjectKey> members) {
  const client::DeleteOptions options;
  for (const client::ObjectKey& member : members) {
    (void)co_await client->Delete(kMachineKind, member, options);
  }
  const client::ObjectKey key{.namespace_ = kNamespace, .name = group};
  (void)co_await client->Delete(apis::berth_dev::kMachineGroupKind, key, options);
  co_return OkStatus();
}

const PlacedFact* Users::Pick(const std::function<bool(const PlacedFact&)>& wanted) {
  std::vector<const PlacedFact*> found;
  for (const auto& [uid, fact] : world_.truth().placed()) {
    if (wanted(fact)) found.push_back(&fact);
  }
  return found.empty() ? nullptr : found[random_.Below(found.size())];
}

const PoolFact* Users::PickPool() {
  std::vector<const PoolFact*> found;
  for (const auto& [uid, pool] : world_.truth().pools()) {
    if (pool.kind == &kMachinePoolKind && !pool.is_deleting) found.push_back(&pool);
  }
  return found.empty() ? nullptr : found[random_.Below(found.size())];
}

void Users::Delete(const std::string& uid, client::Force force) {
  const PlacedFact* fact = world_.truth().Find(uid);
  if (fact == nullptr || world_.server() == nullptr) return;
  world_.AskDeletion(uid);
  client::DeleteOptions options;
  options.uid = uid;
  options.force = force;
  Send("sim.delete", DeleteObject(client(), fact->kind, fact->key, options));
}

void Users::DeleteSome() {
  const PlacedFact* fact = Pick([](const PlacedFact& one) {
    return one.set_uid.empty() && !one.is_deleting && one.kind == &kMachineKind && !IsProbe(one);
  });
  if (fact == nullptr) return;
  const std::string volume = fact->key.name + "-data";
  Delete(fact->uid, client::Force::kNo);
  for (const auto& [uid, other] : world_.truth().placed()) {
    if (other.key.name != volume) continue;
    Delete(uid, client::Force::kNo);
    break;
  }
}

void Users::DeleteRogue() {
  const PlacedFact* fact =
      Pick([](const PlacedFact& one) { return one.set_uid.empty() && !one.is_deleting; });
  if (fact == nullptr) return;
  Send("sim.rogue", DeleteObject(client(), fact->kind, fact->key, client::DeleteOptions()));
}

// By force goes what a host that is away keeps.
void Users::ForceSome() {
  const PlacedFact* fact = Pick([this](const PlacedFact& one) {
    const HostProcess* host = world_.HostOf(one.pool_uid);
    return host != nullptr && !host->is_synced();
  });
  if (fact != nullptr) Delete(fact->uid, client::Force::kYes);
}

void Users::ForceEverythingFrom(const std::string& pool_uid) {
  std::vector<std::string> uids;
  for (const auto& [uid, fact] : world_.truth().placed()) {
    if (fact.pool_uid == pool_uid) uids.push_back(uid);
  }
  for (const std::string& uid : uids) Delete(uid, client::Force::kYes);
}

void Users::Edit(const std::string& uid) {
  const PlacedFact* fact = world_.truth().Find(uid);
  if (fact == nullptr || world_.server() == nullptr || fact->kind != &kMachineKind) return;
  if (!editing_.insert(uid).second) return;
  const bool turns = random_.Chance(0.4);
  const std::string power =
      turns ? fmt::format(R"(,"spec":{{"power":"{}"}})", fact->is_on ? "Off" : "On")
            : std::string();
  Send("sim.edit",
       EditObject(client(),
                  uid,
                  fact->kind,
                  fact->key,
                  fmt::format(R"({{"metadata":{{"annotations":{{"{}":"{}"}}}}{}}})",
                              kEditAnnotation,
                              ++last_edit_,
                              power)));
}

void Users::EditSome() {
  const PlacedFact* fact = Pick([this](const PlacedFact& one) {
    return one.kind == &kMachineKind && !one.is_deleting && !editing_.contains(one.uid);
  });
  if (fact != nullptr) Edit(fact->uid);
}

void Users::Cordon(const std::string& pool, bool is_cordoned) {
  if (world_.server() == nullptr) return;
  for (const meta::KindInfo* kind : kPoolKinds) {
    if (world_.truth().FindPool(*kind, pool) == nullptr) continue;
    Send("sim.cordon",
         PatchObject(client(),
                     kind,
                     {"", pool},
                     fmt::format(R"({{"spec":{{"unschedulable":{}}}}})", is_cordoned),
                     client::Subresource::kNone));
  }
}

void Users::CordonSome() {
  const PoolFact* pool = PickPool();
  if (pool == nullptr) return;
  const std::string name = pool->name;
  Cordon(name, true);
  world_.At(Duration::Millis(random_.Between(1000, 60'000)), [this, name] { Cordon(name, false); });
}

void Users::Release(const PlacedFact& fact, std::string_view why) {
  Send("sim.release",
       PatchObject(client(),
                   fact.kind,
                   fact.key,
                   fmt::format(R"({{"status":{{"placement":{{"release":"{}"}}}}}})", why),
                   client::Subresource::kStatus));
}

void Users::DrainSome() {
  const PoolFact* pool = PickPool();
  if (pool == nullptr) return;
  const std::string name = pool->name;
  const std::string pool_uid = pool->uid;
  Cordon(name, true);
  world_.Say("user drains " + name);
  world_.At(Duration::Millis(200), [this, pool_uid] {
    if (world_.server() == nullptr) return;
    for (const auto& [uid, fact] : world_.truth().placed()) {
      const bool can_leave = (fact.kind == &kMachineKind && !fact.is_tied) ||
                             fact.kind == &apis::core::kReservationKind;
      if (fact.pool_uid == pool_uid && can_leave) Release(fact, apis::core::kReleaseDrain);
    }
  });
  world_.At(Duration::Millis(random_.Between(5000, 60'000)), [this, name] { Cordon(name, false); });
}

void Users::MoveSome() {
  const PlacedFact* fact = Pick([](const PlacedFact& one) {
    return one.kind == &kMachineKind && !one.pool_uid.empty() && !one.is_deleting && !one.is_tied;
  });
  if (fact != nullptr) Release(*fact, apis::core::kReleaseMove);
}

void Users::Taint(const std::string& pool, std::string_view effect) {
  if (world_.server() == nullptr) return;
  const std::string taints =
      effect.empty() ? "" : fmt::format(R"({{"key":"{}","effect":"{}"}})", kTaintKey, effect);
  Send("sim.taint",
       PatchObject(client(),
                   &kMachinePoolKind,
                   {"", pool},
                   fmt::format(R"({{"spec":{{"taints":[{}]}}}})", taints),
                   client::Subresource::kNone));
}

// Mostly one that sends away what is there.
void Users::TaintSome() {
  const PoolFact* pool = PickPool();
  if (pool == nullptr || !pool->taints.empty()) return;
  const std::string name = pool->name;
  const std::string_view effect =
      random_.Chance(0.75) ? apis::core::kNoExecute : apis::core::kNoSchedule;
  world_.Say(fmt::format("user taints {}: {}", name, effect));
  Taint(name, effect);
  world_.At(Duration::Millis(random_.Between(10'000, 100'000)), [this, name] { Taint(name, ""); });
}

void Users::ScaleSome() {
  const auto& sets = world_.truth().sets();
  if (sets.empty()) return;
  auto set = sets.begin();
  std::advance(set, static_cast<int64_t>(random_.Below(sets.size())));
  const auto most = static_cast<int64_t>(world_.scenario().machines / 2 / world_.scenario().sets);
  const int64_t replicas = random_.Between(most / 2, most);
  Send("sim.scale",
       PatchObject(client(),
                   &apis::berth_dev::kMachineSetKind,
                   set->second.key,
                   fmt::format(R"({{"spec":{{"replicas":{}}}}})", replicas),
                   client::Subresource::kNone));
}

// A host under a rewound history deletes nothing in masses without a person's word (PROTOCOL 4.3).
void Users::Operate() {
  for (const auto& host : world_.hosts()) {
    const bool holds_back = host->is_synced() && host->poollet().host().has_tripped();
    if (holds_back && random_.Chance(kOperatorDecides)) {
      world_.Say("operator approves the deletions of " + host->pools());
      Annotate(host->pools(), gateway::kApproveDeletionsAnnotation);
    }
  }
  world_.At(kOperatorLooks, [this] { Operate(); });
}

void Users::SayOff(const std::string& pool) {
  world_.Say("operator turns the host of " + pool + " off");
  Annotate(pool, gateway::kOffAnnotation);
}

void Users::Annotate(const std::string& pool, std::string_view annotation) {
  if (world_.server() == nullptr) return;
  for (const meta::KindInfo* kind : kPoolKinds) {
    if (world_.truth().FindPool(*kind, pool) == nullptr) continue;
    Send("sim.annotate",
         PatchObject(client(),
                     kind,
                     {"", pool},
                     fmt::format(R"({{"metadata":{{"annotations":{{"{}":"true"}}}}}})", annotation),
                     client::Subresource::kNone));
  }
}

void Users::DeletePool(const std::string& pool) {
  if (world_.server() == nullptr) return;
  for (const meta::KindInfo* kind : kPoolKinds) {
    if (world_.truth().FindPool(*kind, pool) == nullptr) continue;
    Send("sim.delete_pool", DeleteObject(client(), kind, {"", pool}, client::DeleteOptions()));
  }
}

}  // namespace berth::sim
