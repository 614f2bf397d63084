// SPDX-License-Identifier: Apache-2.0
// ExecServer serves consoles to poollets that ask the IRI for a URL (ADR 0033): WebSockets with the
// channels of Kubernetes, on a port of the loopback that is opened with the first URL.
//
// Invariants: 1. Only this process's user, root and those who may call the runtime are let in,
// whatever they know. 2. A URL opens one conversation, within kUrlLife. 3. Nothing in a refusal
// tells whether a URL has existed.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/runtime/loopback_peer.h"
#include "base/result.h"
#include "base/time.h"
#include "net/http.h"
#include "net/http_server.h"
#include "rt/asio/asio_loop.h"
#include "rt/blocking_pool.h"
#include "rt/task.h"
#include "runtime/machine/console_doors.h"

namespace berth::app {

class ExecServer final : public runtime::ConsoleDoors {
 public:
  static constexpr Duration kUrlLife = Duration::Seconds(30);
  // URLs that nobody has used yet: far more than a poollet asks for within their life.
  static constexpr size_t kUrlsMax = 64;

  struct Options {
    Duration url_life = kUrlLife;
    size_t urls_max = kUrlsMax;
    std::vector<uid_t> allowed;  // beside root and this process's user
    // Who is at the other end of a connection, by its port and ours. Blocks.
    std::function<std::optional<uid_t>(uint16_t peer_port, uint16_t own_port)> owner_of =
        [](uint16_t peer_port, uint16_t own_port) { return LoopbackOwner(peer_port, own_port); };
  };

  // Both outlive the server.
  ExecServer(rt::AsioLoop& loop, rt::BlockingPool& files, Options options);
  // REQUIRES: Stop() was awaited.
  ~ExecServer() override = default;
  ExecServer(const ExecServer&) = delete;
  ExecServer& operator=(const ExecServer&) = delete;

  Result<std::string> Grant(Open open) override;
  // Ends all conversations. Always ok.
  rt::Task<Status> Stop();

 private:
  struct Door {
    Open open;
    Time until;
  };

  rt::Task<net::HttpResponse> Handle(net::HttpRequest request);
  rt::Task<Result<net::HttpResponse>> Enter(net::HttpRequest request);
  rt::Task<Status> CheckPeer(std::string address);
  bool MayEnter(uid_t user) const;
  // The door that this path opens, which is gone from then on.
  Result<Open> Take(std::string_view target);
  void Forget();

  rt::AsioLoop& loop_;
  rt::BlockingPool& files_;
  const Options options_;
  std::map<std::string, Door> doors_;  // by the hash of their token
  std::unique_ptr<net::HttpServer> server_;
};

}  // namespace berth::app
