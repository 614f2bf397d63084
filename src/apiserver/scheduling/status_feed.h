// SPDX-License-Identifier: Apache-2.0
// A StatusFeed tells one reader what becomes of one machine, until it is gone. It holds a position
// in the machine's history and no queue: a reader that is cut off loses nothing by coming back.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "apiserver/registry.h"
#include "apiserver/scheduling/outlet.h"
#include "apiserver/scheduling/workload_status.h"
#include "base/result.h"
#include "client/client.h"
#include "rt/task.h"

namespace berth::apiserver {

class StatusFeed {
 public:
  // Both outlive the feed. `begun` is called when the present status has been told for the first
  // time.
  StatusFeed(Registry& registry, Outlet& outlet, client::ObjectKey key, std::function<void()> begun)
      : registry_(registry), outlet_(outlet), key_(std::move(key)), begun_(std::move(begun)) {}

  // The present status, then every change; ok once the machine is gone. NotFound if there is no
  // such instance.
  rt::Task<Status> Run();

 private:
  rt::Task<Result<std::unique_ptr<RegistryWatch>>> Begin();
  rt::Task<Status> Tell(proto::WorkloadStatus status);
  rt::Task<Status> TellEvent(RegistryEvent event);

  Registry& registry_;
  Outlet& outlet_;
  const client::ObjectKey key_;
  const std::function<void()> begun_;
  bool has_begun_ = false;
  apis::compute::Machine last_;  // as it was seen last
  store::Revision seen_;
  std::string told_;  // the last message
  bool is_gone_ = false;
};

// The state from which a watch can go on: cheap, whatever there is of the kind.
rt::Task<Result<store::Revision>> PresentRevision(Registry& registry, const meta::KindInfo& kind);

}  // namespace berth::apiserver
