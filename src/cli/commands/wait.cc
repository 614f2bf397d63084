// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <array>
#include <optional>
#include <utility>

#include "base/strings.h"
#include "cli/arguments.h"
#include "cli/commands/chosen.h"
#include "cli/commands/flags.h"
#include "cli/commands/table.h"
#include "cli/failure.h"
#include "cli/objects/fetch.h"
#include "cli/objects/patience.h"
#include "cli/render/output.h"
#include "cli/session/session.h"

namespace berth::cli {
namespace {

using meta::Value;

enum class Goal : uint8_t { kCondition, kDeleted, kCreated, kField };

struct WaitFor {
  Goal goal = Goal::kCondition;
  std::string what;                  // condition type or field path
  std::optional<std::string> value;  // condition status or field value; none: any value
  std::string text;                  // for messages
};

Status BadGoal(std::string_view text) {
  return Advise(BadRequest(fmt::format("--for: {} is not understood", Quote(text))),
                "--for=condition=Ready, --for=delete, --for=create or "
                "--for=jsonpath='{.status.state}'=Running");
}

// "{.status.state}=Running", "{.spec.x}": the value begins behind the last closing brace.
Result<WaitFor> ParseField(std::string_view text) {
  const size_t brace = text.rfind('}');
  size_t split = std::string_view::npos;
  if (brace == std::string_view::npos) {
    split = text.find('=');
  } else if (brace + 1 < text.size()) {
    split = brace + 1;
    if (text[split] != '=') return BadGoal(text);
  }
  WaitFor out{.goal = Goal::kField, .what = std::string(text.substr(0, split))};
  if (out.what.empty()) return BadGoal(text);
  if (split != std::string_view::npos) {
    std::string_view value = text.substr(split + 1);
    if (value.size() >= 2 && (value.front() == '"' || value.front() == '\'') &&
        value.back() == value.front()) {
      value = value.substr(1, value.size() - 2);
    }
    out.value = std::string(value);
  }
  out.text = fmt::format("field {}", out.what);
  return out;
}

Result<WaitFor> ParseWaitFor(std::string_view text) {
  if (text == "delete") return WaitFor{.goal = Goal::kDeleted, .text = "deletion"};
  if (text == "create") return WaitFor{.goal = Goal::kCreated, .text = "creation"};
  constexpr std::string_view kCondition = "condition=";
  if (text.starts_with(kCondition)) {
    const auto parts = Split(text.substr(kCondition.size()), '=');
    if (parts.size() > 2 || parts[0].empty()) return BadGoal(text);
    const std::string status(parts.size() == 2 ? parts[1] : "True");
    return WaitFor{.goal = Goal::kCondition,
                   .what = std::string(parts[0]),
                   .value = status,
                   .text = fmt::format("condition {}={}", parts[0], status)};
  }
  constexpr std::string_view kJsonPath = "jsonpath=";
  if (text.starts_with(kJsonPath)) return ParseField(text.substr(kJsonPath.size()));
  return BadGoal(text);
}

int64_t IntAt(const Value& object, std::initializer_list<std::string_view> path) {
  const Value* value = object.Get(path);
  return value != nullptr && value->type() == Value::Type::kInt ? value->as_int() : 0;
}

// A condition about an older generation says nothing about what was asked for since.
bool HasCondition(const Value& object, const WaitFor& wait) {
  const Value* conditions = object.Get({"status", "conditions"});
  if (conditions == nullptr || !conditions->is_array()) return false;
  for (const Value& condition : conditions->items()) {
    if (!EqualsIgnoreCase(condition.GetString({"type"}), wait.what)) continue;
    const int64_t observed = IntAt(condition, {"observedGeneration"});
    if (observed != 0 && observed < IntAt(object, {"metadata", "generation"})) return false;
    return EqualsIgnoreCase(condition.GetString({"status"}), *wait.value);
  }
  return false;
}

Result<bool> IsMet(const Value* object, const WaitFor& wait, std::string_view label) {
  if (wait.goal == Goal::kCreated) return object != nullptr;
  if (object == nullptr) return NotFound(fmt::format("{} does not exist", label));
  if (wait.goal == Goal::kCondition) return HasCondition(*object, wait);
  TRY(const std::string seen, EvaluateField(*object, wait.what));
  return wait.value ? seen == *wait.value : !seen.empty();
}

Status RunWait(Session& session, const Arguments& arguments) {
  if (!arguments.Given("for")) {
    return Advise(BadRequest("--for says what to wait for and is missing"),
                  "--for=condition=Ready, --for=delete");
  }
  TRY(const WaitFor wait, ParseWaitFor(arguments.Text("for")));
  TRY(const std::vector<ObjectAddress> addresses, ChosenByWords(session, arguments));
  if (addresses.empty()) {
    // Nothing is left to be deleted; for anything else there must be something.
    if (wait.goal == Goal::kDeleted) return OkStatus();
    return NotFound("no matching objects found");
  }
  TRY(Api * api, session.GetApi());
  const Patience patience(session.environment(), arguments.Span("timeout"));
  for (const ObjectAddress& address : addresses) {
    const std::string label =
        ObjectLabel(address.resource.ApiVersion(), address.resource.kind, address.name);
    if (wait.goal == Goal::kDeleted) {
      TRY_STATUS(AwaitGone(*api, address, "", patience));
    } else {
      const auto test = [&wait, &label](const Value* object) { return IsMet(object, wait, label); };
      TRY_STATUS(AwaitObject(*api, address, test, patience, wait.text));
    }
    session.out() << label << " condition met\n";
    session.out().flush();
  }
  return OkStatus();
}

constexpr std::array kFlags = {
    Flag{.name = "for",
         .kind = FlagKind::kText,
         .value_name = "GOAL",
         .help = "condition=TYPE[=STATUS], delete, create or jsonpath={PATH}[=VALUE]."},
    Flag{.name = "timeout",
         .kind = FlagKind::kDuration,
         .value_name = "TIME",
         .help = "How long to wait; 0 means as long as it takes.",
         .fallback = "30s"},
    flags::kSelector,
    flags::kFieldSelector,
    flags::kAll,
    flags::kAllNamespaces,
};

}  // namespace

Command WaitCommand() {
  return {.name = "wait",
          .group = "Change",
          .usage = "KIND NAME... | KIND/NAME...",
          .summary = "Wait until something is true of objects",
          .examples =
              "berth wait machine/web --for=condition=Ready --timeout=2m\n"
              "berth wait volume data --for=delete\n"
              "berth wait machine web --for=jsonpath='{.status.state}'=Running",
          .flags = kFlags,
          .words = Completion::kKindAndNames,
          .run = &RunWait};
}

}  // namespace berth::cli
