// SPDX-License-Identifier: Apache-2.0
#include "rt/sleep.h"

#include "rt/leaf.h"

namespace berth::rt {

Task<Status> Sleep(Duration duration) {
  Loop& loop = (co_await CurrentContext()).loop();
  Leaf<Status> done;
  const TimerId timer = loop.After("rt.sleep", duration, [&done] { done.Complete(OkStatus()); });
  Status status = co_await done;
  if (!status.ok()) loop.CancelTimer(timer);
  co_return status;
}

}  // namespace berth::rt
