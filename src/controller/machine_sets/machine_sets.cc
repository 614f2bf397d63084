// SPDX-License-Identifier: Apache-2.0
#include "controller/machine_sets/machine_sets.h"

#include <utility>

#include "apis/compute/machine.h"
#include "apis/core/placement.h"
#include "base/hash.h"
#include "base/log.h"
#include "controller/object_failure.h"
#include "meta/json.h"
#include "meta/label_selector.h"
#include "rt/join_all.h"

namespace berth::controller {
namespace {

using apis::berth_dev::kMachineSetKind;
using apis::berth_dev::MachineSet;
using apis::compute::kMachineKind;
using apis::compute::Machine;

constexpr std::string_view kApiVersion = "berth.dev/v1alpha1";
// Changes of machines are looked at together: a plan goes over all machines of its set, and 10,000
// of them may change within a second.
constexpr Duration kGather = Duration::Millis(50);

const meta::OwnerReference* ControllerOf(const meta::ObjectMeta& metadata) {
  for (const meta::OwnerReference& owner : metadata.owner_references) {
    if (owner.controller.value_or(false) && owner.kind == kMachineSetKind.kind &&
        owner.api_version == kApiVersion) {
      return &owner;
    }
  }
  return nullptr;
}

SetMember MemberOf(const Machine& machine) {
  SetMember member;
  member.name = machine.metadata.name;
  member.uid = machine.metadata.uid;
  const auto hash = machine.metadata.labels.find(std::string(apis::berth_dev::kTemplateHashLabel));
  if (hash != machine.metadata.labels.end()) member.template_hash = hash->second;
  member.is_ready =
      machine.status.state == "Running" ||
      (machine.spec.power == apis::compute::kPowerOff && machine.status.state == "Shutdown");
  member.is_placed = machine.status.placement && !machine.status.placement->pool_uid.empty();
  member.is_deleting = machine.metadata.deletion_timestamp.has_value();
  member.created = machine.metadata.creation_timestamp;
  return member;
}

std::string RandomSuffix(Random& random) {
  // Without vowels and look-alikes, as Kubernetes does, so that no words arise.
  constexpr std::string_view kLetters = "bcdfghjklmnpqrstvwxz2456789";
  std::string suffix;
  for (int i = 0; i < 6; ++i) suffix += kLetters[random.Below(kLetters.size())];
  return suffix;
}

}  // namespace

std::string TemplateHashOf(const apis::berth_dev::MachineTemplate& machine_template) {
  uint64_t hash = Fnv1a(meta::EncodeJsonOf(machine_template));
  std::string digits;
  for (int i = 0; i < 10; ++i, hash >>= 4) digits += "0123456789abcdef"[hash & 0xF];
  return digits;
}

Machine MakeMember(const MachineSet& set,
                   const std::string& api_version,
                   const std::string& name,
                   const std::string& template_hash) {
  const apis::berth_dev::MachineTemplate& from = set.spec.machine_template;
  Machine machine;
  machine.metadata.namespace_ = set.metadata.namespace_;
  machine.metadata.name = name;
  machine.metadata.labels = from.metadata.labels;
  machine.metadata.labels[std::string(apis::berth_dev::kTemplateHashLabel)] = template_hash;
  machine.metadata.annotations = from.metadata.annotations;
  meta::OwnerReference& owner = machine.metadata.owner_references.emplace_back();
  owner.api_version = api_version;
  owner.kind = kMachineSetKind.kind;
  owner.name = set.metadata.name;
  owner.uid = set.metadata.uid;
  owner.controller = true;
  owner.block_owner_deletion = true;
  machine.spec = from.spec;
  const std::string_view on_loss = apis::berth_dev::OnPoolLossOf(set.spec);
  if (on_loss == apis::core::kOnPoolLossReplace) {
    machine.metadata.annotations[std::string(apis::core::kOnPoolLossAnnotation)] = on_loss;
  } else if (on_loss == apis::core::kOnPoolLossMove) {
    if (!machine.spec.placement) machine.spec.placement.emplace();
    machine.spec.placement->on_pool_loss = on_loss;
  }
  return machine;
}

MachineSets::MachineSets(rt::Loop& loop, client::Client& client)
    : loop_(loop),
      client_(client),
      sets_(loop,
            client,
            kMachineSetKind,
            [this](const meta::Object* before, const meta::Object* now) {
              const meta::Object& set = now != nullptr ? *now : *before;
              const std::string key = set.metadata().namespace_ + '/' + set.metadata().name;
              if (now != nullptr) keys_[set.metadata().uid] = key;
              if (now == nullptr) keys_.erase(set.metadata().uid);
              runner_.queue().Add(key);
            }),
      machines_(loop, client, kMachineKind, *this, {}),
      runner_(loop, "machine sets", *this, 4) {}

rt::Task<Status> MachineSets::Run() {
  std::vector<rt::Task<Status>> tasks;
  tasks.push_back(sets_.Run());
  tasks.push_back(machines_.Run());
  tasks.push_back(runner_.Run());
  const std::vector<Status> ends = co_await rt::JoinAll(std::move(tasks));
  co_return ends.front();
}

void MachineSets::OnListBegin() {
  unseen_.clear();
  for (const auto& [uid, set] : set_of_) unseen_.insert(uid);
}

void MachineSets::OnListEnd() {
  for (const std::string& uid : std::exchange(unseen_, {})) Forget(uid);
  for (const auto& [uid, key] : keys_) Wake(uid);
}

void MachineSets::OnEvent(client::WatchEvent event) {
  if (event.type == client::WatchEvent::Type::kBookmark) return;
  const Machine& machine = event.object.as<Machine>();
  if (event.type == client::WatchEvent::Type::kDeleted) {
    if (!IsTwin(machine.metadata)) Forget(machine.metadata.uid);
  } else {
    Put(machine);
  }
}

// Whether another machine has its UID, and came first (client/cache/twins.h).
bool MachineSets::IsTwin(const meta::ObjectMeta& metadata) const {
  const auto set = set_of_.find(metadata.uid);
  if (set == set_of_.end()) return false;
  const auto members = members_.find(set->second);
  if (members == members_.end()) return false;
  const auto first = members->second.find(metadata.uid);
  return first != members->second.end() && first->second.name != metadata.name;
}

void MachineSets::Put(const Machine& machine) {
  if (IsTwin(machine.metadata)) return;
  unseen_.erase(machine.metadata.uid);
  const meta::OwnerReference* owner = ControllerOf(machine.metadata);
  const auto before = set_of_.find(machine.metadata.uid);
  if (before != set_of_.end() && (owner == nullptr || owner->uid != before->second)) {
    Forget(machine.metadata.uid);
  }
  if (owner == nullptr) return;
  set_of_[machine.metadata.uid] = owner->uid;
  members_[owner->uid].insert_or_assign(machine.metadata.uid, MemberOf(machine));
  Wake(owner->uid);
}

void MachineSets::Forget(const std::string& uid) {
  if (creating_ > 0) gone_.insert(uid);
  const auto found = set_of_.find(uid);
  if (found == set_of_.end()) return;
  const std::string set = found->second;
  set_of_.erase(found);
  Members& members = members_[set];
  members.erase(uid);
  if (members.empty()) members_.erase(set);
  Wake(set);
}

void MachineSets::Wake(const std::string& set_uid) {
  const auto key = keys_.find(set_uid);
  if (key != keys_.end()) runner_.queue().AddAfter(key->second, kGather);
}

std::vector<SetMember> MachineSets::MembersOf(const std::string& set_uid) const {
  std::vector<SetMember> members;
  const auto found = members_.find(set_uid);
  if (found == members_.end()) return members;
  for (const auto& [uid, member] : found->second) members.push_back(member);
  return members;
}

rt::Task<Result<std::optional<Duration>>> MachineSets::Reconcile(std::string key) {
  // Nothing is made before every machine is known: a set must not be filled twice.
  if (!machines_.synced()) co_return Duration::Millis(50);
  const size_t slash = key.find('/');
  const meta::Object* found =
      sets_.Find({.namespace_ = key.substr(0, slash), .name = key.substr(slash + 1)});
  if (found == nullptr) co_return std::optional<Duration>();
  const meta::Object set = *found;
  const auto& spec = set.as<MachineSet>().spec;
  const std::string uid = set.metadata().uid;
  std::vector<SetMember> members = MembersOf(uid);
  const size_t batch = bulk_ != nullptr ? kBulk : kBatch;
  const SetPlan plan = PlanSet(spec, members, TemplateHashOf(spec.machine_template), batch);
  Status failure;  // of members that do not go: those that are missing are made all the same
  if (!set.metadata().deletion_timestamp) {
    if (!plan.remove.empty()) failure = co_await Remove(client::KeyOf(set), uid, plan.remove);
    if (!failure.ok() && !IsObjectFailure(failure)) co_return failure;
    if (plan.create > 0) CO_TRY_STATUS(co_await Create(set, std::move(members), plan.create));
  }
  CO_TRY_STATUS(co_await WriteStatus(set, plan));
  CO_TRY_STATUS(failure);
  // What was made or removed is seen as events; a batch may leave more to do.
  if (plan.create == batch) co_return Duration();
  co_return std::optional<Duration>();
}

rt::Task<Status> MachineSets::Create(meta::Object set,
                                     std::vector<SetMember> members,
                                     size_t count) {
  const auto& typed = set.as<MachineSet>();
  const std::string hash = TemplateHashOf(typed.spec.machine_template);
  std::vector<std::string> names;
  if (typed.spec.names == apis::berth_dev::kNamesOrdinal) {
    names = OrdinalNames(typed.metadata.name, members, count);
  } else {
    for (size_t i = 0; i < count; ++i) {
      names.push_back(typed.metadata.name + '-' + RandomSuffix(loop_.random()));
    }
  }
  Machine member = MakeMember(typed, std::string(kApiVersion), "", hash);
  meta::Object model = meta::Object::Of(kMachineKind, member);
  ++creating_;
  const std::vector<Result<std::string>> made = co_await CreateCopies(std::move(model), names);
  Status failure;
  for (size_t i = 0; i < made.size(); ++i) {
    if (made[i].ok()) {
      // Known at once: the next plan must not make it again. Unless the watch was faster, which
      // knows better.
      if (set_of_.contains(*made[i]) || gone_.contains(*made[i])) continue;
      member.metadata.name = names[i];
      member.metadata.uid = *made[i];
      member.metadata.creation_timestamp = loop_.WallNow();
      Put(member);
    } else if (!made[i].status().Is(Reason::kAlreadyExists)) {
      failure = made[i].status();
    }
  }
  if (--creating_ == 0) gone_.clear();
  co_return failure;
}

rt::Task<std::vector<Result<std::string>>> MachineSets::CreateCopies(
    meta::Object model, std::vector<std::string> names) {
  if (bulk_ != nullptr) co_return co_await bulk_->CreateBulk(std::move(model), std::move(names));
  std::vector<meta::Object> copies = client::CopiesOf(model, names);
  const client::WriteOptions options;
  const auto made = co_await client_.CreateBatch(std::move(copies), options);
  std::vector<Result<std::string>> uids;
  for (const Result<meta::Object>& one : made) {
    uids.push_back(one.ok() ? Result<std::string>(one->metadata().uid)
                            : Result<std::string>(one.status()));
  }
  co_return uids;
}

rt::Task<Status> MachineSets::Remove(client::ObjectKey set,
                                     std::string set_uid,
                                     std::vector<std::string> uids) {
  Status failure;  // of one of them: the others go all the same
  for (const std::string& uid : uids) {
    const auto members = members_.find(set_uid);
    if (members == members_.end()) break;
    const auto member = members->second.find(uid);
    if (member == members->second.end()) continue;
    member->second.is_deleting = true;  // known at once
    const client::ObjectKey key{.namespace_ = set.namespace_, .name = member->second.name};
    client::DeleteOptions options;
    options.uid = uid;
    const Status deleted = co_await client_.Delete(kMachineKind, key, options);
    if (deleted.ok() || deleted.Is(Reason::kNotFound) || deleted.Is(Reason::kConflict)) continue;
    const auto again = members_.find(set_uid);
    if (again != members_.end()) {
      const auto still = again->second.find(uid);
      if (still != again->second.end()) still->second.is_deleting = false;
    }
    if (!IsObjectFailure(deleted)) co_return deleted;
    failure = deleted;
  }
  co_return failure;
}

rt::Task<Status> MachineSets::WriteStatus(meta::Object set, SetPlan plan) {
  auto& typed = set.as<MachineSet>();
  apis::berth_dev::MachineSetStatus status;
  status.replicas = plan.replicas;
  status.ready = plan.ready;
  status.updated = plan.updated;
  status.observed_generation = typed.metadata.generation;
  const Result<meta::Selector> selector = meta::Selector::From(typed.spec.selector);
  if (selector.ok()) status.selector = selector->ToString();
  if (status == typed.status) co_return OkStatus();
  typed.status = status;
  client::WriteOptions options;
  options.subresource = client::Subresource::kStatus;
  const Result<meta::Object> written = co_await client_.Update(std::move(set), options);
  // Someone changed the set: its event brings us back here.
  if (written.status().Is(Reason::kConflict) || written.status().Is(Reason::kNotFound)) {
    co_return OkStatus();
  }
  co_return written.status();
}

}  // namespace berth::controller
