// SPDX-License-Identifier: Apache-2.0
// What every process that stays is told in the same words: how it logs, and where it keeps things.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "base/log.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/environment.h"

namespace berth::app {

inline constexpr std::array<std::string_view, 4> kLogLevels = {"debug", "info", "warning", "error"};
inline constexpr std::array<std::string_view, 2> kLogFormats = {"text", "json"};

inline constexpr cli::Flag kLogLevelFlag = {.name = "log-level",
                                            .kind = cli::FlagKind::kText,
                                            .value_name = "LEVEL",
                                            .help = "(logs) What is logged.",
                                            .fallback = "info",
                                            .values = kLogLevels,
                                            .variable = "BERTH_LOG_LEVEL"};
inline constexpr cli::Flag kLogFormatFlag = {.name = "log-format",
                                             .kind = cli::FlagKind::kText,
                                             .value_name = "FORMAT",
                                             .help = "(logs) How it is logged.",
                                             .fallback = "text",
                                             .values = kLogFormats,
                                             .variable = "BERTH_LOG_FORMAT"};

// The flag of that name.
log::Level LogLevelOf(const cli::Arguments& arguments);
// As the two flags say.
void ConfigureLog(const cli::Arguments& arguments);

// As root /var/lib/berth, else below the user's data folder.
std::string DefaultDataDir(const cli::Environment& environment);

}  // namespace berth::app
