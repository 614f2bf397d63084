// SPDX-License-Identifier: Apache-2.0
// How a command ends: the exit codes, and errors that carry the next step.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

namespace berth::cli {

enum class ExitCode : uint8_t {
  kOk = 0,
  kFailed = 1,
  kUsage = 2,
  kNotFound = 3,
  kConflict = 4,     // someone else changed it, or it exists already
  kUnreachable = 5,  // no answer from the server
};

// BadRequest is a usage error: the command line is wrong, or the server says that what it asks for
// makes no sense.
ExitCode ExitCodeOf(const Status& status);

// The same error with what the user can do about it. The advice closest to the cause wins: an error
// that has one keeps it.
Status Advise(const Status& status, std::string_view next_step);

struct Failure {
  std::string message;
  std::string next_step;  // "" if there is none to give
};
// The two parts of an error. Without advice of its own an error gets one by its reason.
Failure FailureOf(const Status& status);

// The message in full: several causes as lines below it, each once, although the server has them in
// its message too.
std::string FullMessage(const Status& status);

// Ends a command without any further word, because the output has said it all; the reason still
// decides the exit code.
Status FailQuietly(Reason reason = Reason::kCancelled);
bool IsQuiet(const Status& status);

}  // namespace berth::cli
