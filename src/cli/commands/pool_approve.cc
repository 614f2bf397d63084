// SPDX-License-Identifier: Apache-2.0
// pool approve-deletions: an operator's word for a host that holds mass deletions back.
#include <fmt/core.h>

#include <array>
#include <string>
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

constexpr std::string_view kApproveAnnotation = "berth.dev/approve-deletions";
constexpr size_t kNamesShown = 20;

// "shop/web, shop/db and 3 more": what on the pool is to go.
std::string Leaving(const std::vector<Bound>& all, size_t& count) {
  std::vector<std::string> names;
  for (const Bound& bound : all) {
    for (const Value& object : bound.objects) {
      const bool goes = !object.GetString({"metadata", "deletionTimestamp"}).empty() ||
                        !object.GetString({"status", "placement", "release"}).empty();
      if (!goes) continue;
      ++count;
      if (names.size() >= kNamesShown) continue;
      names.push_back(fmt::format("{}/{}",
                                  Printable(object.GetString({"metadata", "namespace"})),
                                  Printable(object.GetString({"metadata", "name"}))));
    }
  }
  std::string text = Join(names, ", ");
  if (count > names.size()) text += fmt::format(" and {} more", count - names.size());
  return text;
}

// The server takes the approval away with the last deletion that it was for.
Status AwaitSettled(Session& session, Api& api, const Target& pool, Duration limit) {
  const Patience patience(session.environment(), limit);
  return Advise(
      AwaitAnnotationGone(api, pool, kApproveAnnotation, patience, "its host to delete them"),
      fmt::format("it stays approved until its host has done it; berth pool "
                  "approve-deletions {} --withdraw takes it back",
                  pool.name));
}

Status RunApprove(Session& session, const Arguments& arguments) {
  if (arguments.words().size() != 1) return BadRequest("name one pool");
  TRY(const std::vector<Target> pools, FindPools(session, arguments.words()));
  const Target& pool = pools.front();
  TRY(Api * api, session.GetApi());
  if (arguments.Switch("withdraw")) {
    TRY_STATUS(AnnotatePool(*api, pool, kApproveAnnotation, Value()));
    session.out() << LabelOf(pool) << " holds mass deletions back again\n";
    return OkStatus();
  }
  TRY(const Value object, FetchObject(*api, pool.resource, "", pool.name));
  TRY(const std::vector<Bound> all, FetchBound(session, pool, object));
  size_t count = 0;
  size_t total = 0;
  for (const Bound& bound : all) total += bound.objects.size();
  const std::string leaving = Leaving(all, count);
  const std::string what =
      count == 0 ? std::string(
                       "nothing that the server shows is to be deleted; what was moved away "
                       "or deleted by force may be")
                 : fmt::format("{} of {} are to be deleted: {}", count, total, leaving);
  if (arguments.Switch("dry-run")) {
    session.out() << fmt::format("{}: {}\n", LabelOf(pool), what);
    return OkStatus();
  }
  TRY_STATUS(Confirm(session,
                     arguments,
                     fmt::format("{}: {}.\nIts host holds deletions back because the server's "
                                 "history was rewound. If a wrong or an old backup was restored, "
                                 "this destroys what should have stayed; it cannot be undone.\n",
                                 LabelOf(pool),
                                 what)));
  TRY_STATUS(AnnotatePool(*api, pool, kApproveAnnotation, Value("true")));
  TRY_STATUS(AwaitSettled(session, *api, pool, arguments.Span("timeout")));
  session.out() << LabelOf(pool) << " has deleted what was approved\n";
  return OkStatus();
}

constexpr std::array kApproveFlags = {
    Flag{.name = "withdraw", .help = "Take an approval back that has not been used up."},
    Flag{.name = "timeout",
         .kind = FlagKind::kDuration,
         .value_name = "TIME",
         .help = "How long to wait for the host; 0 means as long as it takes.",
         .fallback = "2m"},
    Flag{.name = "yes", .help = "Do not ask: you know the risk."},
    Flag{.name = "dry-run", .help = "Only say what would be deleted."},
};

}  // namespace

Command PoolApproveCommand() {
  return {.name = "approve-deletions",
          .usage = "POOL",
          .summary = "Let a host delete what it holds back after a restore",
          .details =
              "A host that sees an older or a restored history, and is told to delete more than a "
              "tenth of what it runs (at least 3), deletes nothing and says so (event "
              "MassDeletionHeld on the pool). This is the operator's word that the deletions are "
              "meant; it counts for them only.",
          .examples =
              "berth events --for machinepool/rack1-07\n"
              "berth pool approve-deletions rack1-07 --dry-run\n"
              "berth pool approve-deletions rack1-07\n"
              "berth pool approve-deletions rack1-07 --withdraw",
          .flags = kApproveFlags,
          .run = &RunApprove};
}

}  // namespace berth::cli
