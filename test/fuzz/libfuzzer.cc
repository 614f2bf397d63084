// SPDX-License-Identifier: Apache-2.0
// One program for all targets; BERTH_FUZZ_TARGET names the one to run.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/check.h"
#include "test/fuzz/targets.h"

// The names are libFuzzer's.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const berth::fuzz::Target* const target = [] {
    const char* name = std::getenv("BERTH_FUZZ_TARGET");
    const auto* found = berth::fuzz::FindTarget(name == nullptr ? "" : name);
    CHECK(found != nullptr) << "BERTH_FUZZ_TARGET names no target";
    return found;
  }();
  target->run({reinterpret_cast<const char*>(data), size});
  return 0;
}
