// SPDX-License-Identifier: Apache-2.0
#include "cli/help.h"

#include <fmt/core.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/strings.h"

namespace berth::cli {
namespace {

constexpr size_t kHelpColumnMax = 34;  // longer flags get a line of their own
constexpr size_t kHelpWidth = 100;

std::string FlagHead(const Flag& flag) {
  std::string out = flag.letter != 0 ? fmt::format("-{}, ", flag.letter) : std::string("    ");
  out += fmt::format("--{}", flag.name);
  if (flag.kind == FlagKind::kSwitch) return out;
  if (flag.bare.empty()) return out + fmt::format(" {}", flag.value_name);
  return out + fmt::format("[={}]", flag.value_name);
}

std::string FlagBody(const Flag& flag) {
  std::string out(flag.help);
  if (!flag.values.empty()) {
    const std::vector<std::string> values(flag.values.begin(), flag.values.end());
    out += fmt::format(" ({})", Join(values, ", "));
  }
  if (!flag.fallback.empty()) out += fmt::format(" [{}]", flag.fallback);
  if (!flag.variable.empty()) out += fmt::format(" (${})", flag.variable);
  return out;
}

// Breaks `text` at spaces so that lines starting at column `indent` stay within the width.
std::string Wrapped(std::string_view text, size_t indent) {
  std::string out;
  size_t column = indent;
  for (const std::string_view word : Split(text, ' ')) {
    if (column > indent && column + 1 + word.size() > kHelpWidth) {
      out += fmt::format("\n{:{}}", "", indent);
      column = indent;
    } else if (column > indent) {
      out += ' ';
      ++column;
    }
    out += word;
    column += word.size();
  }
  return out;
}

std::string TwoColumns(const std::vector<std::pair<std::string, std::string>>& rows) {
  size_t width = 0;
  for (const auto& [head, body] : rows) {
    if (head.size() <= kHelpColumnMax) width = std::max(width, head.size());
  }
  std::string out;
  for (const auto& [head, body] : rows) {
    const size_t indent = width + 5;
    if (head.size() > width) {
      out += fmt::format("  {}\n{:{}}{}\n", head, "", indent, Wrapped(body, indent));
    } else {
      out += fmt::format("  {:{}}   {}\n", head, width, Wrapped(body, indent));
    }
  }
  return out;
}

std::string FlagList(std::span<const Flag> flags) {
  std::vector<std::pair<std::string, std::string>> rows;
  rows.reserve(flags.size());
  for (const Flag& flag : flags) rows.emplace_back(FlagHead(flag), FlagBody(flag));
  return TwoColumns(rows);
}

// Commands in the order of the table, below their groups' headings in order of first appearance.
std::string CommandList(std::span<const Command> commands) {
  std::vector<std::string_view> groups;
  for (const Command& command : commands) {
    if (command.visibility == Visibility::kHidden) continue;
    if (std::ranges::find(groups, command.group) == groups.end()) groups.push_back(command.group);
  }
  size_t width = 0;
  for (const Command& command : commands) width = std::max(width, command.name.size());
  std::string out;
  for (const std::string_view group : groups) {
    out += fmt::format("\n{}:\n", group.empty() ? std::string_view("Commands") : group);
    for (const Command& command : commands) {
      if (command.group != group || command.visibility == Visibility::kHidden) continue;
      out += fmt::format("  {:{}}   {}\n", command.name, width, command.summary);
    }
  }
  return out;
}

std::string Indented(std::string_view text) {
  std::string out;
  for (const std::string_view line : Split(text, '\n')) {
    out += line.empty() ? "\n" : fmt::format("  {}\n", line);
  }
  return out;
}

}  // namespace

std::string CommandPath(const std::vector<const Command*>& path) {
  std::vector<std::string> names;
  names.reserve(path.size());
  for (const Command* command : path) names.emplace_back(command->name);
  return Join(names, " ");
}

std::string HelpText(const std::vector<const Command*>& path, std::span<const Flag> globals) {
  const Command& command = *path.back();
  const std::string name = CommandPath(path);
  std::string out = fmt::format("{}\n", command.summary);
  if (!command.details.empty()) out += fmt::format("\n{}\n", command.details);
  out += "\nUsage:\n";
  if (command.run != nullptr) {
    const std::string_view space = command.usage.empty() ? "" : " ";
    const std::string_view flags = command.flags.empty() ? "" : " [flags]";
    out += fmt::format("  {}{}{}{}\n", name, space, command.usage, flags);
  }
  if (!command.children.empty()) {
    out += fmt::format("  {} COMMAND\n", name);
    out += CommandList(command.children);
  }
  if (!command.examples.empty()) out += fmt::format("\nExamples:\n{}", Indented(command.examples));
  if (!command.flags.empty()) out += fmt::format("\nFlags:\n{}", FlagList(command.flags));
  if (path.size() == 1 || command.run == nullptr) {
    out += fmt::format("\nGlobal flags:\n{}", FlagList(globals));
    out += fmt::format("\nMore about a command: {} COMMAND --help\n", name);
  } else {
    out += fmt::format("\nGlobal flags: see {} --help\n", path.front()->name);
  }
  return out;
}

}  // namespace berth::cli
