// SPDX-License-Identifier: Apache-2.0
#include "net/call/call_service.h"

#include <fmt/core.h>

#include <utility>

#include "base/strings.h"
#include "rt/deadline.h"

namespace berth::net {
namespace {

// The one message of a unary call.
rt::Task<Result<std::string>> ReadOnly(CallStream* stream) {
  CO_TRY(std::optional<std::string> request, co_await stream->Read());
  if (!request.has_value()) co_return BadRequest("a unary call without a message");
  CO_TRY(const std::optional<std::string> more, co_await stream->Read());
  if (more.has_value()) co_return BadRequest("a unary call with more than one message");
  co_return *std::move(request);
}

}  // namespace

void CallService::Drain() {
  draining_ = true;
  for (const Call* call : calls_) {
    if (call->kind == Kind::kStream) call->context->Cancel();
  }
}

void CallService::Begin(std::shared_ptr<CallStream> stream, CallHead head) {
  if (stream->over()) return;
  // Resets make a transport forget a call before its handler has ended.
  if (handlers_.size() >= limits_.calls_max) {
    stream->Finish(Status(Reason::kTooManyRequests,
                          fmt::format("{} calls on one connection, the limit is {}",
                                      handlers_.size() + 1,
                                      limits_.calls_max)));
    return;
  }
  const std::optional<Duration> timeout = head.timeout;
  Kind kind = Kind::kUnary;
  Result<rt::Task<Status>> handler = Route(stream.get(), std::move(head), &kind);
  if (!handler.ok()) {
    stream->Finish(handler.status());
    return;
  }
  if (stream->over()) return;  // what came with the head breaks the route's limits
  if (timeout.has_value()) stream->SetDeadline(*timeout);
  handlers_.Spawn("net.call", Serve(stream, *std::move(handler), kind));
  if (kind == Kind::kStream) stream->BeginAnswer();
}

Result<rt::Task<Status>> CallService::Route(CallStream* stream, CallHead head, Kind* kind) {
  const auto unary = routes_.unary.find(head.method);
  const auto streaming = routes_.streams.find(head.method);
  if (unary == routes_.unary.end() && streaming == routes_.streams.end()) {
    return Status(Reason::kMethodNotSupported, "no such method: " + Quote(head.method));
  }
  RpcCall call{.method = std::move(head.method),
               .metadata = std::move(head.metadata),
               .deadline = std::nullopt,
               .peer = peer_()};
  if (head.timeout.has_value()) call.deadline = handlers_.loop().Now() + *head.timeout;
  if (unary != routes_.unary.end()) {
    stream->SetLimits(unary->second.limits);
    return ServeUnary(stream, &unary->second, std::move(call));
  }
  *kind = Kind::kStream;
  stream->SetLimits(streaming->second.limits);
  return ServeStream(stream, &streaming->second, std::move(call));
}

rt::Task<Status> CallService::Serve(std::shared_ptr<CallStream> stream,
                                    rt::Task<Status> handler,
                                    Kind kind) {
  rt::ChildContext child(co_await rt::CurrentContext());
  Call call{.kind = kind, .context = &child};
  const auto place = calls_.insert(calls_.end(), &call);
  stream->OnOver([&child] { child.Cancel(); });
  if (draining_) child.Cancel();
  Status status = co_await handler.In(child.context());
  stream->OnOver(nullptr);
  calls_.erase(place);
  if (status.Is(Reason::kCancelled)) {
    status = Unavailable(draining_ ? "the server is shutting down" : "the call was cancelled");
  }
  stream->Finish(status);
  co_return OkStatus();  // the client's business, not the server's
}

rt::Task<Status> CallService::ServeUnary(CallStream* stream,
                                         const RpcRoutes::Unary* route,
                                         RpcCall call) {
  if (route->admit) CO_TRY_STATUS(co_await route->admit(call));
  CO_TRY(std::string request, co_await ReadRequest(stream));
  ++answering_;
  Result<std::string> answer = co_await route->handler(std::move(call), std::move(request));
  --answering_;
  CO_TRY_STATUS(answer.status());
  const size_t size = answer->size();
  if (stream->TryWrite(*std::move(answer))) co_return OkStatus();
  if (size > route->limits.message_bytes_max) {
    co_return Status(
        Reason::kRequestTooLarge,
        fmt::format(
            "an answer of {} bytes, the limit is {}", size, route->limits.message_bytes_max));
  }
  co_return Status(Reason::kTooManyRequests, "the client does not take its answers");
}

// Without a limit of ours a peer that answers pings could keep half a request, and its connection,
// for ever.
rt::Task<Result<std::string>> CallService::ReadRequest(CallStream* stream) const {
  auto request = co_await rt::WithDeadline(ReadOnly(stream), limits_.request_timeout);
  if (request.status().Is(Reason::kTimeout) && !stream->over()) {
    co_return Timeout("the request was not complete within " +
                      FormatDuration(limits_.request_timeout));
  }
  co_return request;
}

rt::Task<Status> CallService::ServeStream(CallStream* stream,
                                          const RpcRoutes::Stream* route,
                                          RpcCall call) {
  co_return co_await route->handler(std::move(call), *stream);
}

}  // namespace berth::net
