// SPDX-License-Identifier: Apache-2.0
// Kinds that this program knows by itself, without asking a server.
#pragma once

#include <string_view>

#include "cli/api/resource.h"
#include "meta/kind.h"
#include "meta/scheme.h"

namespace berth::cli {

// All kinds under the default domains.
const meta::Scheme& KnownKinds();

// The kind that a word without a group stands for, or null.
const meta::KindInfo* FindKnownKind(std::string_view word);

// Null for a kind that only the server knows, or that it serves under another domain.
const meta::KindInfo* FindKnownKind(const Resource& resource);

}  // namespace berth::cli
