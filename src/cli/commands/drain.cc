// SPDX-License-Identifier: Apache-2.0
// cordon, uncordon, drain and move: keeping things away from a pool, and getting them off it.
#include <fmt/core.h>

#include <array>
#include <utility>
#include <vector>

#include "base/strings.h"
#include "cli/api/known_kinds.h"
#include "cli/arguments.h"
#include "cli/commands/chosen.h"
#include "cli/commands/flags.h"
#include "cli/commands/table.h"
#include "cli/failure.h"
#include "cli/objects/failures.h"
#include "cli/objects/fetch.h"
#include "cli/objects/patience.h"
#include "cli/objects/targets.h"
#include "cli/session/session.h"
#include "meta/json.h"

namespace berth::cli {
namespace {

using meta::Value;

constexpr std::string_view kMergePatch = "application/merge-patch+json";

// "alpha", "machinepool/alpha", "volumepool/alpha": a bare name is a MachinePool.
Result<std::vector<Target>> FindPools(Session& session, const Arguments& arguments) {
  if (arguments.words().empty()) {
    return Advise(BadRequest("no pool is named"), "berth get machinepools shows their names");
  }
  TRY(Discovery * discovery, session.GetDiscovery());
  std::vector<Target> pools;
  for (const std::string& word : arguments.words()) {
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

// Whether something changed.
Result<bool> SetUnschedulable(Api& api, const Target& pool, bool wanted) {
  TRY(const Value now, FetchObject(api, pool.resource, "", pool.name));
  const Value* spec = now.Get({"spec", "unschedulable"});
  const bool is_set = spec != nullptr && spec->is_bool() && spec->as_bool();
  if (is_set == wanted) return false;
  const std::string body =
      wanted ? R"({"spec":{"unschedulable":true}})" : R"({"spec":{"unschedulable":null}})";
  const Api::Query query = {{"fieldManager", "berth"}};
  TRY_STATUS(api.Patch(PathOf(pool.resource, "", pool.name), kMergePatch, body, query));
  return true;
}

Status SetAll(Session& session, const Arguments& arguments, bool wanted) {
  TRY(const std::vector<Target> pools, FindPools(session, arguments));
  TRY(Api * api, session.GetApi());
  Failures failures(session.environment());
  const std::string_view done = wanted ? "cordoned" : "uncordoned";
  for (const Target& pool : pools) {
    const Result<bool> changed = SetUnschedulable(*api, pool, wanted);
    if (!changed.ok()) {
      failures.Add(changed.status());
      continue;
    }
    session.out() << fmt::format(
        "{} {}{}\n",
        ObjectLabel(pool.resource.ApiVersion(), pool.resource.kind, pool.name),
        *changed ? "" : "already ",
        done);
  }
  return failures.Outcome();
}

Status RunCordon(Session& session, const Arguments& arguments) {
  return SetAll(session, arguments, true);
}
Status RunUncordon(Session& session, const Arguments& arguments) {
  return SetAll(session, arguments, false);
}

bool HasLocalDisk(const Value& machine) {
  const Value* volumes = machine.Get({"spec", "volumes"});
  if (volumes == nullptr || !volumes->is_array()) return false;
  for (const Value& volume : volumes->items()) {
    if (volume.Find("localDisk") != nullptr || volume.Find("emptyDisk") != nullptr) return true;
  }
  return false;
}

// Asks the object to leave its pool, if it is still on the pool that was looked at.
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

struct Bound {
  Resource resource;
  std::vector<Value> objects;
};

// Everything that is placed on the pool.
Result<Bound> FetchBound(Session& session, Api& api, const Target& pool, const std::string& uid) {
  // MachinePool holds machines, VolumePool volumes, BucketPool buckets.
  const std::string kind = ToLower(pool.resource.kind.substr(0, pool.resource.kind.size() - 4));
  TRY(Discovery * discovery, session.GetDiscovery());
  TRY(Resource resource, discovery->FindByWord(kind));
  const ListSelection selection{
      .namespace_ = "", .label_selector = "", .field_selector = "status.placement.poolUID=" + uid};
  TRY(FetchedList list, FetchList(api, resource, selection));
  return Bound{.resource = std::move(resource), .objects = std::move(list.items)};
}

Status RefuseLocalData(const std::vector<Value>& objects) {
  std::vector<std::string> names;
  for (const Value& object : objects) {
    if (HasLocalDisk(object)) {
      names.push_back(fmt::format("{}/{}",
                                  object.GetString({"metadata", "namespace"}),
                                  object.GetString({"metadata", "name"})));
    }
  }
  if (names.empty()) return OkStatus();
  std::string text;
  for (size_t i = 0; i < names.size() && i < 5; ++i) text += (i > 0 ? ", " : "") + names[i];
  if (names.size() > 5) text += fmt::format(" and {} more", names.size() - 5);
  return Advise(BadRequest(fmt::format("machines with disks on their host lose them: {}", text)),
                "--delete-local-data drains them all the same");
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

// Asks everything on the pool to leave that was not asked yet, and waits for all; how many there
// were. What changed meanwhile is looked at again in the next round.
Result<size_t> DrainOnce(Session& session,
                         Api& api,
                         const Target& pool,
                         const std::string& uid,
                         const Patience& patience) {
  TRY(const Bound bound, FetchBound(session, api, pool, uid));
  std::vector<const Value*> leaving;
  for (const Value& object : bound.objects) {
    const bool is_going = !object.GetString({"metadata", "deletionTimestamp"}).empty() ||
                          !object.GetString({"status", "placement", "release"}).empty();
    if (!is_going) {
      const Status asked = AskToLeave(api, bound.resource, object, "Drain");
      if (asked.Is(Reason::kConflict) || asked.Is(Reason::kNotFound)) continue;
      TRY_STATUS(asked);
      session.out() << ObjectLabel(object) << " is asked to leave\n";
      session.out().flush();
    }
    leaving.push_back(&object);
  }
  for (const Value* object : leaving) {
    TRY_STATUS(AwaitLeft(api, bound.resource, *object, uid, patience));
    session.out() << ObjectLabel(*object) << " left\n";
    session.out().flush();
  }
  return bound.objects.size();
}

Status DrainPool(Session& session, const Arguments& arguments, const Target& pool) {
  TRY(Api * api, session.GetApi());
  if (pool.resource.kind != "MachinePool") {
    return Advise(BadRequest(fmt::format("{} holds data, which cannot be drained", pool.name)),
                  "cordon it, and delete what is on it when nobody needs it any more");
  }
  TRY(const Value object, FetchObject(*api, pool.resource, "", pool.name));
  const std::string uid(object.GetString({"metadata", "uid"}));
  const std::string label = ObjectLabel(pool.resource.ApiVersion(), pool.resource.kind, pool.name);
  TRY(const bool cordoned, SetUnschedulable(*api, pool, true));
  session.out() << label << (cordoned ? " cordoned\n" : " already cordoned\n");
  if (!arguments.Switch("delete-local-data")) {
    TRY(const Bound bound, FetchBound(session, *api, pool, uid));
    TRY_STATUS(RefuseLocalData(bound.objects));
  }
  const Patience patience(session.environment(), arguments.Span("timeout"));
  for (;;) {
    TRY(const size_t found, DrainOnce(session, *api, pool, uid, patience));
    if (found == 0) break;
  }
  session.out() << label << " drained\n";
  return OkStatus();
}

Status RunDrain(Session& session, const Arguments& arguments) {
  TRY(const std::vector<Target> pools, FindPools(session, arguments));
  for (const Target& pool : pools) TRY_STATUS(DrainPool(session, arguments, pool));
  return OkStatus();
}

Status RunMove(Session& session, const Arguments& arguments) {
  TRY(const std::vector<ObjectAddress> addresses, ChosenByWords(session, arguments));
  TRY(Api * api, session.GetApi());
  Failures failures(session.environment());
  for (const ObjectAddress& address : addresses) {
    TRY(const Value object, FetchObject(*api, address.resource, address.namespace_, address.name));
    const std::string label = ObjectLabel(object);
    if (address.resource.kind != "Machine") {
      failures.Add(BadRequest(fmt::format("{}: only machines can be moved", label)));
    } else if (object.GetString({"status", "placement", "poolUID"}).empty()) {
      failures.Add(BadRequest(fmt::format("{} is on no pool yet", label)));
    } else if (HasLocalDisk(object) && !arguments.Switch("delete-local-data")) {
      failures.Add(Advise(BadRequest(fmt::format("{} has disks on its host and loses them", label)),
                          "--delete-local-data moves it all the same"));
    } else {
      const Status asked = AskToLeave(*api, address.resource, object, "Move");
      failures.Add(asked);
      if (asked.ok()) {
        session.out() << fmt::format(
            "{} leaves pool {}\n", label, object.GetString({"status", "placement", "pool"}));
      }
    }
  }
  return failures.Outcome();
}

constexpr Flag kDeleteLocalData = {
    .name = "delete-local-data", .help = "Also machines with disks on their host, which are lost."};
constexpr std::array kDrainFlags = {
    kDeleteLocalData,
    Flag{.name = "timeout",
         .kind = FlagKind::kDuration,
         .value_name = "TIME",
         .help = "How long to wait until the pool is empty; 0 means as long as it takes.",
         .fallback = "0"},
};
constexpr std::array kMoveFlags = {
    kDeleteLocalData, flags::kSelector, flags::kFieldSelector, flags::kAll, flags::kAllNamespaces};

}  // namespace

Command CordonCommand() {
  return {.name = "cordon",
          .group = "Pools",
          .usage = "POOL...",
          .summary = "Keep new placements away from pools",
          .details = "What is there stays. Once the command has returned, nothing new lands there.",
          .examples = "berth cordon alpha\nberth cordon volumepool/disks",
          .run = &RunCordon};
}

Command UncordonCommand() {
  return {.name = "uncordon",
          .group = "Pools",
          .usage = "POOL...",
          .summary = "Let new placements onto pools again",
          .examples = "berth uncordon alpha",
          .run = &RunUncordon};
}

Command DrainCommand() {
  return {.name = "drain",
          .group = "Pools",
          .usage = "POOL...",
          .summary = "Cordon pools and move everything off them",
          .details =
              "Machines are stopped on their host and placed anew on other pools; one that "
              "fits nowhere else waits, stopped, and says why.",
          .examples = "berth drain alpha --timeout=10m",
          .flags = kDrainFlags,
          .run = &RunDrain};
}

Command MoveCommand() {
  return {.name = "move",
          .group = "Pools",
          .usage = "machine NAME... | machine/NAME...",
          .summary = "Stop machines and start them on other pools",
          .examples = "berth move machine/web",
          .flags = kMoveFlags,
          .words = Completion::kKindAndNames,
          .run = &RunMove};
}

}  // namespace berth::cli
