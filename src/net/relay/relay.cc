// SPDX-License-Identifier: Apache-2.0
#include "net/relay/relay.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "net/relay/home_end.h"
#include "net/relay/net_end.h"
#include "rt/run_on.h"

namespace berth::net {
namespace {

// The handler hears of what the network took in steps: its own limit is at least four of them.
constexpr size_t kToldEvery = size_t{16} * 1024;

// A call as its handler is told of it. The peer is introduced where its connection is.
RpcCall AtHome(RpcCall call, rt::Loop* net) {
  if (!call.peer.introduce) return call;
  call.peer.introduce = [net, introduce = std::move(call.peer.introduce)](std::string user) {
    net->Post("net.introduce", [introduce, user = std::move(user)] { introduce(user); });
  };
  return call;
}

rt::Task<Status> Handle(std::shared_ptr<const StreamHandler> handler,
                        std::shared_ptr<HomeEnd> end,
                        RpcCall call) {
  co_return co_await (*handler)(std::move(call), *end);
}

rt::Task<Status> ServeStream(rt::Loop* net,
                             rt::TaskScope* handlers,
                             std::shared_ptr<const StreamHandler> handler,
                             RpcLimits limits,
                             RpcCall call,
                             MessageStream* stream) {
  const size_t told_every = std::clamp<size_t>(limits.outbox_bytes_max / 4, 1, kToldEvery);
  call = AtHome(std::move(call), net);
  auto end = std::make_shared<NetEnd>(*net, handlers->loop(), *stream, told_every);
  auto home = std::make_shared<HomeEnd>(*net, end, limits, told_every);
  end->Start(home);
  rt::MakeTask<Status> handle =
      [handler = std::move(handler), home, call = std::move(call)]() mutable {
        return Handle(std::move(handler), std::move(home), std::move(call));
      };
  const Status status = co_await rt::RunOn<Status>(handlers, std::move(handle));
  const Status flushed = co_await end->Flush();
  CO_TRY_STATUS(co_await end->Close());
  CO_TRY_STATUS(flushed);
  co_return status;
}

rt::Task<Result<std::string>> ServeUnary(rt::Loop* net,
                                         rt::TaskScope* handlers,
                                         std::shared_ptr<const UnaryHandler> handler,
                                         RpcCall call,
                                         std::string request) {
  call = AtHome(std::move(call), net);
  rt::MakeTask<Result<std::string>> handle =
      [handler = std::move(handler), call = std::move(call), request = std::move(request)]() mutable
      -> rt::Task<Result<std::string>> { return (*handler)(std::move(call), std::move(request)); };
  co_return co_await rt::RunOn<Result<std::string>>(handlers, std::move(handle));
}

rt::Task<Status> Admit(rt::Loop* net,
                       rt::TaskScope* handlers,
                       std::shared_ptr<const Admission> admit,
                       RpcCall call) {
  call = AtHome(std::move(call), net);
  rt::MakeTask<Status> ask = [admit = std::move(admit), call = std::move(call)]() mutable {
    return (*admit)(std::move(call));
  };
  co_return co_await rt::RunOn<Status>(handlers, std::move(ask));
}

}  // namespace

RpcRoutes RelayRoutes(RpcRoutes routes, rt::Loop& net, rt::TaskScope& handlers) {
  RpcRoutes relayed;
  for (auto& [method, route] : routes.unary) {
    auto handler = std::make_shared<const UnaryHandler>(std::move(route.handler));
    relayed.unary[method] = {
        .handler =
            [handler, &net, &handlers](RpcCall call, std::string request) {
              return ServeUnary(&net, &handlers, handler, std::move(call), std::move(request));
            },
        .limits = route.limits};
    if (!route.admit) continue;
    auto admit = std::make_shared<const Admission>(std::move(route.admit));
    relayed.unary[method].admit = [admit, &net, &handlers](RpcCall call) {
      return Admit(&net, &handlers, admit, std::move(call));
    };
  }
  for (auto& [method, route] : routes.streams) {
    auto handler = std::make_shared<const StreamHandler>(std::move(route.handler));
    RpcLimits net_limits = route.limits;
    net_limits.outbox_bytes_max = std::min(net_limits.outbox_bytes_max, kNetOutboxBytes);
    relayed.streams[method] = {
        .handler =
            [handler, &net, &handlers, limits = route.limits](RpcCall call, MessageStream& stream) {
              return ServeStream(&net, &handlers, handler, limits, std::move(call), &stream);
            },
        .limits = net_limits};
  }
  return relayed;
}

}  // namespace berth::net
