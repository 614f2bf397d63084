// SPDX-License-Identifier: Apache-2.0
#include "net/http_connection.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/strings.h"
#include "net/http_writer.h"
#include "net/status_map.h"
#include "net/websocket.h"

namespace berth::net {
namespace {

// simdjson reads past the end of its input.
constexpr size_t kBodyPadding = 64;

// Shared by all connections of a thread: see Stream::Read.
thread_local std::array<char, 16 * 1024> scratch;

bool HasNoBody(int status) { return status < 200 || status == 204 || status == 304; }

bool WantsWebSocket(const HttpHead& head) {
  return head.method == "GET" && HasToken(head.headers.Get("Upgrade"), "websocket") &&
         HasToken(head.headers.Get("Connection"), "upgrade") &&
         head.headers.Get("Sec-WebSocket-Version") == "13" &&
         IsWsKey(head.headers.Get("Sec-WebSocket-Key"));
}

HttpResponse PlainRefusal(std::string_view message) {
  HttpResponse response;
  response.headers.Set("Content-Type", "text/plain; charset=utf-8");
  response.body.push_back(Bytes::Concat({message, "\n"}));
  return response;
}

}  // namespace

// The body of a streaming answer: one chunk per Write.
class HttpConnection::ChunkWriter final : public BodyWriter {
 public:
  ChunkWriter(HttpConnection& connection, Framing framing)
      : connection_(connection), framing_(framing) {}

  rt::Task<Status> Write(std::vector<Bytes> parts) override {
    if (peer_gone()) co_return Unavailable("the client is gone");
    size_t total = 0;
    for (const Bytes& part : parts) total += part.size();
    if (total == 0) co_return OkStatus();  // an empty chunk would end the body
    const std::string head =
        framing_ == Framing::kChunked ? fmt::format("{:x}\r\n", total) : std::string();
    std::vector<std::string_view> views;
    views.reserve(parts.size() + 2);
    views.push_back(head);
    for (const Bytes& part : parts) views.push_back(part.view());
    if (framing_ == Framing::kChunked) views.emplace_back("\r\n");
    co_return co_await connection_.stream_.Write(views);
  }
  bool peer_gone() const override { return connection_.peer_gone_; }

 private:
  HttpConnection& connection_;
  const Framing framing_;
};

HttpConnection::HttpConnection(HttpShared& shared, Stream& stream)
    : shared_(shared),
      stream_(stream),
      peer_{.address = stream.peer_address(), .certificate_der = stream.peer_certificate_der()} {
  stream_.SetWriteTimeout(shared.options.write_timeout);
}

rt::Task<Status> HttpConnection::Run() {
  for (;;) {
    Result<bool> more = co_await WaitForRequest();
    if (more.ok() && *more) more = co_await ServeOne();
    if (!more.ok()) {
      LOG_DEBUG("http connection of {}: {}", peer_.address, more.status().ToString());
      co_return OkStatus();
    }
    if (!*more) break;
  }
  stream_.Shutdown();
  co_return OkStatus();
}

// Until the first byte of a request. False if none comes.
rt::Task<Result<bool>> HttpConnection::WaitForRequest() {
  state_ = State::kIdle;
  if (shared_.draining) co_return false;
  if (!inbox_.empty()) co_return true;
  inbox_.shrink_to_fit();
  stream_.SetReadDeadline(Soon(shared_.options.idle_timeout));
  const Result<bool> first = co_await ReadMore();
  if (first.status().Is(Reason::kTimeout)) co_return false;
  co_return first;
}

rt::Task<Result<bool>> HttpConnection::ServeOne() {
  state_ = State::kBusy;
  Http1Parser parser(Http1Parser::Kind::kRequest, shared_.options.limits);
  CO_TRY(const bool has_head, co_await ReadHead(&parser));
  if (!has_head) co_return false;
  HttpRequest request;
  CO_TRY(const bool has_body, co_await ReadBody(&parser, &request.body));
  if (!has_body) co_return false;
  HttpHead& head = parser.head();
  Asked asked{
      .is_head = head.method == "HEAD", .is_http10 = head.is_http10, .keep_alive = head.keep_alive};
  if (WantsWebSocket(head)) asked.websocket_key = head.headers.Get("Sec-WebSocket-Key");
  request.method = std::move(head.method);
  request.target = std::move(head.target);
  request.headers = std::move(head.headers);
  request.peer = peer_;
  co_return co_await Answer(std::move(asked), std::move(request));
}

// Appends to the inbox. False at the orderly end.
rt::Task<Result<bool>> HttpConnection::ReadMore() {
  CO_TRY(const size_t n, co_await stream_.Read(scratch));
  inbox_.append(scratch.data(), n);
  co_return n > 0;
}

rt::Task<Result<bool>> HttpConnection::ReadHead(Http1Parser* parser) {
  stream_.SetReadDeadline(Soon(shared_.options.header_timeout));
  for (;;) {
    const Result<size_t> taken = parser->Feed(inbox_);
    if (!taken.ok()) {
      co_return co_await Refuse(parser->error_status(), std::string(taken.status().message()));
    }
    inbox_.erase(0, *taken);
    if (parser->head_done()) co_return true;
    const Result<bool> more = co_await ReadMore();
    if (more.status().Is(Reason::kTimeout)) {
      co_return co_await Refuse(
          408,
          fmt::format("no whole head within {}", FormatDuration(shared_.options.header_timeout)));
    }
    if (!more.ok()) co_return more.status();
    if (!*more) co_return false;
  }
}

rt::Task<Result<bool>> HttpConnection::ReadBody(Http1Parser* parser, std::string* body) {
  const HttpHead& head = parser->head();
  const bool has_body = head.chunked || head.content_length.value_or(0) > 0;
  if (const std::string_view expect = head.headers.Get("Expect"); !expect.empty()) {
    if (!EqualsIgnoreCase(expect, "100-continue")) {
      co_return co_await Refuse(417, fmt::format("Expect {} cannot be met", Quote(expect)));
    }
    // A client that did not wait gets no reminder.
    if (has_body && inbox_.empty()) {
      CO_TRY_STATUS(co_await WriteText("HTTP/1.1 100 Continue\r\n\r\n"));
    }
  }
  if (!has_body) co_return true;
  stream_.SetReadDeadline(Soon(shared_.options.body_timeout));
  BodyBudget::Body counted(shared_.bodies, [this] { stream_.SetReadDeadline(Soon(Duration())); });
  rt::Task<Result<bool>> reading = head.chunked
                                       ? ReadChunkedBody(parser, body, &counted)
                                       : ReadSizedBody(*head.content_length, body, &counted);
  const Result<bool> read = co_await std::move(reading);
  if (!read.status().Is(Reason::kTimeout)) co_return read;
  *body = std::string();
  if (counted.is_given_up()) {
    co_return co_await Refuse(503,
                              "too many bytes of requests are on their way, and this one took "
                              "longest: send it again");
  }
  co_return co_await Refuse(
      408, fmt::format("no whole body within {}", FormatDuration(shared_.options.body_timeout)));
}

rt::Task<Result<bool>> HttpConnection::ReadSizedBody(size_t size,
                                                     std::string* body,
                                                     BodyBudget::Body* counted) {
  const size_t have = std::min(size, inbox_.size());
  body->reserve(size + kBodyPadding);
  body->resize_and_overwrite(size, [](char*, size_t n) { return n; });
  std::memcpy(body->data(), inbox_.data(), have);
  inbox_.erase(0, have);
  // The rest goes from TLS to its place, without a copy in between. Memory that nothing has come
  // for is not touched, so it takes none.
  for (size_t at = have; at < size;) {
    if (counted->is_given_up()) co_return Timeout("given up");
    const std::span<char> rest(body->data() + at, size - at);
    CO_TRY(const size_t n, co_await stream_.Read(rest));
    if (n == 0) co_return false;
    at += n;
    counted->Grow(at);
  }
  co_return true;
}

rt::Task<Result<bool>> HttpConnection::ReadChunkedBody(Http1Parser* parser,
                                                       std::string* body,
                                                       BodyBudget::Body* counted) {
  while (!parser->done()) {
    if (counted->is_given_up()) co_return Timeout("given up");
    const Result<size_t> taken = parser->Feed(inbox_);
    if (!taken.ok()) {
      co_return co_await Refuse(parser->error_status(), std::string(taken.status().message()));
    }
    inbox_.erase(0, *taken);
    counted->Grow(parser->body().size());
    if (*taken > 0 || parser->done()) continue;
    CO_TRY(const bool more, co_await ReadMore());
    if (!more) co_return false;
  }
  *body = std::move(parser->body());
  body->reserve(body->size() + kBodyPadding);
  co_return true;
}

rt::Task<Result<bool>> HttpConnection::Answer(Asked asked, HttpRequest request) {
  stream_.SetReadDeadline(std::nullopt);
  rt::ChildContext child(co_await rt::CurrentContext());
  stream_.WatchPeer([this, &child] {
    peer_gone_ = true;
    child.Cancel();
  });
  HttpResponse response;
  {
    // A watch lasts for hours: the handler's frame, with the request in it, goes before.
    rt::Task<HttpResponse> handling = shared_.handler(std::move(request));
    response = co_await handling.In(child.context());
  }
  Result<bool> keep = false;
  if (!peer_gone_) {
    if (response.websocket) {
      keep = co_await ServeWebSocket(&asked, &response, &child);
    } else if (response.stream) {
      keep = co_await WriteStream(&asked, &response, &child);
    } else {
      keep = co_await WriteWhole(&asked, &response);
    }
  }
  stream_.WatchPeer(nullptr);
  co_return keep;
}

bool HttpConnection::KeepAlive(const Asked& asked) const {
  return asked.keep_alive && !shared_.draining;
}

rt::Task<Result<bool>> HttpConnection::WriteWhole(const Asked* asked,
                                                  const HttpResponse* response) {
  const bool keep_alive = KeepAlive(*asked);
  ResponseHead out{.status = response->status,
                   .headers = &response->headers,
                   .framing = HasNoBody(response->status) ? Framing::kNone : Framing::kLength,
                   .date = shared_.date(),
                   .keep_alive = keep_alive};
  for (const Bytes& part : response->body) out.length += part.size();
  const std::string text = FormatResponseHead(out);
  std::vector<std::string_view> views;
  views.reserve(response->body.size() + 1);
  views.push_back(text);
  if (!asked->is_head && out.framing == Framing::kLength) {
    for (const Bytes& part : response->body) views.push_back(part.view());
  }
  CO_TRY_STATUS(co_await stream_.Write(views));
  co_return keep_alive;
}

rt::Task<Result<bool>> HttpConnection::WriteStream(const Asked* asked,
                                                   const HttpResponse* response,
                                                   rt::ChildContext* child) {
  const Framing framing = asked->is_http10 ? Framing::kUntilEnd : Framing::kChunked;
  const bool keep_alive = KeepAlive(*asked) && framing == Framing::kChunked;
  const ResponseHead out{.status = response->status,
                         .headers = &response->headers,
                         .framing = framing,
                         .date = shared_.date(),
                         .keep_alive = keep_alive};
  CO_TRY_STATUS(co_await WriteText(FormatResponseHead(out)));
  if (asked->is_head) co_return keep_alive;
  state_ = State::kStreaming;
  ChunkWriter writer(*this, framing);
  rt::Task<Status> streaming = response->stream(writer);
  const Status ended = co_await streaming.In(child->context());
  // Without its last chunk the answer is visibly cut.
  if (!ended.ok()) co_return ended.Wrap("streaming answer");
  if (framing == Framing::kChunked) CO_TRY_STATUS(co_await WriteText("0\r\n\r\n"));
  co_return keep_alive;
}

rt::Task<Result<bool>> HttpConnection::ServeWebSocket(const Asked* asked,
                                                      const HttpResponse* response,
                                                      rt::ChildContext* child) {
  if (asked->websocket_key.empty())
    co_return co_await Refuse(426, "this address wants a WebSocket");
  Headers headers = response->headers;
  headers.Set("Upgrade", "websocket");
  headers.Set("Connection", "Upgrade");
  headers.Set("Sec-WebSocket-Accept", WsAccept(asked->websocket_key));
  const ResponseHead out{
      .status = 101, .headers = &headers, .framing = Framing::kNone, .date = shared_.date()};
  CO_TRY_STATUS(co_await WriteText(FormatResponseHead(out)));
  state_ = State::kStreaming;
  StreamWebSocket socket(stream_,
                         WsRole::kServer,
                         shared_.options.websocket_message_max,
                         std::exchange(inbox_, std::string()));
  rt::Task<Status> talking = response->websocket(socket);
  const Status ended = co_await talking.In(child->context());
  if (peer_gone_) co_return false;
  uint16_t code = kWsNormal;
  if (ended.Is(Reason::kCancelled)) {
    code = kWsGoingAway;
  } else if (!ended.ok() && !ended.Is(Reason::kUnavailable)) {
    code = kWsInternalError;
  }
  CO_TRY_STATUS(co_await socket.Close(code, std::string(ended.message())));
  co_return false;
}

rt::Task<Result<bool>> HttpConnection::Refuse(int status, std::string message) {
  HttpResponse response = shared_.options.refusal
                              ? shared_.options.refusal(status, Printable(message))
                              : PlainRefusal(Printable(message));
  if (status == 503) response.headers.Set("Retry-After", "1");
  std::string body;
  for (const Bytes& part : response.body) body += part.view();
  const std::string head = FormatResponseHead({.status = status,
                                               .headers = &response.headers,
                                               .framing = Framing::kLength,
                                               .length = body.size(),
                                               .date = shared_.date(),
                                               .keep_alive = false});
  CO_TRY_STATUS(co_await WriteText(head + body));
  // The peer may be in the middle of its request: let the answer arrive before the end.
  CO_TRY_STATUS(co_await stream_.Linger());
  co_return BadRequest(fmt::format("refused with {}: {}", status, message));
}

rt::Task<Status> HttpConnection::WriteText(std::string text) {
  const std::array<std::string_view, 1> parts = {text};
  co_return co_await stream_.Write(parts);
}

}  // namespace berth::net
