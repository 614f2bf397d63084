// SPDX-License-Identifier: Apache-2.0
#include "gateway/release_writer.h"

#include <utility>

#include "base/log.h"
#include "rt/sleep.h"

namespace berth::gateway {
namespace {

constexpr Duration kPause = Duration::Millis(200);

// Whether trying again could help.
bool IsOpen(const Status& status) {
  return status.Is(Reason::kUnavailable) || status.Is(Reason::kTimeout) ||
         status.Is(Reason::kTooManyRequests) || status.Is(Reason::kCancelled);
}

}  // namespace

void ReleaseWriter::Release(client::UnbindRequest request) {
  const std::string uid = request.uid;
  waiting_[uid] = std::move(request);
  work_.Set();
}

rt::Task<Status> ReleaseWriter::Run() {
  for (;;) {
    CO_TRY_STATUS(co_await work_.Wait());
    work_.Reset();
    while (!waiting_.empty()) {
      std::vector<client::UnbindRequest> batch;
      while (!waiting_.empty() && batch.size() < kBatchMax) {
        batch.push_back(std::move(waiting_.begin()->second));
        waiting_.erase(waiting_.begin());
      }
      const std::vector<client::UnbindRequest> requests = batch;
      const std::vector<Status> verdicts = co_await binder_.UnbindBatch(std::move(batch));
      bool is_held_up = false;
      for (size_t i = 0; i < requests.size() && i < verdicts.size(); ++i) {
        if (IsOpen(verdicts[i])) {
          // Unknown, perhaps committed: the condition on the placement makes a second try safe.
          if (!waiting_.contains(requests[i].uid)) waiting_[requests[i].uid] = requests[i];
          is_held_up = true;
          continue;
        }
        if (!verdicts[i].ok() && !verdicts[i].Is(Reason::kConflict)) {
          LOG_WARNING("unbind {}: {}", requests[i].uid, verdicts[i].ToString());
        }
        done_(requests[i]);
      }
      if (is_held_up) CO_TRY_STATUS(co_await rt::Sleep(kPause));
    }
  }
}

}  // namespace berth::gateway
