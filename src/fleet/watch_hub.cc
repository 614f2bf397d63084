// SPDX-License-Identifier: Apache-2.0
#include "fleet/watch_hub.h"

#include <utility>

namespace berth::fleet {

class WatchHub::Reader final : public FleetWatch {
 public:
  explicit Reader(WatchHub& hub) : hub_(&hub) { hub.readers_.push_back(this); }
  ~Reader() override {
    if (hub_ != nullptr) std::erase(hub_->readers_, this);
  }

  rt::Task<Result<std::vector<FleetEvent>>> Next() override {
    if (buffer_.empty() && hub_ != nullptr) CO_TRY_STATUS(co_await waiters_.Wait());
    if (!buffer_.empty()) co_return std::exchange(buffer_, {});
    co_return Unavailable("the fleet has ended");
  }

  void Tell(const FleetEvent& event) {
    if (buffer_.size() >= kBufferMax) {
      buffer_.clear();
      buffer_.push_back(FleetEvent{.type = FleetEvent::Type::kOverflow});
      overflowed_ = true;
    }
    // After an overflow the reader asks for everything anyway.
    if (!overflowed_ || buffer_.empty()) {
      overflowed_ = false;
      buffer_.push_back(event);
    }
    waiters_.CompleteFirst(OkStatus());
  }
  void End() {
    hub_ = nullptr;
    waiters_.CompleteAll(OkStatus());
  }

 private:
  WatchHub* hub_;
  bool overflowed_ = false;
  std::vector<FleetEvent> buffer_;
  rt::Waiters<Status> waiters_;
};

WatchHub::~WatchHub() {
  for (Reader* reader : readers_) reader->End();
}

std::unique_ptr<FleetWatch> WatchHub::Watch() { return std::make_unique<Reader>(*this); }

void WatchHub::Tell(const FleetEvent& event) {
  for (Reader* reader : readers_) reader->Tell(event);
}

}  // namespace berth::fleet
