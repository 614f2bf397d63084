// SPDX-License-Identifier: Apache-2.0
// ClientLinks are the ways of one client to the members of an etcd: it reaches each of them through
// a port here, so that it can be cut off from all of them, and lives on, while others reach them.
// On-loop only; nothing passes while the loop does not run.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "net/acceptor.h"
#include "rt/asio/asio_loop.h"
#include "rt/event.h"
#include "rt/scope.h"
#include "rt/task.h"
#include "store/etcd/testing/way.h"

namespace berth::store {

class ClientLinks {
 public:
  // `members` are "127.0.0.1:port".
  ClientLinks(rt::AsioLoop& loop, const std::vector<std::string>& members);
  ClientLinks(const ClientLinks&) = delete;
  ClientLinks& operator=(const ClientLinks&) = delete;
  // REQUIRES: the loop does not run.
  ~ClientLinks();

  // What the client is to use instead of `members`, in the same order.
  const std::vector<std::string>& endpoints() const { return endpoints_; }
  // From now on nothing comes through, and nothing is closed.
  void Cut() { is_cut_ = true; }
  // What was sent meanwhile arrives.
  void Heal();

 private:
  rt::Task<Status> Close();

  rt::AsioLoop& loop_;
  rt::TaskScope scope_;
  bool is_cut_ = false;
  rt::Event healed_;
  std::vector<std::string> endpoints_;
  std::vector<std::unique_ptr<net::Acceptor>> acceptors_;
};

}  // namespace berth::store
