// SPDX-License-Identifier: Apache-2.0
// cordon, uncordon, drain and move: keeping things away from a pool, and
// getting them off it.
#include <fmt/core.h>

#include <array>
#include <utility>
#include <vector>

#include "base/strings.h"
#include "cli/api/known_kinds.h"
#include "cli/arguments.h"
#include "cli/commands/chosen.h"
#include "cli/commands/flags.h"
#include "cli/commands/host_volumes.h"
#include "cli/commands/pool_mode.h"
#include "cli/commands/pool_work.h"
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

Status SetAll(Session& session, const Arguments& arguments, Schedulable wanted) {
  TRY(const std::vector<Target> pools, FindPools(session, arguments.words()));
  TRY(Api * api, session.GetApi());
  Failures failures(session.environment());
  const std::string_view done = wanted == Schedulable::kNo ? "cordoned" : "uncordoned";
  for (const Target& pool : pools) {
    const Result<bool> changed = SetSchedulable(*api, pool, wanted);
    if (!changed.ok()) {
      failures.Add(changed.status());
      continue;
    }
    session.out() << fmt::format("{} {}{}\n", LabelOf(pool), *changed ? "" : "already ", done);
  }
  return failures.Outcome();
}

Status RunCordon(Session& session, const Arguments& arguments) {
  return SetAll(session, arguments, Schedulable::kNo);
}
Status RunUncordon(Session& session, const Arguments& arguments) {
  return SetAll(session, arguments, Schedulable::kYes);
}

Status RunDrain(Session& session, const Arguments& arguments) {
  TRY(const std::vector<Target> pools, FindPools(session, arguments.words()));
  const DrainChoice choice{
      .local_disks = arguments.Switch("delete-local-data") ? LocalDisks::kLost : LocalDisks::kKept,
      .tied_machines =
          arguments.Switch("ignore-host-volumes") ? TiedMachines::kStopped : TiedMachines::kKept};
  for (const Target& pool : pools) {
    const Patience patience(session.environment(), arguments.Span("timeout"));
    TRY_STATUS(DrainPool(session, pool, choice, patience));
  }
  return OkStatus();
}

Status CheckMode(Session& session, const Value& machine) {
  const std::string pool_name(machine.GetString({"status", "placement", "pool"}));
  TRY(Api * api, session.GetApi());
  TRY(const std::vector<Target> pools, FindPools(session, {pool_name}));
  const Result<Value> pool = FetchObject(*api, pools.front().resource, "", pool_name);
  // Who may move machines need not be allowed to see pools.
  if (!pool.ok() || ModeOf(*pool) == PoolMode::kSession) return OkStatus();
  return Advise(BadRequest(fmt::format("{} cannot be moved: {} {}",
                                       ObjectLabel(machine),
                                       LabelOf(pools.front()),
                                       WhyNothingLeaves(ModeOf(*pool)))),
                "delete it and create it again");
}

Status CheckMovable(Session& session,
                    const Arguments& arguments,
                    const ObjectAddress& address,
                    const Value& object,
                    HostVolumes& volumes) {
  const std::string label = ObjectLabel(object);
  if (address.resource.kind != "Machine") {
    return BadRequest(fmt::format("{}: only machines can be moved", label));
  }
  if (!IsPlaced(object)) return BadRequest(fmt::format("{} is on no pool yet", label));
  if (HasLocalDisk(object) && !arguments.Switch("delete-local-data")) {
    return Advise(BadRequest(fmt::format("{} has disks on its host and loses them", label)),
                  "--delete-local-data moves it all the same");
  }
  TRY_STATUS(CheckMode(session, object));
  if (arguments.Switch("ignore-host-volumes")) return OkStatus();
  TRY(const std::vector<std::string> tied, volumes.Of(object));
  if (tied.empty()) return OkStatus();
  return Advise(BadRequest(fmt::format("{} fits nowhere else: only its host reaches volume{} {}",
                                       label,
                                       tied.size() == 1 ? "" : "s",
                                       Join(tied, ", "))),
                "--ignore-host-volumes stops it all the same; it starts where its volumes are");
}

Status RunMove(Session& session, const Arguments& arguments) {
  TRY(const std::vector<ObjectAddress> addresses, ChosenByWords(session, arguments));
  TRY(Api * api, session.GetApi());
  TRY(const std::string space, session.Namespace());
  HostVolumes volumes(session, arguments.Switch("all-namespaces") ? std::string() : space);
  Failures failures(session.environment());
  for (const ObjectAddress& address : addresses) {
    TRY(const Value object, FetchObject(*api, address.resource, address.namespace_, address.name));
    Status asked = CheckMovable(session, arguments, address, object, volumes);
    if (asked.ok()) asked = AskToLeave(*api, address.resource, object, "Move");
    failures.Add(asked);
    if (!asked.ok()) continue;
    session.out() << fmt::format("{} leaves pool {}\n",
                                 ObjectLabel(object),
                                 object.GetString({"status", "placement", "pool"}));
  }
  return failures.Outcome();
}

constexpr Flag kDeleteLocalData = {
    .name = "delete-local-data", .help = "Also machines with disks on their host, which are lost."};
constexpr Flag kIgnoreHostVolumes = {
    .name = "ignore-host-volumes",
    .help = "Also machines whose volumes only their host reaches: they stop, and wait for it."};
constexpr std::array kDrainFlags = {
    kDeleteLocalData,
    kIgnoreHostVolumes,
    Flag{.name = "timeout",
         .kind = FlagKind::kDuration,
         .value_name = "TIME",
         .help = "How long to wait until the pool is empty; 0 means as long as "
                 "it takes.",
         .fallback = "0"},
};
constexpr std::array kMoveFlags = {kDeleteLocalData,
                                   kIgnoreHostVolumes,
                                   flags::kSelector,
                                   flags::kFieldSelector,
                                   flags::kAll,
                                   flags::kAllNamespaces};

}  // namespace

Command CordonCommand() {
  return {.name = "cordon",
          .group = "Pools",
          .usage = "POOL...",
          .summary = "Keep new placements away from pools",
          .details =
              "What is there stays. Once the command has returned, "
              "nothing new lands there.",
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
              "Machines are stopped on their host and placed anew on other pools; one that fits "
              "nowhere else waits, stopped, and says why. Machines that would lose disks, or that "
              "certainly fit nowhere else because of their volumes, are refused first.",
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
