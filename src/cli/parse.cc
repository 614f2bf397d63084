// SPDX-License-Identifier: Apache-2.0
// Reads command lines the way kubectl's users type them: flags anywhere, -oyaml, -o=yaml, -Aw,
// flags that may stand without a value. CLI11 reads "-o=yaml" as the value "=yaml" and knows
// nothing of completion, so the table is walked here instead.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "base/strings.h"
#include "cli/arguments.h"
#include "cli/failure.h"
#include "cli/help.h"

namespace berth::cli {

const Command* FindChild(const Command& command, std::string_view name) {
  const auto found = std::ranges::find(command.children, name, &Command::name);
  return found == command.children.end() ? nullptr : &*found;
}

const Flag* FindFlag(const Command& command,
                     std::span<const Flag> globals,
                     std::string_view name_or_letter) {
  for (const auto flags : {command.flags, globals}) {
    for (const Flag& flag : flags) {
      if (flag.name == name_or_letter) return &flag;
      if (name_or_letter.size() == 1 && flag.letter == name_or_letter.front()) return &flag;
    }
  }
  return nullptr;
}

namespace {

// Words of kubectl and its relatives that fingers know, and what does the same here.
struct Elsewhere {
  std::string_view word;
  std::string_view here;
};
constexpr std::array kElsewhere = {
    Elsewhere{"attach", "berth console MACHINE"},
    Elsewhere{"cluster-info", "berth doctor, berth version"},
    Elsewhere{"list", "berth get KIND"},
    Elsewhere{"replace", "berth apply -f FILE, or berth edit KIND NAME"},
    Elsewhere{
        "rollout",
        "berth wait machineset NAME --for=jsonpath='{.status.ready}'=N, berth restart MACHINE"},
    Elsewhere{"run", "berth apply -f FILE"},
    Elsewhere{"ssh", "berth console MACHINE, berth port-forward MACHINE 22"},
    Elsewhere{"status", "berth doctor, berth get all"},
    Elsewhere{"taint", "berth cordon POOL, or berth edit machinepool POOL: spec.taints"},
};

// One command line being read. Flags are collected first and set at the end, because a flag in
// front of the command's name may belong to the command.
class LineReader {
 public:
  LineReader(const Command& root,
             std::span<const Flag> globals,
             const std::vector<std::string>& line)
      : globals_(globals), line_(line), path_{&root} {}

  Result<ParsedLine> Read(const Variables& variables) {
    for (; at_ < line_.size(); ++at_) {
      const std::string& token = line_[at_];
      if (only_words_ || token.size() < 2 || token.front() != '-') {
        TRY_STATUS(ReadWord(token));
      } else if (token == "--") {
        only_words_ = true;
      } else if (token.starts_with("--")) {
        TRY_STATUS(ReadLong(std::string_view(token).substr(2)));
      } else {
        TRY_STATUS(ReadShort(std::string_view(token).substr(1)));
      }
    }
    ParsedLine out;
    out.path = path_;
    out.asked = asked_;
    TRY(out.arguments, Arguments::Make(current().flags, globals_, variables));
    for (const auto& [flag, value] : set_) {
      // A global flag that the command declares itself is set under the command's declaration.
      const Flag* own = FindFlag(current(), globals_, flag->name);
      if (own == nullptr) {
        return AdviseHelp(BadRequest(
            fmt::format("flag --{} does not belong to {}", flag->name, CommandPath(path_))));
      }
      TRY_STATUS(AdviseHelp(out.arguments.Set(*own, value)));
    }
    for (std::string& word : words_) out.arguments.AddWord(std::move(word));
    return out;
  }

 private:
  const Command& current() const { return *path_.back(); }

  Status ReadWord(const std::string& word) {
    if (current().children.empty() || only_words_) {
      words_.push_back(word);
      return OkStatus();
    }
    const Command* child = FindChild(current(), word);
    if (child == nullptr) return UnknownCommand(word);
    path_.push_back(child);
    return OkStatus();
  }

  Status UnknownCommand(const std::string& word) const {
    const auto elsewhere = std::ranges::find(kElsewhere, word, &Elsewhere::word);
    if (path_.size() == 1 && elsewhere != kElsewhere.end()) {
      return Advise(BadRequest(fmt::format("berth has no command {}", Quote(word))),
                    elsewhere->here);
    }
    std::vector<std::string> names;
    for (const Command& child : current().children) {
      if (child.visibility == Visibility::kShown) names.emplace_back(child.name);
    }
    std::string message =
        fmt::format("unknown command {} for {}", Quote(word), Quote(CommandPath(path_)));
    if (const auto nearest = Nearest(word, names)) {
      message += fmt::format("; did you mean {}?", Quote(*nearest));
    }
    return AdviseHelp(BadRequest(std::move(message)));
  }

  Status UnknownFlag(std::string_view shown, std::string_view name) const {
    std::vector<std::string> names;
    for (const auto flags : {current().flags, globals_}) {
      for (const Flag& flag : flags) names.emplace_back(flag.name);
    }
    std::string message = fmt::format("unknown flag {}", Printable(shown));
    if (const auto nearest = Nearest(name, names)) {
      message += fmt::format("; did you mean --{}?", *nearest);
    }
    return AdviseHelp(BadRequest(std::move(message)));
  }

  Status AdviseHelp(const Status& status) const {
    return Advise(status, fmt::format("see {} --help", CommandPath(path_)));
  }

  Status ReadLong(std::string_view text) {
    const size_t equals = text.find('=');
    const std::string_view name = text.substr(0, equals);
    if (name == "help") {
      asked_ = Asked::kHelp;
      return OkStatus();
    }
    const Flag* flag = FindFlag(current(), globals_, name);
    if (flag == nullptr || flag->name != name) {
      return UnknownFlag(fmt::format("--{}", name), name);
    }
    if (equals != std::string_view::npos) {
      set_.emplace_back(flag, text.substr(equals + 1));
      return OkStatus();
    }
    return ReadValue(*flag, fmt::format("--{}", name));
  }

  // -o yaml, -oyaml, -o=yaml, -Aw.
  Status ReadShort(std::string_view letters) {
    for (size_t i = 0; i < letters.size(); ++i) {
      if (letters[i] == 'h' && FindFlag(current(), globals_, "h") == nullptr) {
        asked_ = Asked::kHelp;
        continue;
      }
      const Flag* flag = FindFlag(current(), globals_, letters.substr(i, 1));
      const std::string shown = fmt::format("-{}", letters.substr(i, 1));
      if (flag == nullptr || flag->letter != letters[i]) {
        return UnknownFlag(i == 0 && letters.size() > 1 ? fmt::format("-{}", letters) : shown,
                           letters);
      }
      std::string_view rest = letters.substr(i + 1);
      if (rest.starts_with('=')) {
        set_.emplace_back(flag, rest.substr(1));
        return OkStatus();
      }
      if (flag->kind == FlagKind::kSwitch || !flag->bare.empty()) {
        TRY_STATUS(ReadValue(*flag, shown));
        continue;
      }
      if (rest.empty()) return ReadValue(*flag, shown);
      set_.emplace_back(flag, rest);
      return OkStatus();
    }
    return OkStatus();
  }

  // The value of a flag that has none attached to it.
  Status ReadValue(const Flag& flag, const std::string& shown) {
    if (flag.kind == FlagKind::kSwitch) {
      set_.emplace_back(&flag, "true");
    } else if (!flag.bare.empty()) {
      set_.emplace_back(&flag, flag.bare);
    } else if (at_ + 1 < line_.size()) {
      set_.emplace_back(&flag, line_[++at_]);
    } else {
      return AdviseHelp(BadRequest(fmt::format("flag {} needs a value", shown)));
    }
    return OkStatus();
  }

  std::span<const Flag> globals_;
  const std::vector<std::string>& line_;
  std::vector<const Command*> path_;
  size_t at_ = 0;
  bool only_words_ = false;
  Asked asked_ = Asked::kRun;
  std::vector<std::string> words_;
  std::vector<std::pair<const Flag*, std::string>> set_;
};

}  // namespace

Result<ParsedLine> ParseArguments(const Command& root,
                                  std::span<const Flag> globals,
                                  const std::vector<std::string>& line,
                                  const Variables& variables) {
  return LineReader(root, globals, line).Read(variables);
}

}  // namespace berth::cli
