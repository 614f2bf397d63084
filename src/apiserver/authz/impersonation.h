// SPDX-License-Identifier: Apache-2.0
// Impersonation: acting as somebody else, by the headers Impersonate-User, -Group, -Uid and
// -Extra-<key>, under the verb `impersonate`. The headers are honoured or refused, never ignored.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "apiserver/authz/authorizer.h"
#include "base/result.h"
#include "net/http.h"

namespace berth::apiserver {

// What must be allowed to act with that name: resource users or groups (core group), uids or
// userextras/<key> (authentication.k8s.io).
RequestInfo ImpersonationRequest(std::string_view resource, std::string_view name);

// The identity to go on with; nullopt without impersonation headers. `headers` are all of the
// request. Forbidden if the sender may not impersonate every part of it; BadRequest for headers
// without a user or that we do not know.
Result<std::optional<Identity>> Impersonate(const Authorizer& authorizer,
                                            const Identity& sender,
                                            std::span<const net::Header> headers);

}  // namespace berth::apiserver
