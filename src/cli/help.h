// SPDX-License-Identifier: Apache-2.0
// Help text, made from the command table.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "cli/command.h"

namespace berth::cli {

// "berth auth can-i".
std::string CommandPath(const std::vector<const Command*>& path);

// What `--help` prints for the last command of `path`. The root lists its commands by group; other
// commands show usage, examples and flags.
std::string HelpText(const std::vector<const Command*>& path, std::span<const Flag> globals);

}  // namespace berth::cli
