// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/strings.h"
#include "cli/arguments.h"
#include "cli/commands/flags.h"
#include "cli/commands/table.h"
#include "cli/objects/fetch.h"
#include "cli/session/session.h"

namespace berth::cli {
namespace {

constexpr size_t kCandidatesMax = 1000;  // more than anybody reads in a terminal
// Nobody waits longer for a tab key.
constexpr std::string_view kPatience = "2s";

struct Candidate {
  std::string word;
  std::string about;
};

// What the words before the cursor mean: the command, its own words, and the flag whose value is
// being typed, if any.
struct Cursor {
  const Command* command = nullptr;
  std::vector<std::string> words;
  const Flag* flag = nullptr;
  std::string flag_prefix;  // "--output=" when the value is attached
  std::string typed;
  // Flags that choose the server and the namespace, for candidates that come from there.
  std::vector<std::string> connection;
};

bool TakesNextWord(const Flag& flag) { return flag.kind != FlagKind::kSwitch && flag.bare.empty(); }

bool ChoosesConnection(const Flag& flag) {
  return std::ranges::any_of(GlobalFlags(),
                             [&flag](const Flag& global) { return global.name == flag.name; });
}

// The flag that a finished word stands for, or null; `whole` says that its value is in the word.
const Flag* FlagOf(const Command& command, std::string_view word, bool& whole) {
  whole = false;
  if (word.starts_with("--")) {
    const size_t equals = word.find('=');
    whole = equals != std::string_view::npos;
    return FindFlag(command, GlobalFlags(), word.substr(2, whole ? equals - 2 : equals));
  }
  if (word.size() < 2 || word.front() != '-') return nullptr;
  const Flag* flag = FindFlag(command, GlobalFlags(), word.substr(1, 1));
  whole = word.size() > 2;
  return flag;
}

Cursor ReadCursor(const Command& root, const std::vector<std::string>& line) {
  Cursor out{.command = &root};
  out.typed = line.empty() ? "" : line.back();
  for (size_t i = 0; i + 1 < line.size(); ++i) {
    const std::string& word = line[i];
    if (word.size() > 1 && word.front() == '-') {
      bool whole = false;
      const Flag* flag = FlagOf(*out.command, word, whole);
      if (flag == nullptr) continue;
      if (ChoosesConnection(*flag)) out.connection.push_back(word);
      if (whole || !TakesNextWord(*flag)) continue;
      if (i + 2 == line.size()) {
        out.flag = flag;
      } else {
        if (ChoosesConnection(*flag)) out.connection.push_back(line[i + 1]);
        ++i;
      }
      continue;
    }
    const Command* child = out.words.empty() ? FindChild(*out.command, word) : nullptr;
    if (child != nullptr) {
      out.command = child;
    } else {
      out.words.push_back(word);
    }
  }
  bool whole = false;
  if (out.flag == nullptr && out.typed.starts_with("--") && out.typed.contains('=')) {
    out.flag = FlagOf(*out.command, out.typed, whole);
    const size_t equals = out.typed.find('=');
    out.flag_prefix = out.typed.substr(0, equals + 1);
    out.typed = out.typed.substr(equals + 1);
  }
  return out;
}

// Candidates that come from the server or the kubeconfig. Failures leave the list empty: a tab key
// is no place for errors.
class Offers {
 public:
  explicit Offers(Session& session) : session_(session) {}

  std::vector<Candidate> Kinds() {
    std::vector<Candidate> out;
    const auto discovery = session_.GetDiscovery();
    if (!discovery.ok()) return out;
    const auto all = (*discovery)->All();
    if (!all.ok()) return out;
    for (const Resource& resource : *all) {
      if (resource.alias_of.empty() && resource.Can("list")) {
        out.push_back({resource.plural, resource.ApiVersion()});
      }
    }
    return out;
  }

  std::vector<Candidate> Names(std::string_view kind, std::string_view prefix) {
    std::vector<Candidate> out;
    const auto discovery = session_.GetDiscovery();
    const auto space = session_.Namespace();
    if (!discovery.ok() || !space.ok()) return out;
    const auto resource = (*discovery)->FindByWord(kind);
    const auto api = session_.GetApi();
    if (!resource.ok() || !api.ok()) return out;
    const auto list = FetchList(**api, *resource, {.namespace_ = *space});
    if (!list.ok()) return out;
    for (const meta::Value& item : list->items) {
      if (out.size() >= kCandidatesMax) break;
      out.push_back({fmt::format("{}{}", prefix, item.GetString({"metadata", "name"})), ""});
    }
    return out;
  }

  template <class T>
  std::vector<Candidate> Entries(std::map<std::string, T> Kubeconfig::* entries) {
    std::vector<Candidate> out;
    const auto config = session_.LoadConfig();
    if (!config.ok()) return out;
    for (const auto& [name, entry] : (*config).*entries) out.push_back({name, ""});
    return out;
  }

  std::vector<Candidate> KindAndNames(const Cursor& cursor) {
    if (const size_t slash = cursor.typed.find('/'); slash != std::string::npos) {
      return Names(cursor.typed.substr(0, slash), cursor.typed.substr(0, slash + 1));
    }
    if (cursor.words.empty()) return Kinds();
    if (cursor.words.front().contains('/')) return Kinds();
    return Names(cursor.words.front(), "");
  }

  std::vector<Candidate> For(Completion completion, const Cursor& cursor) {
    switch (completion) {
      case Completion::kNone: return {};
      case Completion::kFiles: return {{":files", ""}};
      case Completion::kKinds: return Kinds();
      case Completion::kKindAndNames: return KindAndNames(cursor);
      case Completion::kNamespaces: return Names("namespaces", "");
      case Completion::kContexts: return Entries(&Kubeconfig::contexts);
      case Completion::kClusters: return Entries(&Kubeconfig::clusters);
      case Completion::kUsers: return Entries(&Kubeconfig::users);
      case Completion::kCommands: return Children(session_.root());
    }
    return {};
  }

  static std::vector<Candidate> Children(const Command& command) {
    std::vector<Candidate> out;
    for (const Command& child : command.children) {
      if (child.visibility == Visibility::kShown) {
        out.push_back({std::string(child.name), std::string(child.summary)});
      }
    }
    return out;
  }

 private:
  Session& session_;
};

std::vector<Candidate> Fixed(std::span<const std::string_view> values) {
  std::vector<Candidate> out;
  for (const std::string_view value : values) out.push_back({std::string(value), ""});
  return out;
}

std::vector<Candidate> FlagNames(const Command& command) {
  std::vector<Candidate> out;
  for (const auto flags : {command.flags, GlobalFlags()}) {
    for (const Flag& flag : flags) {
      out.push_back({fmt::format("--{}", flag.name), std::string(flag.help)});
    }
  }
  return out;
}

std::vector<Candidate> CandidatesFor(Session& session, const Cursor& cursor) {
  Offers offers(session);
  if (cursor.flag != nullptr) {
    std::vector<Candidate> out = Fixed(cursor.flag->values);
    if (out.empty() && cursor.flag->name == "output") out = Fixed(flags::kObjectFormats);
    if (out.empty()) out = offers.For(cursor.flag->completion, cursor);
    for (Candidate& candidate : out) {
      if (candidate.word != ":files") candidate.word = cursor.flag_prefix + candidate.word;
    }
    return out;
  }
  if (cursor.typed.starts_with('-')) return FlagNames(*cursor.command);
  if (!cursor.command->children.empty()) return Offers::Children(*cursor.command);
  if (!cursor.command->word_values.empty() && cursor.words.empty()) {
    return Fixed(cursor.command->word_values);
  }
  return offers.For(cursor.command->words, cursor);
}

Status RunComplete(Session& session, const Arguments& arguments) {
  const Cursor cursor = ReadCursor(session.root(), arguments.words());
  // The line being completed chooses the server: its flags are read as if they were ours.
  std::vector<std::string> own = cursor.connection;
  own.insert(own.end(), {"--request-timeout", std::string(kPatience)});
  const Command nothing{.name = session.root().name};
  const auto parsed = ParseArguments(nothing, GlobalFlags(), own, session.environment().variables);
  if (!parsed.ok()) return OkStatus();
  Session inner(session.environment(), session.root(), parsed->arguments);
  const std::string wanted = cursor.flag_prefix + cursor.typed;
  for (const Candidate& candidate : CandidatesFor(inner, cursor)) {
    if (candidate.word != ":files" && !candidate.word.starts_with(wanted)) continue;
    session.out() << Printable(candidate.word);
    if (!candidate.about.empty()) session.out() << "\t" << Printable(candidate.about);
    session.out() << "\n";
  }
  return OkStatus();
}

}  // namespace

Command CompleteCommand() {
  return {.name = "__complete",
          .usage = "WORDS...",
          .summary = "Answer a shell's question for candidates",
          .run = &RunComplete,
          .visibility = Visibility::kHidden};
}

}  // namespace berth::cli
