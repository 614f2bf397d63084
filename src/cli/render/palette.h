// SPDX-License-Identifier: Apache-2.0
// A Palette colours words on a terminal, and leaves them alone everywhere else.
#pragma once

#include <string>
#include <string_view>

#include "cli/environment.h"

namespace berth::cli {

class Palette {
 public:
  // Colours only on a terminal, and not if $NO_COLOR is set or $TERM is "dumb".
  explicit Palette(const Environment& environment);

  std::string Good(std::string_view text) const { return Paint("32", text); }
  std::string Warning(std::string_view text) const { return Paint("33", text); }
  std::string Bad(std::string_view text) const { return Paint("31", text); }
  std::string Quiet(std::string_view text) const { return Paint("2", text); }
  std::string Strong(std::string_view text) const { return Paint("1", text); }

 private:
  std::string Paint(std::string_view code, std::string_view text) const;
  bool colours_ = false;
};

}  // namespace berth::cli
