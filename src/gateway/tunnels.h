// SPDX-License-Identifier: Apache-2.0
// Tunnels joins two ends: whoever asked for a console, exec, logs or a port, and the call that the
// host opens because of it. A ticket joins them: random, used once, and only by the host that it
// was given to.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "fleet/fleet.h"
#include "net/rpc.h"
#include "pki/entropy.h"
#include "rt/loop.h"
#include "rt/task.h"

namespace berth::gateway {

class Tunnels {
 public:
  explicit Tunnels(pki::Entropy& entropy) : entropy_(entropy) {}

  // A new ticket for this host; nullopt while it has too many to open.
  std::optional<std::string> Issue(const std::string& host);
  // Waits until the host has opened the call: Timeout. The ticket is void afterwards.
  rt::Task<Result<std::unique_ptr<fleet::Tunnel>>> Await(std::string ticket, Duration limit);
  // Serves a host's call: its first frame says which tunnel it is. Returns when either end closes.
  rt::Task<Status> Serve(std::string host, net::MessageStream& stream);
  size_t waiting() const { return waiting_.size(); }

 private:
  struct Link;
  struct Waiting;
  class End;
  static rt::Task<Status> FromHost(std::shared_ptr<Link> link, net::MessageStream& stream);
  static rt::Task<Status> ToHost(std::shared_ptr<Link> link, net::MessageStream& stream);

  pki::Entropy& entropy_;
  std::map<std::string, std::shared_ptr<Waiting>> waiting_;  // by ticket
};

}  // namespace berth::gateway
