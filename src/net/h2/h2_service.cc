// SPDX-License-Identifier: Apache-2.0
#include "net/h2/h2_service.h"

#include <fmt/core.h>

#include <utility>

#include "base/strings.h"

namespace berth::net {
namespace {

// The one message of a unary call.
rt::Task<Result<std::string>> ReadOnly(H2Stream* stream) {
  CO_TRY(std::optional<std::string> request, co_await stream->Read());
  if (!request.has_value()) co_return BadRequest("a unary call without a message");
  CO_TRY(const std::optional<std::string> more, co_await stream->Read());
  if (more.has_value()) co_return BadRequest("a unary call with more than one message");
  co_return *std::move(request);
}

}  // namespace

H2Service::H2Service(std::unique_ptr<Stream> stream,
                     const RpcRoutes& routes,
                     const H2Limits& limits)
    : routes_(routes),
      limits_(limits),
      connection_(H2Connection::Side::kServer,
                  std::move(stream),
                  limits,
                  [this](std::shared_ptr<H2Stream> call, H2Fields fields) {
                    Begin(std::move(call), std::move(fields));
                  }),
      handlers_(connection_.loop()) {}

rt::Task<Status> H2Service::Run() {
  Status status = co_await connection_.Run();
  CO_TRY_STATUS(co_await handlers_.Close());
  co_return status;
}

void H2Service::Drain() {
  draining_ = true;
  connection_.Drain();
  for (const Call* call : calls_) {
    if (call->kind == Kind::kStream) call->context->Cancel();
  }
}

void H2Service::Begin(std::shared_ptr<H2Stream> stream, H2Fields fields) {
  if (stream->over()) return;
  Result<GrpcRequest> request = ParseGrpcRequest(fields);
  if (!request.ok()) {
    stream->Finish(request.status());
    return;
  }
  // Resets make HTTP/2 forget a call before its handler has ended.
  if (handlers_.size() >= limits_.streams_max) {
    stream->Finish(Status(Reason::kTooManyRequests,
                          fmt::format("{} calls on one connection, the limit is {}",
                                      handlers_.size() + 1,
                                      limits_.streams_max)));
    return;
  }
  const std::optional<Duration> timeout = request->timeout;
  Kind kind = Kind::kUnary;
  Result<rt::Task<Status>> handler = Route(stream.get(), *std::move(request), &kind);
  if (!handler.ok()) {
    stream->Finish(handler.status());
    return;
  }
  if (stream->over()) return;  // what came with the head breaks the route's limits
  if (timeout.has_value()) stream->SetDeadline(*timeout);
  handlers_.Spawn("h2.call", Serve(stream, *std::move(handler), kind));
  if (kind == Kind::kStream) stream->BeginAnswer();
}

Result<rt::Task<Status>> H2Service::Route(H2Stream* stream, GrpcRequest request, Kind* kind) {
  const auto unary = routes_.unary.find(request.method);
  const auto streaming = routes_.streams.find(request.method);
  if (unary == routes_.unary.end() && streaming == routes_.streams.end()) {
    return Status(Reason::kMethodNotSupported, "no such method: " + Quote(request.method));
  }
  RpcCall call{.method = std::move(request.method),
               .metadata = std::move(request.metadata),
               .deadline = std::nullopt,
               .peer = connection_.peer()};
  if (request.timeout.has_value()) call.deadline = connection_.Now() + *request.timeout;
  if (unary != routes_.unary.end()) {
    stream->SetLimits(unary->second.limits);
    return ServeUnary(stream, &unary->second, std::move(call));
  }
  *kind = Kind::kStream;
  stream->SetLimits(streaming->second.limits);
  return ServeStream(stream, &streaming->second, std::move(call));
}

rt::Task<Status> H2Service::Serve(std::shared_ptr<H2Stream> stream,
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

rt::Task<Status> H2Service::ServeUnary(H2Stream* stream,
                                       const RpcRoutes::Unary* route,
                                       RpcCall call) {
  CO_TRY(std::string request, co_await ReadOnly(stream));
  CO_TRY(std::string answer, co_await route->handler(std::move(call), std::move(request)));
  const size_t size = answer.size();
  if (stream->TryWrite(std::move(answer))) co_return OkStatus();
  if (size > route->limits.message_bytes_max) {
    co_return Status(
        Reason::kRequestTooLarge,
        fmt::format(
            "an answer of {} bytes, the limit is {}", size, route->limits.message_bytes_max));
  }
  co_return Status(Reason::kTooManyRequests, "the client does not take its answers");
}

rt::Task<Status> H2Service::ServeStream(H2Stream* stream,
                                        const RpcRoutes::Stream* route,
                                        RpcCall call) {
  co_return co_await route->handler(std::move(call), *stream);
}

}  // namespace berth::net
