// SPDX-License-Identifier: Apache-2.0
// Tunnels joins two ends: whoever asked for a console, exec, logs or a port, and the call that the
// host opens because of it. A ticket joins them: random, used once, and only by the host that it
// was given to.
//
// A link, opened or not, belongs to the session that it was asked for on, and ends with it: a host
// that is not heard any more, because it was revoked or cut, is not talked to either. That a host
// has one session at a time makes "of this session" the same as "of this host".
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

  // A new ticket for this host; nullopt while it has kTunnelsMax links, open or to be opened.
  std::optional<std::string> Issue(const std::string& host);
  // Waits until the host has opened the call: Timeout; Unavailable if the host's session ends. The
  // ticket is void afterwards.
  rt::Task<Result<std::unique_ptr<fleet::Tunnel>>> Await(std::string host,
                                                         std::string ticket,
                                                         Duration limit);
  // Serves a host's call: its first frame says which tunnel it is. Returns when either end closes,
  // or the session that the tunnel was asked for on has ended.
  rt::Task<Status> Serve(std::string host, net::MessageStream& stream);
  // The host's session is over: both ends of its links see their end in this turn, and tickets that
  // it was given are void. Nothing more is read from its calls or written to them.
  void EndAllOf(const std::string& host);

 private:
  struct Link;
  class End;
  using Links = std::map<std::string, std::shared_ptr<Link>>;  // by ticket
  std::shared_ptr<Link> Find(const std::string& host, const std::string& ticket) const;
  void Forget(const std::string& host, const std::string& ticket);
  static rt::Task<Status> FromHost(std::shared_ptr<Link> link, net::MessageStream& stream);
  static rt::Task<Status> ToHost(std::shared_ptr<Link> link, net::MessageStream& stream);

  pki::Entropy& entropy_;
  std::map<std::string, Links> hosts_;  // those that have links: kTunnelsMax of each, at most
};

}  // namespace berth::gateway
