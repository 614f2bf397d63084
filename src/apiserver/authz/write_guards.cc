// SPDX-License-Identifier: Apache-2.0
#include "apiserver/authz/write_guards.h"

#include <optional>

#include "apiserver/authz/certificate_rights.h"
#include "apiserver/authz/escalation.h"
#include "apiserver/authz/pool_authorizer.h"
#include "apiserver/authz/servers_own.h"

namespace berth::apiserver {

WriteGuards GuardsFor(const Authorizer& authorizer,
                      const Identity& identity,
                      const RequestInfo& request) {
  // What no role grants was granted to a pool, whose rights end at what it may write.
  std::optional<PoolIdentity> pool;
  if (authorizer.pools() != nullptr && !authorizer.AllowsByRoles(identity, request)) {
    pool = PoolIdentityOf(authorizer.scheme(), identity);
  }
  WriteGuards guards;
  guards.write = [&authorizer, identity, pool, subresource = request.subresource](
                     const meta::Object* before, const meta::Object& after) {
    if (pool) TRY_STATUS(authorizer.pools()->CheckWrite(*pool, before, after));
    if (before == nullptr) TRY_STATUS(CheckNewServersOwn(authorizer, identity, after));
    TRY_STATUS(CheckCertificateWrite(authorizer, identity, subresource, before, after));
    return CheckPrivilegedWrite(authorizer, identity, before, after);
  };
  guards.force = [&authorizer, identity](const meta::Object& object) {
    return CheckLettingGo(authorizer, identity, object);
  };
  return guards;
}

}  // namespace berth::apiserver
