// SPDX-License-Identifier: Apache-2.0
#include "test/fuzz/targets.h"

#include <algorithm>

namespace berth::fuzz {
namespace {

constexpr Target kTargets[] = {
    {"json", &Json},
    {"yaml", &Yaml},
    {"protobuf", &Protobuf},
    {"quantity", &Quantity},
    {"selector", &Selector},
    {"patch", &Patch},
    {"apply", &Apply},
    {"http", &Http},
    {"frames", &Frames},
    {"websocket", &WebSocket},
    {"at_rest", &AtRest},
#ifndef BERTH_FUZZ_WITHOUT_SESSION
    {"backup", &Backup},
    {"continue", &Continue},
    {"session", &Session},
#endif
};

}  // namespace

std::span<const Target> AllTargets() { return kTargets; }

const Target* FindTarget(std::string_view name) {
  const auto* found = std::ranges::find(kTargets, name, &Target::name);
  return found == std::end(kTargets) ? nullptr : found;
}

}  // namespace berth::fuzz
