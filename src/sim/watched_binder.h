// SPDX-License-Identifier: Apache-2.0
// A Binder in front of another that loses answers and is slow when it is told to, and says what it
// sees.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/random.h"
#include "client/binder.h"
#include "sim/moments.h"

namespace berth::sim {

class WatchedBinder final : public client::Binder {
 public:
  // Both outlive this.
  WatchedBinder(client::Binder& inner, Moments& moments, uint64_t seed)
      : inner_(inner), moments_(moments), random_(seed) {}

  // Binds that are being committed.
  size_t binding() const { return binding_; }
  // The next unbinds wait this long before they are carried out.
  void SlowUnbinds(Duration by) { slow_unbinds_ = by; }

  rt::Task<std::vector<Result<std::vector<meta::Object>>>> BindBatch(
      std::vector<client::BindRequest> requests) override;
  using Created = std::vector<Status>;
  rt::Task<std::vector<Status>> CreateBoundBatch(meta::Object model,
                                                 std::vector<client::BindItem> items,
                                                 std::string holder,
                                                 int64_t term) override;
  rt::Task<std::vector<Status>> UnbindBatch(std::vector<client::UnbindRequest> requests) override;

 private:
  Duration DrawPause() { return Duration::Millis(random_.Between(500, 60'000)); }

  client::Binder& inner_;
  Moments& moments_;
  Random random_;
  size_t binding_ = 0;
  Duration slow_unbinds_;
};

}  // namespace berth::sim
