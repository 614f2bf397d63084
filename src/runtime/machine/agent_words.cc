// SPDX-License-Identifier: Apache-2.0
#include "runtime/machine/agent_words.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/strings.h"
#include "meta/json.h"

namespace berth::runtime {
namespace {

// Of the guest's words for people.
constexpr size_t kRefusalBytesMax = 512;
// The server takes 32 KiB of words; each of their bytes may be 6 of JSON.
constexpr size_t kArgvBytesMax = size_t{256} * 1024;
constexpr int64_t kExitCodeMax = 255;
constexpr int64_t kSignalMax = 127;
constexpr int kSignalled = 128;
// It is no part of any text: whoever hears it begins anew.
constexpr char kMark = static_cast<char>(0xff);

bool IsOn(const iri::StringMap& options, const std::string& name) {
  const auto found = options.find(name);
  return found != options.end() && found->second == "true";
}

Status NotAnAnswer(std::string_view why) {
  return BadRequest(fmt::format("the guest agent said what is no answer: {}", why));
}

// The number of the field; `fallback` if there is none.
Result<int64_t> NumberOf(const meta::Value& returned, std::string_view field, int64_t fallback) {
  const meta::Value* const value = returned.Find(field);
  if (value == nullptr) return fallback;
  if (!value->is_int()) return NotAnAnswer(fmt::format("{} is no number", field));
  return value->as_int();
}

// One output, of which a cut is told.
Result<std::string> OutputOf(const meta::Value& returned, const std::string& name, bool& is_cut) {
  const meta::Value* const truncated = returned.Find(name + "-truncated");
  is_cut = truncated != nullptr && truncated->is_bool() && truncated->as_bool();
  const std::string_view text = returned.GetString({name + "-data"});
  std::optional<std::string> bytes = Base64Decode(text);
  if (!bytes.has_value()) return NotAnAnswer(name + "-data is no Base64");
  if (bytes->size() > kCommandOutputBytesMax) {
    is_cut = true;
    bytes->resize(kCommandOutputBytesMax);
  }
  return *std::move(bytes);
}

Result<int> ExitCodeOf(const meta::Value& returned) {
  TRY(const int64_t signal, NumberOf(returned, "signal", 0));
  TRY(const int64_t code, NumberOf(returned, "exitcode", 0));
  if (signal < 0 || signal > kSignalMax) return NotAnAnswer(fmt::format("signal {}", signal));
  if (signal > 0) return kSignalled + static_cast<int>(signal);
  // Of systems whose codes are larger the largest of ours is left: it failed.
  return static_cast<int>(code < 0 ? kExitCodeMax : std::min(code, kExitCodeMax));
}

}  // namespace

std::string AgentRequest(std::string_view command, meta::Value arguments) {
  meta::Value request = meta::Value::Object();
  request.Set("execute", command);
  if (arguments.is_object()) request.Set("arguments", std::move(arguments));
  return meta::WriteJson(request) + "\n";
}

std::string AgentGreeting(int64_t id) {
  meta::Value arguments = meta::Value::Object();
  arguments.Set("id", id);
  return std::string(1, kMark) + AgentRequest("guest-sync-delimited", std::move(arguments));
}

size_t AgentAnswer::Take(std::string_view bytes) {
  constexpr std::string_view kTurns("\"\\\n\xff", 4);
  size_t taken = 0;
  while (taken < bytes.size() && !is_whole_ && !is_too_large()) {
    // Most of an answer that is too long is a text of which nothing more is kept.
    if (in_string_ && !is_escaped_ && string_bytes_ > kAgentTextBytesMax) {
      const size_t end = std::min(bytes.find_first_of(kTurns, taken), bytes.size());
      seen_ += end - taken;
      taken = end;
      if (taken == bytes.size()) break;
    }
    TakeByte(bytes[taken++]);
  }
  return taken;
}

void AgentAnswer::TakeByte(char c) {
  ++seen_;
  if (c == kMark) {
    const size_t seen = seen_;  // whoever only ever begins is not listened to for ever
    *this = AgentAnswer();
    seen_ = seen;
    is_marked_ = true;
    return;
  }
  if (c == '\n') {
    is_whole_ = true;
    return;
  }
  const bool ends = in_string_ && !is_escaped_ && c == '"';
  if (in_string_ && !ends) {
    is_escaped_ = !is_escaped_ && c == '\\';
    if (++string_bytes_ > kAgentTextBytesMax) return;
  } else if (c == '"') {
    in_string_ = !in_string_;
    string_bytes_ = 0;
  }
  text_ += c;
}

Result<meta::Value> ReadAgentAnswer(std::string_view text) {
  Result<meta::Value> answer = meta::ParseJson(text, kAgentKeptBytesMax);
  if (!answer.ok()) {
    return NotAnAnswer(Printable(answer.status().message().substr(0, kRefusalBytesMax)));
  }
  if (const meta::Value* const error = answer->Find("error"); error != nullptr) {
    const std::string_view why = error->GetString({"desc"}).substr(0, kRefusalBytesMax);
    return Conflict("the guest agent refused it: " + Printable(why));
  }
  meta::Value* const returned = answer->Find("return");
  if (returned == nullptr) return NotAnAnswer("it has no return");
  return std::move(*returned);
}

Result<WantedCommand> WantedCommandOf(const iri::StringMap& options) {
  const auto argv = options.find("argv");
  if (argv == options.end()) return BadRequest("exec: option argv: there is no command");
  TRY(const meta::Value words, meta::ParseJson(argv->second, kArgvBytesMax));
  if (!words.is_array() || words.items().empty()) {
    return BadRequest("exec: option argv: expected a JSON array of words");
  }
  WantedCommand command;
  for (const meta::Value& word : words.items()) {
    if (!word.is_string() || word.as_string().find('\0') != std::string::npos) {
      return BadRequest(
          fmt::format("exec: option argv: word {} is no text", command.argv.size() + 1));
    }
    command.argv.push_back(word.as_string());
  }
  if (command.argv.front().empty()) return BadRequest("exec: option argv: the program is empty");
  if (IsOn(options, "tty")) {
    return BadRequest(
        "exec: option tty: a guest agent gives commands no terminal: leave out --tty, or log in on "
        "the console");
  }
  command.has_input = IsOn(options, "stdin");
  return command;
}

meta::Value CommandArguments(const WantedCommand& command, std::string_view input) {
  meta::Value arguments = meta::Value::Object();
  arguments.Set("path", command.argv.front());
  std::vector<meta::Value> words(command.argv.begin() + 1, command.argv.end());
  arguments.Set("arg", meta::Value::Array(std::move(words)));
  if (command.has_input) arguments.Set("input-data", Base64Encode(input));
  arguments.Set("capture-output", true);
  return arguments;
}

Result<int64_t> ReadCommandPid(const meta::Value& returned) {
  TRY(const int64_t pid, NumberOf(returned, "pid", 0));
  if (pid < 1) return NotAnAnswer(fmt::format("pid {}", pid));
  return pid;
}

Result<CommandStatus> ReadCommandStatus(const meta::Value& returned) {
  const meta::Value* const exited = returned.Find("exited");
  if (exited == nullptr || !exited->is_bool()) return NotAnAnswer("it does not say if it exited");
  CommandStatus status;
  status.has_exited = exited->as_bool();
  if (!status.has_exited) return status;
  TRY(status.exit_code, ExitCodeOf(returned));
  TRY(status.out, OutputOf(returned, "out", status.is_out_cut));
  TRY(status.errors, OutputOf(returned, "err", status.is_errors_cut));
  return status;
}

}  // namespace berth::runtime
