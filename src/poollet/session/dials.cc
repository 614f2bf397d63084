// SPDX-License-Identifier: Apache-2.0
#include "poollet/session/dials.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "rt/deadline.h"
#include "rt/sleep.h"

namespace berth::poollet {

bool Dials::has(const std::string& address) const {
  return std::ranges::any_of(
      dials_, [&address](const Dial& dial) { return dial.outcome.address == address; });
}

void Dials::Begin(const std::string& address, net::RpcCredentials credentials, Duration limit) {
  if (has(address)) return;
  Dial& dial = dials_.emplace_back();
  dial.outcome.address = address;
  dial.outcome.began = loop_.Now();
  if (running_ == nullptr) running_ = std::make_unique<rt::TaskScope>(loop_);
  running_->Spawn("poollet.session.dial", Run(&dial, std::move(credentials), limit));
}

rt::Task<Status> Dials::Run(Dial* dial, net::RpcCredentials credentials, Duration limit) {
  auto dialled = co_await dialer_.Dial(dial->outcome.address, std::move(credentials), limit);
  dial->outcome.status = dialled.status();
  if (dialled.ok()) dial->outcome.channel = *std::move(dialled);
  dial->has_ended = true;
  ended_.Set();
  co_return OkStatus();  // whoever takes it says why it failed
}

std::optional<Dialled> Dials::TakeEnded() {
  auto found = dials_.end();
  for (auto dial = dials_.begin(); dial != dials_.end(); ++dial) {
    if (!dial->has_ended) continue;
    if (found == dials_.end() || dial->outcome.channel != nullptr) found = dial;
    if (found->outcome.channel != nullptr) break;
  }
  if (found == dials_.end()) return std::nullopt;
  std::optional<Dialled> outcome(std::move(found->outcome));
  dials_.erase(found);
  return outcome;
}

rt::Task<Result<std::optional<Dialled>>> Dials::Next(std::optional<Duration> patience) {
  ended_.Reset();
  std::optional<Dialled> outcome = TakeEnded();
  if (outcome.has_value()) co_return outcome;
  if (dials_.empty()) {
    if (patience.has_value()) CO_TRY_STATUS(co_await rt::Sleep(*patience));
    co_return outcome;
  }
  if (!patience.has_value()) {
    CO_TRY_STATUS(co_await ended_.Wait());
  } else {
    const Status waited = co_await rt::WithDeadline(ended_.Wait(), *patience);
    if (waited.Is(Reason::kCancelled)) co_return waited;
  }
  co_return TakeEnded();
}

rt::Task<Status> Dials::GiveUp() {
  if (running_ != nullptr) CO_TRY_STATUS(co_await running_->Close());
  running_.reset();
  List left = std::move(dials_);
  dials_.clear();
  for (const Dial& dial : left) {
    if (dial.outcome.channel == nullptr) continue;
    const Status closed = co_await dial.outcome.channel->Close();
    if (!closed.ok()) LOG_DEBUG("close: {}", closed.message());
  }
  co_return OkStatus();
}

}  // namespace berth::poollet
