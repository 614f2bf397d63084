// SPDX-License-Identifier: Apache-2.0
// A Call is one request on its way through the server: what was sent, who sent it, and what was
// found out so far. Handlers share it by pointer, because a streaming answer outlives its handler.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "apiserver/authn/credential_hold.h"
#include "apiserver/http/query.h"
#include "apiserver/identity.h"
#include "apiserver/registry.h"
#include "apiserver/registry/field_ownership.h"
#include "base/result.h"
#include "net/http.h"

namespace berth::apiserver {

struct Call {
  net::HttpRequest http;
  Query query;
  RequestInfo info;
  Identity identity;
  std::string impersonator;           // who really sent it, "" without impersonation
  std::string created_name;           // of a new object, for the audit log
  std::string id;                     // Audit-Id of the answer
  std::vector<std::string> warnings;  // become Warning headers
  // Of watches and conversations: they end with the credentials that they were opened with.
  std::unique_ptr<CredentialHold> hold;
};
using CallPtr = std::shared_ptr<Call>;

// Reads ?dryRun=. Anything but "All" is a BadRequest.
Result<DryRun> ReadDryRun(const Call& call);
// The context of a write: identity, dry run, subresource, field manager.
Result<WriteContext> ReadWriteContext(Call& call);
// An apply but for its configuration: manager, force, subresource. Invalid if it names no manager.
Result<ApplyRequest> ReadApplyRequest(const Call& call);
// Reads namespace, labelSelector and fieldSelector; a field that the kind does not select by is a
// BadRequest.
Result<Selection> ReadSelection(const Call& call);
// An object in a body must be the one that the path names; what it leaves out is filled in from the
// path.
Status CheckAgainstPath(const Call& call, meta::Object& object);
// machines.compute.ironcore.dev "x", for messages and details.
ErrorObject ObjectOf(const Call& call);

}  // namespace berth::apiserver
