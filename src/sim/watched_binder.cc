// SPDX-License-Identifier: Apache-2.0
#include "sim/watched_binder.h"

#include <utility>

#include "rt/sleep.h"

namespace berth::sim {

using Verdicts = std::vector<Result<std::vector<meta::Object>>>;

rt::Task<Verdicts> WatchedBinder::BindBatch(std::vector<client::BindRequest> requests) {
  const BindFault fault = moments_.BindBegins(requests);
  Duration slept;
  if (fault == BindFault::kSlow) {
    slept = DrawPause();
    const Status woke = co_await rt::Sleep(slept);
    if (!woke.ok()) co_return Verdicts(requests.size(), woke);
  }
  const std::vector<client::BindRequest> asked = requests;
  ++binding_;
  Verdicts verdicts = co_await inner_.BindBatch(std::move(requests));
  --binding_;
  for (size_t i = 0; i < asked.size(); ++i) {
    moments_.BindEnded(asked[i], verdicts[i].status(), slept);
    if (fault == BindFault::kLoseAnswer) verdicts[i] = Timeout("injected: the answer is lost");
  }
  co_return verdicts;
}

rt::Task<WatchedBinder::Created> WatchedBinder::CreateBoundBatch(
    meta::Object model, std::vector<client::BindItem> items, std::string holder, int64_t term) {
  std::vector<client::BindRequest> asked;
  for (const client::BindItem& item : items) {
    client::BindRequest& request = asked.emplace_back();
    request.holder = holder;
    request.term = term;
    request.items.push_back(item);
  }
  const BindFault fault = moments_.BindBegins(asked);
  Duration slept;
  if (fault == BindFault::kSlow) {
    slept = DrawPause();
    const Status woke = co_await rt::Sleep(slept);
    if (!woke.ok()) co_return Created(asked.size(), woke);
  }
  ++binding_;
  Created verdicts =
      co_await inner_.CreateBoundBatch(std::move(model), std::move(items), std::move(holder), term);
  --binding_;
  for (size_t i = 0; i < asked.size(); ++i) {
    moments_.BindEnded(asked[i], verdicts[i], slept);
    if (fault == BindFault::kLoseAnswer) verdicts[i] = Timeout("injected: the answer is lost");
  }
  co_return verdicts;
}

rt::Task<std::vector<Status>> WatchedBinder::UnbindBatch(
    std::vector<client::UnbindRequest> requests) {
  const std::vector<client::UnbindRequest> asked = requests;
  if (slow_unbinds_ > Duration()) {
    const Duration pause = slow_unbinds_;
    slow_unbinds_ = Duration();
    const Status woke = co_await rt::Sleep(pause);
    if (!woke.ok()) co_return std::vector<Status>(asked.size(), woke);
  }
  for (const client::UnbindRequest& request : asked) moments_.UnbindBegins(request);
  std::vector<Status> verdicts = co_await inner_.UnbindBatch(std::move(requests));
  for (size_t i = 0; i < asked.size(); ++i) moments_.Unbound(asked[i], verdicts[i]);
  co_return verdicts;
}

}  // namespace berth::sim
