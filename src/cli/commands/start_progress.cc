// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/start_progress.h"

#include <algorithm>
#include <ostream>
#include <utility>

#include "base/strings.h"

namespace berth::cli {
namespace {

using meta::Value;

constexpr size_t kPlaced = 1;
constexpr size_t kHasImage = 2;
constexpr size_t kStarted = 4;  // with its disks
constexpr size_t kSteps = 5;    // and it has said something

// Null if there is none.
const Value* ConditionOf(const Value& machine, std::string_view type) {
  const Value* const conditions = machine.Get({"status", "conditions"});
  if (conditions == nullptr || !conditions->is_array()) return nullptr;
  for (const Value& condition : conditions->items()) {
    if (condition.GetString({"type"}) == type) return &condition;
  }
  return nullptr;
}

std::string_view WordOf(const Value* condition, std::string_view word) {
  return condition == nullptr ? std::string_view() : condition->GetString({word});
}

// Of a host that says something else: as if nothing had come.
int64_t PercentOf(std::string_view text) {
  const std::optional<int64_t> percent = ParseInt(text.substr(0, text.find(' ')));
  return std::clamp<int64_t>(percent.value_or(0), 0, 100);
}

struct BootStep {
  size_t done = 0;
  std::string text;
};

BootStep StepOf(const Value& machine) {
  if (machine.GetString({"status", "placement", "poolUID"}).empty()) {
    return {.done = 0, .text = "waits for a host"};
  }
  if (machine.GetString({"status", "state"}) == "Running") {
    return {.done = kStarted, .text = "started, its console is silent yet"};
  }
  const Value* const needs = ConditionOf(machine, "PrerequisitesMet");
  if (WordOf(needs, "status") == "False") {
    return {.done = kPlaced,
            .text = "on its host, waits for " + std::string(WordOf(needs, "message"))};
  }
  const Value* const image = ConditionOf(machine, "ImageReady");
  if (WordOf(image, "status") == "False") {
    return {.done = kPlaced,
            .text = "on its host, image: " + std::string(WordOf(image, "message"))};
  }
  if (WordOf(image, "status") == "True") {
    return {.done = kHasImage, .text = "its image is there, its disks are made"};
  }
  return {.done = kPlaced, .text = "on its host: looks for image and disks"};
}

// What ImageReady says while the image is on its way: "45 % of 120.5 MiB", and then "45 % of 120.5
// MiB unpacked".
std::string PullOf(const Value& machine) {
  const Value* const image = ConditionOf(machine, "ImageReady");
  return WordOf(image, "reason") == "Pulling" ? std::string(WordOf(image, "message")) : "";
}

}  // namespace

void StartProgress::ShowBar(const std::string& what,
                            size_t done,
                            size_t of,
                            const std::string& text) {
  if (!bar_.has_value()) bar_.emplace(environment_, what);
  bar_->Turn(what);
  bar_->Show(done, of, text);
}

void StartProgress::ShowImage(const std::string& pull) {
  if (environment_.terminal.out_is_terminal) {
    return ShowBar("image", static_cast<size_t>(PercentOf(pull)), 100, pull);
  }
  const bool unpacks = pull.ends_with(" unpacked");
  if (unpacks == unpacks_ && PercentOf(pull) / 10 <= tenths_) return;
  unpacks_ = unpacks;
  tenths_ = PercentOf(pull) / 10;
  *environment_.err << label_ << ": image " << Printable(pull) << std::endl;
}

void StartProgress::ShowStep(size_t done, const std::string& text) {
  if (environment_.terminal.out_is_terminal) return ShowBar("boot", done, kSteps, text);
  if (lines_ == Lines::kImage || text == told_) return;
  told_ = text;
  *environment_.err << label_ << ": " << Printable(text) << std::endl;
}

void StartProgress::Show(const Value& machine) {
  if (const std::string pull = PullOf(machine); !pull.empty()) return ShowImage(pull);
  const BootStep step = StepOf(machine);
  ShowStep(step.done, step.text);
}

}  // namespace berth::cli
