// SPDX-License-Identifier: Apache-2.0
#include "cli/objects/failures.h"

#include <ostream>

#include "cli/failure.h"

namespace berth::cli {

void Failures::Add(const Status& status) {
  if (status.ok()) return;
  // The first is kept back: if it stays the only one, the program reports it with its next step.
  if (++count_ == 1) {
    first_ = status;
    return;
  }
  if (count_ == 2) *environment_.err << "error: " << FailureOf(first_).message << "\n";
  *environment_.err << "error: " << FailureOf(status).message << "\n";
  agree_ = agree_ && ExitCodeOf(status) == ExitCodeOf(first_);
}

Status Failures::Outcome() const {
  if (count_ <= 1) return first_;
  return FailQuietly(agree_ ? first_.reason() : Reason::kCancelled);
}

}  // namespace berth::cli
