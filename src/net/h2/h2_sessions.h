// SPDX-License-Identifier: Apache-2.0
// H2Sessions serves RpcRoutes on connections that somebody else has accepted: those of an H2Server,
// or of an HttpServer whose clients ask for "h2". On-loop only.
#pragma once

#include <cstddef>
#include <list>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/time.h"
#include "net/census.h"
#include "net/crowd.h"
#include "net/h2/h2_limits.h"
#include "net/http_server.h"
#include "net/rpc.h"
#include "net/stream.h"
#include "rt/task.h"

namespace berth::net {

struct H2SessionsOptions {
  H2Limits limits;
  // With one more, one of nobody is ended (AnonymousLimits), or the oldest without a call; if there
  // is none, the new one is.
  size_t connections_max = 256;
  size_t connections_per_identity_max = 64;  // of one subject of certificates, or one user
  // Of 256 half; a client with a token is one of these until its first call.
  AnonymousLimits anonymous = {.connections_max = 128, .connections_per_address_max = 32};
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
  // Ends one that can best be spared and could have been for so long: of nobody, or the oldest
  // without a call. False: there is none.
  bool EndOne(Duration spared_for = Duration());

 private:
  class Session;

  // Gives the session its place. Why not, as its client reads it; "": it is welcome.
  std::string_view WhyRefused(Session& session);
  bool MakeAnonymousRoom(const std::string& address);
  bool EndAnonymous(Session* session);
  void End(Session& session, std::string_view why);
  // A handler knows whose the connection is.
  void Introduce(Session& session, const std::string& user);

  const H2SessionsOptions options_;
  const RpcRoutes routes_;
  Census by_identity_;
  Crowd<Session> anonymous_;  // those that nobody has introduced yet
  bool draining_ = false;
  std::list<Session*> sessions_;  // in the order of their arrival
  size_t ending_ = 0;             // of these; they have no place any more
};

}  // namespace berth::net
