// SPDX-License-Identifier: Apache-2.0
#include "apiserver/scheduling/outlet.h"

#include "rt/chaos.h"
#include "rt/deadline.h"

namespace berth::apiserver {

rt::Task<Status> Outlet::Send(std::string message) {
  CO_TRY_STATUS(check_());
  const Status written = co_await rt::WithDeadline(stream_.Write(std::move(message)), kSlowMax);
  if (!written.Is(Reason::kTimeout)) co_return written;
  REACHED("scheduling.slow_reader");
  const Status slow(Reason::kTooManyRequests,
                    "the reader has taken nothing for " + FormatDuration(kSlowMax) +
                        "; call again, with the last cursor if there was one");
  // What is queued would hold the answer up.
  stream_.Abort(slow);
  co_return slow;
}

}  // namespace berth::apiserver
