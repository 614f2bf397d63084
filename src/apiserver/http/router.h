// SPDX-License-Identifier: Apache-2.0
// The router reads a method and a path into a RequestInfo, as Kubernetes lays out its paths:
//
//   /api/v1/namespaces/NS/RESOURCE/NAME/SUBRESOURCE
//   /apis/GROUP/VERSION/namespaces/NS/RESOURCE/NAME/SUBRESOURCE
//
// It is pure and knows no handler.
#pragma once

#include <string>
#include <string_view>

#include "apiserver/http/query.h"
#include "apiserver/identity.h"
#include "meta/scheme.h"

namespace berth::apiserver {

// `path` is as sent: segments are decoded one by one, so that an encoded slash makes no new one. A
// path that names no resource gives is_resource == false, or a RequestInfo without a kind;
// BadRequest is for a segment that cannot be part of any name. `query` decides between list and
// watch, and names the object of a list by metadata.name.
Result<RequestInfo> ParseRequest(const meta::Scheme& scheme,
                                 std::string_view method,
                                 std::string_view path,
                                 const Query& query);

}  // namespace berth::apiserver
