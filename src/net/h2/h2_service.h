// SPDX-License-Identifier: Apache-2.0
// An H2Service is one connection of an H2Server: it runs the handlers of the calls that come in.
#pragma once

#include <cstddef>
#include <list>
#include <memory>

#include "base/result.h"
#include "net/h2/h2_connection.h"
#include "net/h2/h2_limits.h"
#include "net/h2/h2_stream.h"
#include "net/rpc.h"
#include "net/stream.h"
#include "rt/child_context.h"
#include "rt/scope.h"
#include "rt/task.h"

namespace berth::net {

class H2Service {
 public:
  // The routes and limits outlive it.
  H2Service(std::unique_ptr<Stream> stream, const RpcRoutes& routes, const H2Limits& limits);

  // Serves until the connection is over and every handler has ended.
  rt::Task<Status> Run();
  // No new calls; streams are cancelled, unary calls go on.
  void Drain();
  // Says why and ends.
  void Refuse(std::string_view text) {
    connection_.Terminate(H2Connection::kEnhanceYourCalm, text);
  }

 private:
  enum class Kind : uint8_t { kUnary, kStream };
  struct Call {
    Kind kind = Kind::kUnary;
    rt::ChildContext* context = nullptr;
  };

  void Begin(std::shared_ptr<H2Stream> stream, H2Fields fields);
  Result<rt::Task<Status>> Route(H2Stream* stream, GrpcRequest request, Kind* kind);
  rt::Task<Status> Serve(std::shared_ptr<H2Stream> stream, rt::Task<Status> handler, Kind kind);
  rt::Task<Status> ServeUnary(H2Stream* stream, const RpcRoutes::Unary* route, RpcCall call);
  static rt::Task<Status> ServeStream(H2Stream* stream,
                                      const RpcRoutes::Stream* route,
                                      RpcCall call);

  const RpcRoutes& routes_;
  const H2Limits& limits_;
  bool draining_ = false;
  std::list<Call*> calls_;
  H2Connection connection_;
  rt::TaskScope handlers_;
};

}  // namespace berth::net
