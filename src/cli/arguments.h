// SPDX-License-Identifier: Apache-2.0
// Arguments are what a user typed, checked against the flags of one command.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "cli/command.h"

namespace berth::cli {

using Variables = std::map<std::string, std::string, std::less<>>;

// Reading a flag that the command does not declare is a broken program (CHECK); values have been
// checked by ParseArguments, so reading cannot fail.
class Arguments {
 public:
  Arguments() = default;
  // Makes every flag known, with its fallback or the value of its environment variable.
  static Result<Arguments> Make(std::span<const Flag> own,
                                std::span<const Flag> globals,
                                const Variables& variables);

  // What stands beside the flags, in order.
  const std::vector<std::string>& words() const { return words_; }
  // What stood behind "--"; also part of words().
  bool Declares(std::string_view name) const { return entries_.contains(name); }
  bool Given(std::string_view name) const;
  bool Switch(std::string_view name) const;
  const std::string& Text(std::string_view name) const;
  int64_t Number(std::string_view name) const;
  Duration Span(std::string_view name) const;
  const std::vector<std::string>& List(std::string_view name) const;

  // Fails with BadRequest if the value does not fit the flag.
  Status Set(const Flag& flag, std::string_view value);
  void AddWord(std::string word) { words_.push_back(std::move(word)); }

 private:
  struct Entry {
    const Flag* flag = nullptr;
    bool given = false;
    std::vector<std::string> values;
  };
  const Entry& At(std::string_view name) const;

  std::map<std::string, Entry, std::less<>> entries_;
  std::vector<std::string> words_;
};

// "30s", "2m30s", or a bare number of seconds.
Result<Duration> ParseFlagDuration(std::string_view text);

enum class Asked : uint8_t { kRun, kHelp };

struct ParsedLine {
  std::vector<const Command*> path;  // root first, never empty
  Arguments arguments;
  Asked asked = Asked::kRun;
  const Command& command() const { return *path.back(); }
};

// Reads a command line (without the program's name) against the table below `root`. Errors are
// BadRequest, name the word at fault and suggest the nearest that exists.
Result<ParsedLine> ParseArguments(const Command& root,
                                  std::span<const Flag> globals,
                                  const std::vector<std::string>& line,
                                  const Variables& variables);

}  // namespace berth::cli
