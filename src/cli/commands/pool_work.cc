// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/pool_work.h"

#include <fmt/core.h>

#include <string>
#include <utility>

#include "base/strings.h"
#include "cli/commands/host_volumes.h"
#include "cli/commands/pool_mode.h"
#include "cli/failure.h"
#include "cli/objects/fetch.h"
#include "meta/json.h"

namespace berth::cli {

using meta::Value;

Result<std::vector<Target>> FindPools(Session& session, const std::vector<std::string>& words) {
  if (words.empty()) {
    return Advise(BadRequest("no pool is named"), "berth get machinepools shows their names");
  }
  TRY(Discovery * discovery, session.GetDiscovery());
  std::vector<Target> pools;
  for (const std::string& word : words) {
    const bool is_bare = word.find('/') == std::string::npos;
    const std::vector<std::string> one = {is_bare ? "machinepool/" + word : word};
    TRY(auto found, FindNamedTargets(*discovery, one, "POOL..."));
    for (Target& target : found) {
      if (!target.resource.plural.ends_with("pools")) {
        return BadRequest(fmt::format("{} is not a kind of pool", Quote(target.resource.kind)));
      }
      pools.push_back(std::move(target));
    }
  }
  return pools;
}

std::string LabelOf(const Target& pool) {
  return ObjectLabel(pool.resource.ApiVersion(), pool.resource.kind, pool.name);
}

Status PatchPool(Api& api, const Target& pool, const Value& patch) {
  const Api::Query query = {{"fieldManager", "berth"}};
  return api.Patch(PathOf(pool.resource, "", pool.name), kMergePatch, meta::WriteJson(patch), query)
      .status();
}

Status AnnotatePool(Api& api, const Target& pool, std::string_view annotation, Value value) {
  Value annotations = Value::Object();
  annotations.Set(annotation, std::move(value));
  Value metadata = Value::Object();
  metadata.Set("annotations", std::move(annotations));
  Value patch = Value::Object();
  patch.Set("metadata", std::move(metadata));
  return PatchPool(api, pool, patch);
}

Status AwaitAnnotationGone(Api& api,
                           const Target& pool,
                           std::string_view annotation,
                           const Patience& patience,
                           std::string_view what) {
  const ObjectAddress address{.resource = pool.resource, .namespace_ = "", .name = pool.name};
  const ObjectTest is_done = [annotation](const Value* now) -> Result<bool> {
    return now == nullptr || now->GetString({"metadata", "annotations", annotation}).empty();
  };
  return AwaitObject(api, address, is_done, patience, what);
}

Result<bool> SetSchedulable(Api& api, const Target& pool, Schedulable wanted) {
  TRY(const Value now, FetchObject(api, pool.resource, "", pool.name));
  const Value* cordoned = now.Get({"spec", "unschedulable"});
  const bool is_cordoned = cordoned != nullptr && cordoned->is_bool() && cordoned->as_bool();
  if (is_cordoned == (wanted == Schedulable::kNo)) return false;
  Value spec = Value::Object();
  spec.Set("unschedulable", wanted == Schedulable::kNo ? Value(true) : Value());
  Value patch = Value::Object();
  patch.Set("spec", std::move(spec));
  TRY_STATUS(PatchPool(api, pool, patch));
  return true;
}

Status Cordon(Session& session, const Target& pool) {
  TRY(Api * api, session.GetApi());
  TRY(const bool changed, SetSchedulable(*api, pool, Schedulable::kNo));
  session.out() << LabelOf(pool) << (changed ? " cordoned\n" : " already cordoned\n");
  session.out().flush();
  return OkStatus();
}

bool HasLocalDisk(const Value& machine) {
  const Value* volumes = machine.Get({"spec", "volumes"});
  if (volumes == nullptr || !volumes->is_array()) return false;
  for (const Value& volume : volumes->items()) {
    if (volume.Find("localDisk") != nullptr || volume.Find("emptyDisk") != nullptr) return true;
  }
  return false;
}

Status AskToLeave(Api& api, const Resource& resource, const Value& object, std::string_view why) {
  Value metadata = Value::Object();
  metadata.Set("resourceVersion", std::string(object.GetString({"metadata", "resourceVersion"})));
  Value placement = Value::Object();
  placement.Set("release", std::string(why));
  Value status = Value::Object();
  status.Set("placement", std::move(placement));
  Value patch = Value::Object();
  patch.Set("metadata", std::move(metadata));
  patch.Set("status", std::move(status));
  const Api::Query query = {{"fieldManager", "berth"}};
  return api
      .Patch(PathOf(resource,
                    object.GetString({"metadata", "namespace"}),
                    object.GetString({"metadata", "name"}),
                    "status"),
             kMergePatch,
             meta::WriteJson(patch),
             query)
      .status();
}

Result<std::vector<Bound>> FetchBound(Session& session, const Target& pool, const Value& object) {
  // MachinePool holds machines, VolumePool volumes, BucketPool buckets.
  std::vector<std::string> kinds = {
      ToLower(pool.resource.kind.substr(0, pool.resource.kind.size() - 4))};
  if (pool.resource.kind == "MachinePool") kinds.emplace_back("reservation");
  TRY(Api * api, session.GetApi());
  TRY(Discovery * discovery, session.GetDiscovery());
  std::vector<Bound> all;
  for (const std::string& kind : kinds) {
    const ListSelection selection{
        .namespace_ = "",
        .label_selector = "",
        .field_selector = all.empty() ? SelectorOf(pool, object) : PlacedSelectorOf(object)};
    Result<Resource> resource = discovery->FindByWord(kind);
    // Not every server knows them.
    if (!all.empty() && resource.status().Is(Reason::kNotFound)) continue;
    TRY_STATUS(resource);
    TRY(FetchedList list, FetchList(*api, *resource, selection));
    all.push_back({.resource = *std::move(resource), .objects = std::move(list.items)});
  }
  return all;
}

std::string NameOf(const Value& object) {
  return fmt::format(
      "{}/{}", object.GetString({"metadata", "namespace"}), object.GetString({"metadata", "name"}));
}

std::string FirstOf(const std::vector<std::string>& names) {
  constexpr size_t kNames = 5;
  std::string text;
  for (size_t i = 0; i < names.size() && i < kNames; ++i) text += (i > 0 ? ", " : "") + names[i];
  if (names.size() > kNames) text += fmt::format(" and {} more", names.size() - kNames);
  return text;
}

namespace {

Status RefuseLocalData(const std::vector<Value>& machines) {
  std::vector<std::string> losers;
  for (const Value& machine : machines) {
    if (HasLocalDisk(machine)) losers.push_back(NameOf(machine));
  }
  if (losers.empty()) return OkStatus();
  return Advise(
      BadRequest(fmt::format("machines with disks on their host lose them: {}", FirstOf(losers))),
      "--delete-local-data drains them all the same");
}

Status RefuseTied(Session& session, const std::vector<Value>& machines) {
  HostVolumes volumes(session, "");
  std::vector<std::string> tied;
  for (const Value& machine : machines) {
    TRY(const std::vector<std::string> names, volumes.Of(machine));
    if (!names.empty()) tied.push_back(fmt::format("{} ({})", NameOf(machine), Join(names, ", ")));
  }
  if (tied.empty()) return OkStatus();
  return Advise(BadRequest(fmt::format("machines with volumes that only their host reaches fit "
                                       "nowhere else: {}",
                                       FirstOf(tied))),
                "--ignore-host-volumes drains them all the same: they stop, and wait for the host");
}

Status RefuseStaying(const Target& pool, const Value& object, const std::vector<Value>& machines) {
  if (machines.empty()) return OkStatus();
  std::vector<std::string> staying;
  for (const Value& machine : machines) staying.push_back(NameOf(machine));
  return Advise(BadRequest(fmt::format("{} {}; still there: {}",
                                       LabelOf(pool),
                                       WhyNothingLeaves(ModeOf(object)),
                                       FirstOf(staying))),
                "delete these machines and create them again; or, once the host is off and will "
                "not run them again, berth pool fence " +
                    pool.name);
}

// Until the object is gone or on another pool.
Status AwaitLeft(Api& api,
                 const Resource& resource,
                 const Value& object,
                 const std::string& pool_uid,
                 const Patience& patience) {
  const ObjectAddress address{
      .resource = resource,
      .namespace_ = std::string(object.GetString({"metadata", "namespace"})),
      .name = std::string(object.GetString({"metadata", "name"}))};
  const ObjectTest has_left = [&pool_uid](const Value* now) -> Result<bool> {
    return now == nullptr || now->GetString({"status", "placement", "poolUID"}) != pool_uid;
  };
  return AwaitObject(api, address, has_left, patience, "leaving its pool");
}

// Asks all of them to leave that were not asked yet, and waits for all.
Status DrainKind(Session& session,
                 const Bound& bound,
                 const std::string& uid,
                 const Patience& patience) {
  TRY(Api * api, session.GetApi());
  std::vector<const Value*> leaving;
  for (const Value& object : bound.objects) {
    const bool is_going = !object.GetString({"metadata", "deletionTimestamp"}).empty() ||
                          !object.GetString({"status", "placement", "release"}).empty();
    if (!is_going) {
      const Status asked = AskToLeave(*api, bound.resource, object, "Drain");
      if (asked.Is(Reason::kConflict) || asked.Is(Reason::kNotFound)) continue;
      TRY_STATUS(asked);
      session.out() << ObjectLabel(object) << " is asked to leave\n";
      session.out().flush();
    }
    leaving.push_back(&object);
  }
  for (const Value* object : leaving) {
    TRY_STATUS(AwaitLeft(*api, bound.resource, *object, uid, patience));
    session.out() << ObjectLabel(*object) << " left\n";
    session.out().flush();
  }
  return OkStatus();
}

// One round; how many objects there were. What changed meanwhile is looked at
// again in the next. Room that is reserved runs nowhere, and leaves any pool.
Result<size_t> DrainOnce(Session& session,
                         const Target& pool,
                         const Value& object,
                         const Patience& patience) {
  const std::string uid(object.GetString({"metadata", "uid"}));
  TRY(const std::vector<Bound> all, FetchBound(session, pool, object));
  size_t count = 0;
  for (const Bound& bound : all) {
    if (bound.resource.kind == "Machine" && ModeOf(object) != PoolMode::kSession) {
      TRY_STATUS(RefuseStaying(pool, object, bound.objects));
      continue;
    }
    TRY_STATUS(DrainKind(session, bound, uid, patience));
    count += bound.objects.size();
  }
  return count;
}

}  // namespace

Status CheckLeavable(Session& session, const Target& pool, const Value& object) {
  if (ModeOf(object) == PoolMode::kSession) return OkStatus();
  TRY(const std::vector<Bound> all, FetchBound(session, pool, object));
  return RefuseStaying(pool, object, all.front().objects);
}

Status DrainPool(Session& session,
                 const Target& pool,
                 DrainChoice choice,
                 const Patience& patience) {
  TRY(Api * api, session.GetApi());
  if (pool.resource.kind != "MachinePool") {
    return Advise(BadRequest(fmt::format("{} holds data, which cannot be drained", pool.name)),
                  "cordon it, and delete what is on it when nobody needs it any more");
  }
  TRY(const Value object, FetchObject(*api, pool.resource, "", pool.name));
  TRY_STATUS(Cordon(session, pool));
  if (ModeOf(object) == PoolMode::kSession) {
    TRY(const std::vector<Bound> all, FetchBound(session, pool, object));
    const std::vector<Value>& machines = all.front().objects;
    if (choice.local_disks == LocalDisks::kKept) TRY_STATUS(RefuseLocalData(machines));
    if (choice.tied_machines == TiedMachines::kKept) TRY_STATUS(RefuseTied(session, machines));
  }
  for (;;) {
    TRY(const size_t found, DrainOnce(session, pool, object, patience));
    if (found == 0) break;
  }
  session.out() << LabelOf(pool) << " drained\n";
  return OkStatus();
}

OrphansSaid OrphansSaidOf(const Value& pool) {
  const Value* conditions = pool.Get({"status", "conditions"});
  if (conditions == nullptr || !conditions->is_array()) return {};
  for (const Value& condition : conditions->items()) {
    if (condition.GetString({"type"}) != "Orphans") continue;
    const std::string_view status = condition.GetString({"status"});
    if (status != "True" && status != "Unknown") return {};
    return {.state = status == "True" ? OrphansSaid::State::kSome : OrphansSaid::State::kUnknown,
            .message = std::string(condition.GetString({"message"}))};
  }
  return {};
}

Status Confirm(Session& session, const Arguments& arguments, std::string_view risk) {
  if (arguments.Switch("yes")) return OkStatus();
  session.err() << risk;
  if (!session.environment().terminal.in_is_terminal) {
    return Advise(BadRequest("this has to be confirmed"), "--yes says that you know the risk");
  }
  session.err() << "Go on? [y/N] ";
  session.err().flush();
  std::string answer;
  std::getline(*session.environment().in, answer);
  const std::string_view word = Trim(answer);
  if (EqualsIgnoreCase(word, "y") || EqualsIgnoreCase(word, "yes")) return OkStatus();
  session.err() << "Nothing was done.\n";
  return FailQuietly();
}

}  // namespace berth::cli
