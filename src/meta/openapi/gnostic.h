// SPDX-License-Identifier: Apache-2.0
// OpenAPI v2 in protobuf, message openapi.v2.Document of gnostic: the only form that kubectl up
// to 1.26 reads.
#pragma once

#include <string>
#include <string_view>

#include "meta/value.h"

namespace berth::meta {

// What kubectl up to 1.26 asks for. It is no valid media type ('@'), so nobody may answer with it.
constexpr std::string_view kGnosticMediaTypeAsked =
    "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
// What later clients ask for, and what is answered.
constexpr std::string_view kGnosticMediaType =
    "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";

// REQUIRES: a document of OpenApiV2.
std::string ToGnostic(const Value& document);

}  // namespace berth::meta
