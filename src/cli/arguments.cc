// SPDX-License-Identifier: Apache-2.0
#include "cli/arguments.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/check.h"
#include "base/strings.h"

namespace berth::cli {
namespace {

std::optional<bool> ParseSwitch(std::string_view text) {
  if (text == "true" || text == "1" || text == "t") return true;
  if (text == "false" || text == "0" || text == "f") return false;
  return std::nullopt;
}

Status Misfit(const Flag& flag, std::string_view value, std::string_view wanted) {
  return BadRequest(fmt::format("--{}: {} is not {}", flag.name, Quote(value), wanted));
}

Status CheckChoice(const Flag& flag, std::string_view value) {
  if (flag.values.empty() || std::ranges::find(flag.values, value) != flag.values.end()) {
    return OkStatus();
  }
  const std::vector<std::string> choices(flag.values.begin(), flag.values.end());
  return Misfit(flag, value, fmt::format("one of {}", Join(choices, ", ")));
}

}  // namespace

Result<Duration> ParseFlagDuration(std::string_view text) {
  // A year in seconds: beyond it a bare number is a mistake, and nanoseconds must not overflow.
  constexpr int64_t kSecondsMax = 366 * 24 * 3600;
  if (const auto seconds = ParseInt(text)) {
    if (*seconds < -kSecondsMax || *seconds > kSecondsMax) {
      return BadRequest(fmt::format("{} seconds are more than a year", *seconds));
    }
    return Duration::Seconds(*seconds);
  }
  return ParseDuration(text);
}

Result<Arguments> Arguments::Make(std::span<const Flag> own,
                                  std::span<const Flag> globals,
                                  const Variables& variables) {
  Arguments out;
  for (const auto flags : {own, globals}) {
    for (const Flag& flag : flags) {
      const auto [at, added] = out.entries_.try_emplace(std::string(flag.name));
      if (!added) continue;  // the command's own meaning of a global flag wins
      at->second.flag = &flag;
      std::string value(flag.fallback);
      if (const auto found = variables.find(flag.variable); found != variables.end()) {
        value = found->second;
      }
      if (value.empty()) continue;
      TRY_STATUS(out.Set(flag, value).Wrap(flag.variable.empty() ? flag.name : flag.variable));
      at->second.given = false;
    }
  }
  return out;
}

Status Arguments::Set(const Flag& flag, std::string_view value) {
  Entry& entry = entries_.at(std::string(flag.name));
  // The first value that the user gives replaces what was there by default.
  if (!entry.given) entry.values.clear();
  entry.given = true;
  switch (flag.kind) {
    case FlagKind::kSwitch:
      if (!ParseSwitch(value)) return Misfit(flag, value, "true or false");
      entry.values = {*ParseSwitch(value) ? "true" : "false"};
      return OkStatus();
    case FlagKind::kText:
      TRY_STATUS(CheckChoice(flag, value));
      entry.values = {std::string(value)};
      return OkStatus();
    case FlagKind::kNumber:
      if (!ParseInt(value)) return Misfit(flag, value, "a whole number");
      entry.values = {std::string(value)};
      return OkStatus();
    case FlagKind::kDuration:
      if (!ParseFlagDuration(value).ok()) {
        return Misfit(flag, value, "a duration such as 30s or 5m");
      }
      entry.values = {std::string(value)};
      return OkStatus();
    case FlagKind::kList: entry.values.emplace_back(value); return OkStatus();
    case FlagKind::kCommaList:
      for (const std::string_view part : Split(value, ',')) {
        TRY_STATUS(CheckChoice(flag, part));
        if (!part.empty()) entry.values.emplace_back(part);
      }
      return OkStatus();
  }
  return OkStatus();
}

const Arguments::Entry& Arguments::At(std::string_view name) const {
  const auto found = entries_.find(name);
  CHECK(found != entries_.end()) << "flag --" << name << " is not declared by this command";
  return found->second;
}

bool Arguments::Given(std::string_view name) const { return At(name).given; }

bool Arguments::Switch(std::string_view name) const {
  const Entry& entry = At(name);
  CHECK(entry.flag->kind == FlagKind::kSwitch) << name;
  return !entry.values.empty() && entry.values.front() == "true";
}

const std::string& Arguments::Text(std::string_view name) const {
  static const std::string kNone;
  const Entry& entry = At(name);
  CHECK(entry.flag->kind == FlagKind::kText) << name;
  return entry.values.empty() ? kNone : entry.values.front();
}

int64_t Arguments::Number(std::string_view name) const {
  const Entry& entry = At(name);
  CHECK(entry.flag->kind == FlagKind::kNumber) << name;
  return entry.values.empty() ? 0 : ParseInt(entry.values.front()).value_or(0);
}

Duration Arguments::Span(std::string_view name) const {
  const Entry& entry = At(name);
  CHECK(entry.flag->kind == FlagKind::kDuration) << name;
  if (entry.values.empty()) return {};
  const auto parsed = ParseFlagDuration(entry.values.front());
  return parsed.ok() ? *parsed : Duration();
}

const std::vector<std::string>& Arguments::List(std::string_view name) const {
  const Entry& entry = At(name);
  CHECK(entry.flag->kind == FlagKind::kList || entry.flag->kind == FlagKind::kCommaList) << name;
  return entry.values;
}

}  // namespace berth::cli
