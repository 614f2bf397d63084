// SPDX-License-Identifier: Apache-2.0
#include "cli/failure.h"

#include <fmt/format.h>

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/strings.h"
#include "cli/exit_status.h"

namespace berth::cli {
namespace {

// Stands between message and advice. A newline cannot come from outside: texts of the server and of
// files are made printable before they become messages.
constexpr std::string_view kMark = "\nnext: ";

// The field of a cause whose message is an exit code.
constexpr std::string_view kExitCodeField = "exitCode";

// How the server begins a list of causes inside of its message.
constexpr std::string_view kCausesInMessage = " is invalid: [";

// And how it says no: machines.compute.ironcore.dev is forbidden: User "joe" cannot ...
constexpr std::string_view kForbiddenByServer = " is forbidden: ";

struct ReasonAdvice {
  Reason reason;
  std::string_view next_step;
};
constexpr std::array kAdvice = {
    ReasonAdvice{Reason::kUnauthorized,
                 "check the credentials of this context: berth config view --minify; berth doctor"},
    ReasonAdvice{Reason::kForbidden, "see what you may do: berth auth can-i --list"},
    ReasonAdvice{Reason::kConflict, "it was changed meanwhile: look at it again, then repeat"},
    ReasonAdvice{Reason::kAlreadyExists, "change it with berth apply, or delete it first"},
    ReasonAdvice{Reason::kExpired, "repeat the command"},
    ReasonAdvice{Reason::kInvalid, "see the fields and their rules: berth explain KIND"},
    ReasonAdvice{Reason::kTooManyRequests, "the server is busy: wait a moment and repeat"},
    ReasonAdvice{Reason::kTimeout, "look at the server: berth doctor"},
    ReasonAdvice{Reason::kUnavailable, "look at the server: berth doctor; start one: berth up"},
    ReasonAdvice{Reason::kInternal, "see the server's log"},
};

}  // namespace

ExitCode ExitCodeOf(const Status& status) {
  for (const Cause& cause : status.causes()) {
    const auto code = cause.field == kExitCodeField ? ParseUint(cause.message) : std::nullopt;
    if (IsQuiet(status) && code && *code <= UINT8_MAX) return static_cast<ExitCode>(*code);
  }
  switch (status.reason()) {
    case Reason::kOk: return ExitCode::kOk;
    case Reason::kBadRequest: return ExitCode::kUsage;
    case Reason::kNotFound: return ExitCode::kNotFound;
    case Reason::kConflict:
    case Reason::kAlreadyExists: return ExitCode::kConflict;
    case Reason::kUnavailable: return ExitCode::kUnreachable;
    default: return ExitCode::kFailed;
  }
}

Status Advise(const Status& status, std::string_view next_step) {
  if (status.ok() || next_step.empty() || status.message().contains(kMark)) return status;
  std::string message(status.message());
  message += kMark;
  message += next_step;
  Status out(status.reason(),
             std::move(message),
             std::vector<Cause>(status.causes().begin(), status.causes().end()));
  out = out.WithObject(status.object());
  return status.retry_after() ? out.WithRetryAfter(*status.retry_after()) : out;
}

Failure FailureOf(const Status& status) {
  const std::string_view text = status.message();
  if (const size_t mark = text.find(kMark); mark != std::string_view::npos) {
    return {.message = std::string(text.substr(0, mark)),
            .next_step = std::string(text.substr(mark + kMark.size()))};
  }
  Failure out{.message = std::string(text), .next_step = {}};
  // What is forbidden by a server is a matter of rights there; a file that is open to others is
  // not.
  if (status.Is(Reason::kForbidden) && !text.contains(kForbiddenByServer)) return out;
  for (const ReasonAdvice& advice : kAdvice) {
    if (status.Is(advice.reason)) out.next_step = advice.next_step;
  }
  return out;
}

std::string FullMessage(const Status& status) {
  std::string out = FailureOf(status).message;
  if (status.causes().size() <= 1) return out;
  const size_t list = out.find(kCausesInMessage);
  if (list != std::string::npos && out.ends_with(']'))
    out.resize(list + kCausesInMessage.size() - 2);
  for (const Cause& cause : status.causes()) {
    out += fmt::format("\n  {}: {}", cause.field, cause.message);
  }
  return out;
}

Status EndWith(uint8_t code) {
  CHECK(code != 0);
  return {Reason::kCancelled,
          "",
          {{.kind = CauseKind::kInvalid,
            .field = std::string(kExitCodeField),
            .message = std::to_string(code)}}};
}

Status FailQuietly(Reason reason) { return {reason, ""}; }
bool IsQuiet(const Status& status) { return !status.ok() && status.message().empty(); }

}  // namespace berth::cli
