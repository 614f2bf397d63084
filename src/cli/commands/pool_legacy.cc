// SPDX-License-Identifier: Apache-2.0
// pool allow-legacy: rights for a poollet that was written for a server without
// pool rights.
#include <fmt/core.h>

#include <array>
#include <utility>
#include <vector>

#include "base/strings.h"
#include "cli/arguments.h"
#include "cli/commands/pool_commands.h"
#include "cli/commands/pool_identity.h"
#include "cli/commands/pool_work.h"
#include "cli/failure.h"
#include "cli/objects/fetch.h"
#include "cli/session/session.h"

namespace berth::cli {
namespace {

using meta::Value;

constexpr std::string_view kRbac = "rbac.authorization.k8s.io";

Value BindingFor(const Target& pool) {
  Value labels = Value::Object();
  labels.Set(kLegacyLabel, "true");
  Value metadata = Value::Object();
  metadata.Set("name", LegacyBindingOf(pool));
  metadata.Set("labels", std::move(labels));
  Value role = Value::Object();
  role.Set("apiGroup", kRbac);
  role.Set("kind", "ClusterRole");
  role.Set("name", kLegacyRole);
  Value subject = Value::Object();
  subject.Set("apiGroup", kRbac);
  subject.Set("kind", "User");
  subject.Set("name", UserOf(pool));
  Value out = Value::Object();
  out.Set("apiVersion", std::string(kRbac) + "/v1");
  out.Set("kind", "ClusterRoleBinding");
  out.Set("metadata", std::move(metadata));
  out.Set("roleRef", std::move(role));
  out.Set("subjects", Value::Array({std::move(subject)}));
  return out;
}

Status Withdraw(Session& session, Api& api, const Target& pool) {
  TRY(const bool had_rights, DropLegacyBinding(api, pool));
  const Status marked = AnnotatePool(api, pool, kLegacyAnnotation, Value());
  if (!marked.Is(Reason::kNotFound)) TRY_STATUS(marked);
  session.out() << fmt::format(
      "{} {} the rights of a pool only\n", LabelOf(pool), had_rights ? "now has" : "has");
  return OkStatus();
}

Status Allow(Session& session, Api& api, const Target& pool) {
  const Status created = api.Post(std::string(kBindingsPath), BindingFor(pool)).status();
  if (!created.Is(Reason::kAlreadyExists)) TRY_STATUS(created);
  TRY_STATUS(AnnotatePool(api, pool, kLegacyAnnotation, Value("true")));
  session.out() << fmt::format("{} now has the wide rights of a legacy poollet\n", LabelOf(pool));
  return OkStatus();
}

Status CheckMode(const Target& pool, const Value& object) {
  if (object.GetString({"status", "agent", "mode"}) != "Session") return OkStatus();
  return BadRequest(
      fmt::format("{} speaks in a session and needs no rights of its own", LabelOf(pool)));
}

Status RunAllowLegacy(Session& session, const Arguments& arguments) {
  TRY(const std::vector<Target> pools, FindPools(session, arguments.words()));
  TRY(Api * api, session.GetApi());
  if (arguments.Switch("withdraw")) {
    for (const Target& pool : pools) TRY_STATUS(Withdraw(session, *api, pool));
    return OkStatus();
  }
  std::vector<std::string> users;
  for (const Target& pool : pools) {
    TRY(const Value object, FetchObject(*api, pool.resource, "", pool.name));
    TRY_STATUS(CheckMode(pool, object));
    users.push_back(UserOf(pool));
  }
  if (arguments.Switch("dry-run")) {
    for (const std::string& user : users) {
      session.out() << fmt::format("{} would be bound to {}\n", user, kLegacyRole);
    }
    return OkStatus();
  }
  TRY_STATUS(Confirm(session,
                     arguments,
                     fmt::format("{} may then read and change the machines, volumes, buckets and "
                                 "SECRETS of every namespace, and every pool. Whoever has its key "
                                 "has them too. Do this only for a poollet that cannot do with "
                                 "less, and take it back with --withdraw.\n",
                                 Join(users, ", "))));
  for (const Target& pool : pools) TRY_STATUS(Allow(session, *api, pool));
  return OkStatus();
}

constexpr std::array kLegacyFlags = {
    Flag{.name = "withdraw", .help = "Take the rights back."},
    Flag{.name = "yes", .help = "Do not ask: you know the risk."},
    Flag{.name = "dry-run", .help = "Only say who would get which role."},
};

}  // namespace

Command PoolAllowLegacyCommand() {
  return {.name = "allow-legacy",
          .usage = "POOL...",
          .summary =
              "Give a poollet of the API mode the wide rights that it was "
              "written for",
          .details =
              "Poollets of the API mode may see and change what is bound to their "
              "own pool. One "
              "that lists everything fails with that; this binds the cluster role "
              "berth:legacy-poollet to the identity of its pool. berth get shows "
              "it, berth doctor "
              "warns of it.",
          .examples =
              "berth pool allow-legacy old-rack\n"
              "berth pool allow-legacy volumepool/old-ceph --yes\n"
              "berth pool allow-legacy old-rack --withdraw",
          .flags = kLegacyFlags,
          .run = &RunAllowLegacy};
}

}  // namespace berth::cli
