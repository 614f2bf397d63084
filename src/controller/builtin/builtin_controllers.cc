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
  tasks.push_back(ephemeral_.Run());
  tasks.push_back(claims_.Run());
  tasks.push_back(ipam_.Run());
  tasks.push_back(taints_.Run());
  const std::vector<Status> ends = co_await rt::JoinAll(std::move(tasks));
  co_return ends.front();
}

}  // namespace berth::controller
