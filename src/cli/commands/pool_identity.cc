// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/pool_identity.h"

#include <fmt/core.h>

#include <ostream>
#include <set>
#include <string_view>
#include <vector>

#include "base/strings.h"
#include "cli/commands/pool_commands.h"
#include "cli/commands/pool_work.h"
#include "cli/commands/revocation.h"
#include "meta/value.h"

namespace berth::cli {
namespace {

std::string UserIn(std::string_view group, const Target& pool) {
  return fmt::format("{}:system:{}:{}", group, ToLower(pool.resource.kind), pool.name);
}

// Under every domain of the server: all of these name the same pool. A domain is an alias in any
// spelling; those that the server shows and lower case are the ones in use.
Result<std::set<std::string>> UsersOf(Session& session, const Target& pool) {
  TRY(Discovery * discovery, session.GetDiscovery());
  TRY(const std::vector<Resource> all, discovery->All());
  std::string canonical = pool.resource.group;
  for (const Resource& resource : all) {
    if (resource.group == canonical && !resource.alias_of.empty()) canonical = resource.alias_of;
  }
  std::set<std::string> users = {UserOf(pool)};
  for (const Resource& resource : all) {
    if (resource.kind != pool.resource.kind) continue;
    if (resource.group != canonical && resource.alias_of != canonical) continue;
    users.insert(UserIn(resource.group, pool));
    users.insert(UserIn(ToLower(resource.group), pool));
  }
  return users;
}

}  // namespace

std::string UserOf(const Target& pool) {
  return UserIn(pool.resource.alias_of.empty() ? pool.resource.group : pool.resource.alias_of,
                pool);
}

std::string LegacyBindingOf(const Target& pool) {
  return fmt::format("{}:{}:{}", kLegacyRole, ToLower(pool.resource.kind), pool.name);
}

Result<bool> DropLegacyBinding(Api& api, const Target& pool) {
  const Status deleted =
      api.Delete(fmt::format("{}/{}", kBindingsPath, LegacyBindingOf(pool)), meta::Value::Object())
          .status();
  if (deleted.Is(Reason::kNotFound)) return false;
  TRY_STATUS(deleted);
  return true;
}

Status LockOut(Session& session, const Target& pool) {
  TRY(Api * api, session.GetApi());
  TRY(const std::set<std::string> users, UsersOf(session, pool));
  for (const std::string& user : users) TRY_STATUS(RevokeUser(session, user));
  session.out() << fmt::format("{}: the certificates of its poollet are revoked\n", LabelOf(pool));
  TRY(const bool had_rights, DropLegacyBinding(*api, pool));
  if (had_rights) session.out() << LabelOf(pool) << ": its wide rights are taken back\n";
  session.out().flush();
  return OkStatus();
}

}  // namespace berth::cli
