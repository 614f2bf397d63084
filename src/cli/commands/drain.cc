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
  const auto local_data =
      arguments.Switch("delete-local-data") ? LocalDisks::kLost : LocalDisks::kKept;
  for (const Target& pool : pools) {
    const Patience patience(session.environment(), arguments.Span("timeout"));
    TRY_STATUS(DrainPool(session, pool, local_data, patience));
  }
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
         .help = "How long to wait until the pool is empty; 0 means as long as "
                 "it takes.",
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
              "Machines are stopped on their host and placed anew on "
              "other pools; one that "
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
