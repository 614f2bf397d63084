// SPDX-License-Identifier: Apache-2.0
#include "controller/pool_guests/guest_follower.h"

#include <algorithm>
#include <utility>

namespace berth::controller {

GuestFollower::GuestFollower(Deps deps) : deps_(std::move(deps)), scope_(deps_.loop) {}

void GuestFollower::Follow(const meta::KindInfo& kind, client::Sink& sink) {
  client::ReflectorOptions options;
  options.field_selector = "spec.machinePoolRef.name=" + deps_.pool;
  reflectors_.emplace_back(deps_.loop, deps_.client, kind, sink, std::move(options));
  scope_.Spawn("pool_guests.follow", reflectors_.back().Run());
}

bool GuestFollower::synced() const {
  return std::ranges::all_of(reflectors_, &client::Reflector::synced);
}

void GuestFollower::Report(std::string_view controller, client::HealthReport& report) const {
  for (const client::Reflector& reflector : reflectors_) report.Add(controller, reflector);
}

}  // namespace berth::controller
