// SPDX-License-Identifier: Apache-2.0
// pool purge: what a host runs and the server does not know.
#include <fmt/core.h>

#include <array>
#include <vector>

#include "base/strings.h"
#include "cli/arguments.h"
#include "cli/commands/pool_commands.h"
#include "cli/commands/pool_work.h"
#include "cli/failure.h"
#include "cli/objects/fetch.h"
#include "cli/objects/patience.h"
#include "cli/session/session.h"

namespace berth::cli {
namespace {

using meta::Value;

constexpr std::string_view kPurgeAnnotation = "berth.dev/purge-orphans";

// UIDs with commas, or "*".
Result<std::string> Condemned(const Arguments& arguments) {
  const std::vector<std::string> uids(arguments.words().begin() + 1, arguments.words().end());
  if (arguments.Switch("all")) {
    if (!uids.empty()) return BadRequest("UIDs and --all cannot be given together");
    return std::string("*");
  }
  if (uids.empty()) {
    return Advise(BadRequest("nothing is named that shall be destroyed"),
                  "name UIDs, or say --all; berth describe machinepool/NAME shows them");
  }
  for (const std::string& uid : uids) {
    if (uid.find_first_of(",* ") != std::string::npos) {
      return BadRequest(fmt::format("{} is not a UID", Quote(uid)));
    }
  }
  return Join(uids, ",");
}

// What is condemned, for people.
std::string WordFor(const std::string& condemned, const OrphansSaid& orphans) {
  if (condemned != "*") return condemned;
  const bool is_counted = orphans.state == OrphansSaid::State::kSome;
  return is_counted ? "all of it" : "all of it that is of this pool";
}

// The server tells the host of what it lists: of a list that was cut, as room comes.
std::string_view WhenOf(const OrphansSaid& orphans) {
  return orphans.state == OrphansSaid::State::kSome ? "" : ", once it is listed";
}

// The server takes the annotation away when the host has nothing left of it.
Status AwaitPurged(Session& session, Api& api, const Target& pool, Duration limit) {
  const Patience patience(session.environment(), limit);
  return Advise(
      AwaitAnnotationGone(api, pool, kPurgeAnnotation, patience, "its host to remove them"),
      "it stays condemned: the host removes it as soon as it is connected");
}

Status RunPurge(Session& session, const Arguments& arguments) {
  if (arguments.words().empty()) return BadRequest("no pool is named");
  TRY(const std::string condemned, Condemned(arguments));
  TRY(const std::vector<Target> pools, FindPools(session, {arguments.words().front()}));
  const Target& pool = pools.front();
  TRY(Api * api, session.GetApi());
  TRY(const Value object, FetchObject(*api, pool.resource, "", pool.name));
  const OrphansSaid orphans = OrphansSaidOf(object);
  if (orphans.state == OrphansSaid::State::kNone) {
    session.out() << LabelOf(pool) << " has nothing that the server does not know\n";
    return OkStatus();
  }
  const std::string what = WordFor(condemned, orphans);
  if (arguments.Switch("dry-run")) {
    session.out() << fmt::format("{}: {}; {} would be destroyed{}\n",
                                 LabelOf(pool),
                                 Printable(orphans.message),
                                 what,
                                 WhenOf(orphans));
    return OkStatus();
  }
  TRY_STATUS(Confirm(session,
                     arguments,
                     fmt::format("{}: {}.\nIts host stops and destroys {}, with its disks{}; this "
                                 "cannot be undone. It may be somebody's: after a restore of an "
                                 "old backup the server has forgotten what came later.\n",
                                 LabelOf(pool),
                                 Printable(orphans.message),
                                 what,
                                 WhenOf(orphans))));
  TRY_STATUS(AnnotatePool(*api, pool, kPurgeAnnotation, condemned));
  TRY_STATUS(AwaitPurged(session, *api, pool, arguments.Span("timeout")));
  session.out() << LabelOf(pool) << " purged\n";
  return OkStatus();
}

constexpr std::array kPurgeFlags = {
    Flag{.name = "all", .help = "Everything on the pool that the server does not know now."},
    Flag{.name = "timeout",
         .kind = FlagKind::kDuration,
         .value_name = "TIME",
         .help = "How long to wait for the host; 0 means as long as it takes.",
         .fallback = "2m"},
    Flag{.name = "yes", .help = "Do not ask: you know the risk."},
    Flag{.name = "dry-run", .help = "Only say what would be destroyed."},
};

}  // namespace

Command PoolPurgeCommand() {
  return {.name = "purge",
          .usage = "POOL UID... | POOL --all",
          .summary = "Destroy what a host runs and the server does not know",
          .details =
              "A host leaves alone what carries this cluster's mark and "
              "is neither assigned to it "
              "nor was deleted; the pool's condition Orphans lists it. "
              "This is the operator's word "
              "that it may go.",
          .examples =
              "berth describe machinepool/rack1-07\n"
              "berth pool purge rack1-07 0b9f6a52-5d0e-4f5c-9f7e-0d8a6a3c1e11\n"
              "berth pool purge rack1-07 --all --dry-run",
          .flags = kPurgeFlags,
          .run = &RunPurge};
}

}  // namespace berth::cli
