// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/start_progress.h"

#include <algorithm>
#include <ostream>
#include <utility>

#include "base/strings.h"

namespace berth::cli {
namespace {

using meta::Value;

// What ImageReady says while the image is on its way: "45 % of 120.5 MiB".
std::string PullOf(const Value& machine) {
  const Value* const conditions = machine.Get({"status", "conditions"});
  if (conditions == nullptr || !conditions->is_array()) return {};
  for (const Value& condition : conditions->items()) {
    if (condition.GetString({"type"}) != "ImageReady") continue;
    if (condition.GetString({"reason"}) != "Pulling") return {};
    return std::string(condition.GetString({"message"}));
  }
  return {};
}

// Of a host that says something else: as if nothing had come.
int64_t PercentOf(std::string_view text) {
  const std::optional<int64_t> percent = ParseInt(text.substr(0, text.find(' ')));
  return std::clamp<int64_t>(percent.value_or(0), 0, 100);
}

}  // namespace

void StartProgress::ShowBar(const std::string& what,
                            size_t done,
                            size_t of,
                            const std::string& text) {
  if (shown_ != what) bar_.emplace(environment_, what);
  shown_ = what;
  bar_->Show(done, of, text);
}

void StartProgress::Show(const Value& machine) {
  const std::string pull = PullOf(machine);
  if (environment_.terminal.out_is_terminal) {
    if (!pull.empty()) return ShowBar("image", static_cast<size_t>(PercentOf(pull)), 100, pull);
    const bool is_placed = !machine.GetString({"status", "placement", "poolUID"}).empty();
    return ShowBar("boot", is_placed ? 1 : 0, 2, is_placed ? "on its host" : "waits for a host");
  }
  if (pull.empty() || PercentOf(pull) / 10 <= tenths_) return;
  tenths_ = PercentOf(pull) / 10;
  *environment_.err << label_ << ": image " << Printable(pull) << std::endl;
}

}  // namespace berth::cli
