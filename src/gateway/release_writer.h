// SPDX-License-Identifier: Apache-2.0
// The ReleaseWriter takes objects off a pool whose host has let go of them: Gone, or an assignment
// refused (G2, G4 HostReleased). Unbinding is conditioned on the placement, so a late word of an
// older one changes nothing.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "client/binder.h"
#include "rt/event.h"
#include "rt/loop.h"
#include "rt/task.h"

namespace berth::gateway {

class ReleaseWriter {
 public:
  static constexpr size_t kBatchMax = 64;

  // `done` hears of every request that was committed or is void.
  using Done = std::function<void(const client::UnbindRequest& request)>;
  ReleaseWriter(client::Binder& binder, Done done) : binder_(binder), done_(std::move(done)) {}

  // At most one per object waits; the newest counts.
  void Release(client::UnbindRequest request);
  // Writes until it is cancelled.
  rt::Task<Status> Run();
  size_t waiting() const { return waiting_.size(); }

 private:
  client::Binder& binder_;
  const Done done_;
  std::map<std::string, client::UnbindRequest> waiting_;  // by UID
  rt::Event work_;
};

}  // namespace berth::gateway
