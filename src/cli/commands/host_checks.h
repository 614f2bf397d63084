// SPDX-License-Identifier: Apache-2.0
// What `berth doctor` looks at on this host: files, disks, limits.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/time.h"
#include "cli/environment.h"

namespace berth::cli {

enum class Verdict : uint8_t { kOk, kWarn, kFail };

struct Finding {
  Verdict verdict = Verdict::kOk;
  std::string_view title;
  std::string text;
  std::string next_step;  // "" if there is nothing to do
};

bool IsReadableByOthers(const std::string& path);
// A server raises its own soft limit, so the hard one is what counts.
Finding CheckDescriptors();
Finding JudgeDescriptors(uint64_t soft, uint64_t hard);
Finding CheckDiskSpace(const std::string& folder);
// Writes and syncs a small file in the folder a few times; takes at most a second.
Finding CheckSyncSpeed(const std::string& folder, const Environment& environment);

// "Sun, 06 Nov 1994 08:49:37 GMT"; nullopt for anything else.
std::optional<WallTime> ParseHttpDate(std::string_view text);

}  // namespace berth::cli
