// SPDX-License-Identifier: Apache-2.0
#include "cli/render/palette.h"

#include <fmt/core.h>

namespace berth::cli {

Palette::Palette(const Environment& environment)
    : colours_(environment.terminal.out_is_terminal && environment.Variable("NO_COLOR").empty() &&
               environment.Variable("TERM") != "dumb") {}

std::string Palette::Paint(std::string_view code, std::string_view text) const {
  return colours_ ? fmt::format("\x1b[{}m{}\x1b[0m", code, text) : std::string(text);
}

}  // namespace berth::cli
