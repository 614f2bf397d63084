// SPDX-License-Identifier: Apache-2.0
// H2Sessions serves RpcRoutes on connections that somebody else has accepted: those of an H2Server,
// or of an HttpServer whose clients ask for "h2". On-loop only.
#pragma once

#include <cstddef>
#include <list>
#include <memory>
#include <string_view>

#include "base/result.h"
#include "net/census.h"
#include "net/h2/h2_limits.h"
#include "net/http_server.h"
#include "net/rpc.h"
#include "net/stream.h"
#include "rt/task.h"

namespace berth::net {

struct H2SessionsOptions {
  H2Limits limits;
  // With one more the oldest connection without a call is ended; if all have one, the new one is.
  size_t connections_max = 256;
  size_t connections_per_identity_max = 64;  // of one client certificate
};

class H2Sessions final : public OtherProtocol {
 public:
  H2Sessions(H2SessionsOptions options, RpcRoutes routes);
  // REQUIRES: every Serve() has ended.
  ~H2Sessions() override;
  H2Sessions(const H2Sessions&) = delete;
  H2Sessions& operator=(const H2Sessions&) = delete;

  rt::Task<Status> Serve(std::unique_ptr<Stream> stream) override;
  void Drain() override;
  size_t size() const { return sessions_.size(); }

 private:
  class Session;

  // Why not, as its client reads it; "": it is welcome.
  std::string_view WhyRefused(const Stream& stream, std::unique_ptr<Census::Entry>* of_identity);
  bool EndOldestIdle();

  const H2SessionsOptions options_;
  const RpcRoutes routes_;
  Census by_identity_;
  bool draining_ = false;
  std::list<Session*> sessions_;  // in the order of their arrival
};

}  // namespace berth::net
