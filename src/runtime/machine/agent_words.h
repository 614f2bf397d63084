// SPDX-License-Identifier: Apache-2.0
// What is said to the QEMU guest agent and what it may say back: lines of JSON. Pure.
//
// A guest is not trusted: an answer has a limit, and of a text that is too long only the beginning
// is kept, whatever else stands behind it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "iri/object.h"
#include "meta/value.h"

namespace berth::runtime {

// Of each of the two outputs of a command. An agent keeps 16 MiB of each.
constexpr size_t kCommandOutputBytesMax = size_t{2} << 20;
// What a command reads is sent in one piece, before it starts.
constexpr size_t kCommandInputBytesMax = size_t{1} << 20;
// One text of an answer as Base64: a little more than an output, so that a cut shows.
constexpr size_t kAgentTextBytesMax = (kCommandOutputBytesMax / 3 + 2) * 4;
// What is kept of an answer: both outputs, and room for the rest.
constexpr size_t kAgentKeptBytesMax = 2 * kAgentTextBytesMax + size_t{64} * 1024;
// An answer without outputs: a number, or why not.
constexpr size_t kAgentShortBytesMax = size_t{8} * 1024;
// What is read of an answer: 2 * 16 MiB as Base64 are 43 MiB.
constexpr size_t kAgentAnswerBytesMax = size_t{64} << 20;

// A request as it is sent.
std::string AgentRequest(std::string_view command, meta::Value arguments);
// The first request on a line: the agent forgets what it has half of, and marks its answer.
std::string AgentGreeting(int64_t id);

// An AgentAnswer is a line of JSON that comes in pieces.
class AgentAnswer {
 public:
  // Takes what belongs to the answer; how many bytes those are. It begins again at a mark.
  size_t Take(std::string_view bytes);
  bool is_whole() const { return is_whole_; }
  bool is_marked() const { return is_marked_; }
  bool is_too_large() const {
    return seen_ > kAgentAnswerBytesMax || text_.size() > kAgentKeptBytesMax;
  }
  const std::string& text() const { return text_; }

 private:
  void TakeByte(char c);

  std::string text_;
  size_t seen_ = 0;
  size_t string_bytes_ = 0;
  bool in_string_ = false;
  bool is_escaped_ = false;
  bool is_marked_ = false;
  bool is_whole_ = false;
};

// What the agent returned. BadRequest if it is no answer; Conflict with its own words if it
// refused.
Result<meta::Value> ReadAgentAnswer(std::string_view text);

// A command as whoever attached to it wants it.
struct WantedCommand {
  std::vector<std::string> argv;  // of at least one word, which is not empty
  bool has_input = false;
};
// Of the options of an AttachRequest: "argv", "stdin", "tty". BadRequest names the option.
Result<WantedCommand> WantedCommandOf(const iri::StringMap& options);
// Arguments of guest-exec.
meta::Value CommandArguments(const WantedCommand& command, std::string_view input);
// What guest-exec returned.
Result<int64_t> ReadCommandPid(const meta::Value& returned);

struct CommandStatus {
  bool has_exited = false;
  int exit_code = 0;  // 128 and the signal that ended it, as shells say it
  std::string out;
  std::string errors;
  bool is_out_cut = false;
  bool is_errors_cut = false;
};
// What guest-exec-status returned.
Result<CommandStatus> ReadCommandStatus(const meta::Value& returned);

}  // namespace berth::runtime
