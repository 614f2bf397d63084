// SPDX-License-Identifier: Apache-2.0
// A Command is one row of the program's command table: its names, its flags, its help and the
// function that runs it. Parsing, help and completion are plain functions over the table, so that a
// flag is written down once.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/status.h"

namespace berth::cli {

class Arguments;
class Session;

enum class FlagKind : uint8_t {
  kSwitch,     // --watch, --watch=false
  kText,       // --output yaml, -o yaml, -oyaml, -o=yaml
  kNumber,     // a whole number
  kDuration,   // "30s", "5m"; a bare number means seconds
  kList,       // may be repeated, every value is kept as it is
  kCommaList,  // may be repeated, values are split at commas
};

// What a shell offers for a value or for the words of a command.
enum class Completion : uint8_t {
  kNone,
  kFiles,
  kKinds,         // any number of kinds: explain
  kKindAndNames,  // KIND NAME..., KIND/NAME...
  kNamespaces,
  kContexts,
  kClusters,
  kUsers,
  kCommands,  // names of commands: help
};

struct Flag {
  std::string_view name;  // "namespace"
  char letter = 0;        // 'n'
  FlagKind kind = FlagKind::kSwitch;
  std::string_view value_name = {};  // "NAME", as shown in help
  std::string_view help = {};
  // The value when the flag is absent.
  std::string_view fallback = {};
  // Not empty: the flag may stand without a value and then means this; a value needs "=".
  std::string_view bare = {};
  // The allowed values of a text; empty: any. Also what completion offers.
  std::span<const std::string_view> values = {};
  // Environment variable that replaces the fallback: "BERTH_DATA_DIR".
  std::string_view variable = {};
  Completion completion = Completion::kNone;
};

enum class Visibility : uint8_t { kShown, kHidden };

struct Command {
  std::string_view name;
  std::string_view group = {};    // heading in the list of commands
  std::string_view usage = {};    // behind the command's path: "KIND [NAME...]"
  std::string_view summary = {};  // one line, no full stop
  std::string_view details = {};  // paragraphs
  std::string_view examples = {};
  std::span<const Flag> flags = {};
  std::span<const Command> children = {};
  Completion words = Completion::kNone;
  std::span<const std::string_view> word_values = {};  // fixed choices for the first word
  // Null for a command that only has children.
  Status (*run)(Session& session, const Arguments& arguments) = nullptr;
  Visibility visibility = Visibility::kShown;
};

// The child of that name, or null.
const Command* FindChild(const Command& command, std::string_view name);
// The flag of that name or letter: the command's own first, then the global ones. Null if unknown.
const Flag* FindFlag(const Command& command,
                     std::span<const Flag> globals,
                     std::string_view name_or_letter);

}  // namespace berth::cli
