// SPDX-License-Identifier: Apache-2.0
#include "controller/builtin/builtin_controllers.h"

#include <utility>
#include <vector>

#include "rt/join_all.h"

namespace berth::controller {

rt::Task<Status> BuiltinControllers::Run() {
  std::vector<rt::Task<Status>> tasks;
  tasks.push_back(gc_.Run());
  tasks.push_back(namespaces_.Run());
  tasks.push_back(classes_.Run());
  tasks.push_back(in_use_.Run());
  tasks.push_back(quota_.Run());
  tasks.push_back(machine_sets_.Run());
  tasks.push_back(pool_leases_.Run());
  tasks.push_back(ephemeral_.Run());
  tasks.push_back(claims_.Run());
  tasks.push_back(ipam_.Run());
  tasks.push_back(taints_.Run());
  tasks.push_back(drains_.Run());
  tasks.push_back(moves_.Run());
  const std::vector<Status> ends = co_await rt::JoinAll(std::move(tasks));
  co_return ends.front();
}

void BuiltinControllers::Report(client::HealthReport& report) const {
  gc_.Report(report);
  namespaces_.Report(report);
  classes_.Report(report);
  in_use_.Report(report);
  quota_.Report(report);
  machine_sets_.Report(report);
  pool_leases_.Report(report);
  ephemeral_.Report(report);
  claims_.Report(report);
  ipam_.Report(report);
  taints_.Report(report);
  drains_.Report(report);
  moves_.Report(report);
}

}  // namespace berth::controller
