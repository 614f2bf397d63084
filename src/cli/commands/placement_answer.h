// SPDX-License-Identifier: Apache-2.0
// Asking the server where something goes, and showing its answer.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "cli/api/api.h"
#include "meta/value.h"

namespace berth::cli {

// The PlacementReview with its answer. `spec` names an object, or holds one.
Result<meta::Value> AskForPlacement(Api& api, const std::string& namespace_, meta::Value spec);

// "Placed", "Fits", "NoPool"...
std::string_view VerdictOf(const meta::Value& review);

// The answer for people: a sentence, the pools that each rule keeps out, the ranking, who of a
// group gets which pool.
std::string PlacementText(std::string_view label, const meta::Value& review);

}  // namespace berth::cli
