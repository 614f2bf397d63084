// SPDX-License-Identifier: Apache-2.0
// A CallService runs the handlers of the calls that come in on one connection of a server.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "base/time.h"
#include "net/call/call_stream.h"
#include "net/rpc.h"
#include "rt/child_context.h"
#include "rt/loop.h"
#include "rt/scope.h"
#include "rt/task.h"

namespace berth::net {

// What a client says before its first message.
struct CallHead {
  std::string method;
  std::map<std::string, std::string, std::less<>> metadata;
  std::optional<Duration> timeout;
};

struct CallServiceLimits {
  size_t calls_max = 0;  // handlers at once
  // For the whole request of a unary call, whatever deadline its client has named. What a stream
  // waits for is its handler's business.
  Duration request_timeout = Duration::Seconds(30);
};

class CallService {
 public:
  // The routes outlive it. `peer` is asked once per call.
  CallService(rt::Loop& loop,
              const RpcRoutes& routes,
              CallServiceLimits limits,
              std::function<RpcPeer()> peer)
      : routes_(routes), limits_(limits), peer_(std::move(peer)), handlers_(loop) {}

  // Starts the handler of a call, or ends the call with the reason why not.
  void Begin(std::shared_ptr<CallStream> stream, CallHead head);
  // Cancels streams and those that still begin; unary calls go on.
  void Drain();
  // Cancels every handler and waits until all have ended.
  rt::Task<Status> Close() { return handlers_.Close(); }
  // How many whole requests of unary calls are being answered.
  size_t answering() const { return answering_; }

 private:
  enum class Kind : uint8_t { kUnary, kStream };
  struct Call {
    Kind kind = Kind::kUnary;
    rt::ChildContext* context = nullptr;
  };

  Result<rt::Task<Status>> Route(CallStream* stream, CallHead head, Kind* kind);
  rt::Task<Status> Serve(std::shared_ptr<CallStream> stream, rt::Task<Status> handler, Kind kind);
  rt::Task<Status> ServeUnary(CallStream* stream, const RpcRoutes::Unary* route, RpcCall call);
  rt::Task<Result<std::string>> ReadRequest(CallStream* stream) const;
  static rt::Task<Status> ServeStream(CallStream* stream,
                                      const RpcRoutes::Stream* route,
                                      RpcCall call);

  const RpcRoutes& routes_;
  const CallServiceLimits limits_;
  const std::function<RpcPeer()> peer_;
  bool draining_ = false;
  size_t answering_ = 0;
  std::list<Call*> calls_;
  rt::TaskScope handlers_;
};

}  // namespace berth::net
