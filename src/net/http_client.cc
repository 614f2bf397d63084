// SPDX-License-Identifier: Apache-2.0
#include "net/http_client.h"

#include <fmt/core.h>
#include <openssl/rand.h>

#include <array>
#include <list>
#include <optional>
#include <utility>

#include "base/check.h"
#include "base/strings.h"
#include "net/http1_parser.h"
#include "net/http_writer.h"
#include "net/status_map.h"
#include "net/stream.h"
#include "net/tls_stream.h"
#include "net/url.h"
#include "net/websocket.h"
#include "rt/deadline.h"
#include "rt/gate.h"

namespace berth::net {
namespace {

// Holds a metav1.Status of ours.
constexpr size_t kErrorBodyShown = 4096;
// How long a server that refused our body in the middle has to say why.
constexpr Duration kEarlyAnswerTimeMax = Duration::Seconds(1);

// Shared by all connections of a thread: see Stream::Read.
thread_local std::array<char, 16 * 1024> scratch;

bool IsIdempotent(std::string_view method) {
  return method == "GET" || method == "HEAD" || method == "PUT" || method == "DELETE" ||
         method == "OPTIONS";
}

std::string NewWsKey() {
  std::array<unsigned char, 16> bytes{};
  CHECK(RAND_bytes(bytes.data(), bytes.size()) == 1);
  return Base64Encode({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

struct Connection {
  std::unique_ptr<Stream> stream;
  std::string inbox;  // read, not yet used
  rt::Gate::Permit permit;
  Time idle_since;
};
using ConnectionPtr = std::unique_ptr<Connection>;

// A request on its way: the connection it went over and the parser of its answer.
struct Exchange {
  ConnectionPtr connection;
  std::unique_ptr<Http1Parser> parser;
};

// Reads from the connection into its inbox. False at the orderly end.
rt::Task<Result<bool>> ReadMore(Connection* connection) {
  CO_TRY(const size_t n, co_await connection->stream->Read(scratch));
  connection->inbox.append(scratch.data(), n);
  co_return n > 0;
}

// Feeds the parser until the head (or all of the answer) is there.
enum class Until : uint8_t { kHead, kSomeBody, kEnd };
bool Reached(Http1Parser& parser, Until until) {
  if (parser.done()) return true;
  if (until == Until::kHead) return parser.head_done();
  return until == Until::kSomeBody && !parser.body().empty();
}

rt::Task<Status> Receive(Connection* connection, Http1Parser* parser, Until until) {
  while (!Reached(*parser, until)) {
    const Result<size_t> taken = parser->Feed(connection->inbox);
    if (!taken.ok()) {
      const Reason reason =
          parser->error_status() == 413 ? Reason::kRequestTooLarge : Reason::kUnavailable;
      co_return Status(reason, "answer: " + std::string(taken.status().message()));
    }
    connection->inbox.erase(0, *taken);
    if (*taken > 0) continue;
    CO_TRY(const bool more, co_await ReadMore(connection));
    if (!more) co_return parser->FinishAtEnd();
  }
  co_return OkStatus();
}

class BodyStream final : public HttpStream {
 public:
  explicit BodyStream(Exchange exchange) : exchange_(std::move(exchange)) {}
  int status() const override { return exchange_.parser->head().status; }
  const Headers& headers() const override { return exchange_.parser->head().headers; }
  rt::Task<Result<std::string>> Read() override {
    CO_TRY_STATUS(
        co_await Receive(exchange_.connection.get(), exchange_.parser.get(), Until::kSomeBody));
    co_return std::exchange(exchange_.parser->body(), std::string());
  }

 private:
  Exchange exchange_;
};

class ClientWebSocket final : public WebSocket {
 public:
  ClientWebSocket(ConnectionPtr connection, size_t message_max)
      : connection_(std::move(connection)),
        socket_(*connection_->stream,
                WsRole::kClient,
                message_max,
                std::exchange(connection_->inbox, std::string())) {}
  rt::Task<Result<Message>> Receive() override { return socket_.Receive(); }
  rt::Task<Status> Send(Message message) override { return socket_.Send(std::move(message)); }
  rt::Task<Status> Close(uint16_t code, std::string reason) override {
    return socket_.Close(code, std::move(reason));
  }

 private:
  ConnectionPtr connection_;
  StreamWebSocket socket_;
};

}  // namespace

class HttpClient::Body {
 public:
  Body(rt::AsioLoop& loop, HttpClientOptions options, Url url)
      : loop_(loop),
        options_(std::move(options)),
        url_(std::move(url)),
        gate_(options_.connections_max) {}

  rt::Task<Result<HttpClientResponse>> Send(HttpClientRequest request, SendOptions options) {
    const std::string what = Describe(request);
    Result<HttpClientResponse> response = co_await rt::WithDeadline(
        SendWithin(std::move(request), options.body_max), options.deadline);
    if (!response.ok()) co_return response.status().Wrap(what);
    co_return response;
  }

  rt::Task<Result<std::unique_ptr<HttpStream>>> Open(HttpClientRequest request, Duration deadline) {
    const std::string what = Describe(request);
    Result<Exchange> exchange =
        co_await rt::WithDeadline(Start(std::move(request), UINT64_MAX), deadline);
    if (!exchange.ok()) co_return exchange.status().Wrap(what);
    co_return std::unique_ptr<HttpStream>(std::make_unique<BodyStream>(*std::move(exchange)));
  }

  rt::Task<Result<std::unique_ptr<WebSocket>>> OpenWebSocket(HttpClientRequest request,
                                                             Duration deadline) {
    const std::string what = Describe(request);
    auto socket = co_await rt::WithDeadline(Upgrade(std::move(request)), deadline);
    if (!socket.ok()) co_return socket.status().Wrap(what);
    co_return socket;
  }

  rt::Task<Status> Reach() {
    if (ConnectionPtr kept = TakeIdle()) {
      idle_.push_back(std::move(kept));  // as old as it is
      co_return OkStatus();
    }
    Result<ConnectionPtr> fresh = co_await Connect();
    if (!fresh.ok()) co_return fresh.status().Wrap(ServerName());
    Keep(*std::move(fresh));
    co_return OkStatus();
  }

  void SetTls(std::shared_ptr<const TlsContext> tls) {
    options_.tls = std::move(tls);
    idle_.clear();
  }
  void DropIdle() { idle_.clear(); }

 private:
  std::string Describe(const HttpClientRequest& request) const {
    return fmt::format("{} {}{}", request.method, ServerName(), SplitTarget(request.target).path);
  }

  std::string ServerName() const {
    return url_.scheme == "unix" ? options_.url : url_.scheme + "://" + url_.authority();
  }

  rt::Task<Result<HttpClientResponse>> SendWithin(HttpClientRequest request, uint64_t body_max) {
    CO_TRY(Exchange exchange, co_await Start(std::move(request), body_max));
    Http1Parser& parser = *exchange.parser;
    CO_TRY_STATUS(co_await Receive(exchange.connection.get(), &parser, Until::kEnd));
    HttpHead& head = parser.head();
    HttpClientResponse response{.status = head.status,
                                .headers = std::move(head.headers),
                                .body = std::move(parser.body())};
    if (head.keep_alive) Keep(std::move(exchange.connection));
    co_return response;
  }

  // Sends the request, on a kept connection if there is one, and reads the head of the answer.
  rt::Task<Result<Exchange>> Start(HttpClientRequest request, uint64_t body_max) {
    if (ConnectionPtr kept = TakeIdle()) {
      Result<Exchange> exchange = co_await Talk(std::move(kept), &request, body_max);
      // The server may have closed it in the very moment: that is no answer.
      const bool stale = exchange.status().Is(Reason::kUnavailable);
      if (!stale || !IsIdempotent(request.method)) co_return exchange;
    }
    CO_TRY(ConnectionPtr fresh, co_await Connect());
    co_return co_await Talk(std::move(fresh), &request, body_max);
  }

  rt::Task<Result<Exchange>> Talk(ConnectionPtr connection,
                                  const HttpClientRequest* request,
                                  uint64_t body_max) {
    const Status written = co_await WriteRequest(connection->stream.get(), request);
    if (written.Is(Reason::kCancelled) || written.Is(Reason::kTimeout)) co_return written;
    if (!written.ok()) {
      connection->stream->SetReadDeadline(loop_.Now() + kEarlyAnswerTimeMax);
    }
    const HttpLimits limits{.body_bytes = body_max};
    const auto kind = request->method == "HEAD" ? Http1Parser::Kind::kResponseWithoutBody
                                                : Http1Parser::Kind::kResponse;
    std::unique_ptr<Http1Parser> parser;
    do {  // past "100 Continue" and its like
      parser = std::make_unique<Http1Parser>(kind, limits);
      const Status received = co_await Receive(connection.get(), parser.get(), Until::kHead);
      if (!received.ok()) co_return written.ok() ? received : written;
    } while (parser->head().status / 100 == 1 && parser->head().status != 101);
    connection->stream->SetReadDeadline(std::nullopt);
    if (!written.ok()) parser->head().keep_alive = false;
    co_return Exchange{.connection = std::move(connection), .parser = std::move(parser)};
  }

  rt::Task<Status> WriteRequest(Stream* stream, const HttpClientRequest* request) {
    RequestHead head{.method = request->method,
                     .target = request->target,
                     .host = host_,
                     .headers = &request->headers};
    size_t length = 0;
    for (const Bytes& part : request->body) length += part.size();
    const bool has_length = length > 0 || request->method == "POST" || request->method == "PUT" ||
                            request->method == "PATCH";
    if (has_length) head.length = length;
    const std::string text = FormatRequestHead(head);
    std::vector<std::string_view> views;
    views.reserve(request->body.size() + 1);
    views.push_back(text);
    for (const Bytes& part : request->body) views.push_back(part.view());
    co_return co_await stream->Write(views);
  }

  rt::Task<Result<std::unique_ptr<WebSocket>>> Upgrade(HttpClientRequest request) {
    const std::string key = NewWsKey();
    request.headers.Set("Upgrade", "websocket");
    request.headers.Set("Connection", "Upgrade");
    request.headers.Set("Sec-WebSocket-Version", "13");
    request.headers.Set("Sec-WebSocket-Key", key);
    CO_TRY(Exchange exchange, co_await Start(std::move(request), kHeaderBytesMax));
    HttpHead& head = exchange.parser->head();
    if (head.status != 101) {
      const Status rest =
          co_await Receive(exchange.connection.get(), exchange.parser.get(), Until::kEnd);
      if (rest.Is(Reason::kCancelled)) co_return rest;
      const Reason reason = ReasonOfHttpStatus(head.status);
      co_return Status(
          reason == Reason::kOk ? Reason::kUnavailable : reason,
          fmt::format("the server answered {}: {}",
                      head.status,
                      Printable(Trim(exchange.parser->body().substr(0, kErrorBodyShown)))));
    }
    if (head.headers.Get("Sec-WebSocket-Accept") != WsAccept(key)) {
      co_return Unavailable("the server's Sec-WebSocket-Accept does not match");
    }
    co_return std::unique_ptr<WebSocket>(std::make_unique<ClientWebSocket>(
        std::move(exchange.connection), options_.websocket_message_max));
  }

  rt::Task<Result<ConnectionPtr>> Connect() {
    CO_TRY(rt::Gate::Permit permit, co_await gate_.Enter());
    CO_TRY(std::unique_ptr<Stream> stream,
           co_await rt::WithDeadline(OpenStream(), options_.connect_timeout));
    stream->SetWriteTimeout(options_.write_timeout);
    co_return std::make_unique<Connection>(
        Connection{.stream = std::move(stream), .permit = std::move(permit)});
  }

  rt::Task<Result<std::unique_ptr<Stream>>> OpenStream() {
    if (url_.scheme == "unix") {
      CO_TRY(const int fd, co_await ConnectUnix(&loop_, url_.path));
      co_return std::unique_ptr<Stream>(std::make_unique<PlainStream>(loop_, fd));
    }
    CO_TRY(const int fd,
           co_await ConnectAllowed(&loop_, url_.host, url_.port, options_.allows_address));
    if (url_.scheme == "http") {
      co_return std::unique_ptr<Stream>(std::make_unique<PlainStream>(loop_, fd));
    }
    const std::string name = options_.server_name.empty() ? url_.host : options_.server_name;
    co_return co_await TlsStream::Connect(&loop_, fd, options_.tls, name, options_.connect_timeout);
  }

  ConnectionPtr TakeIdle() {
    while (!idle_.empty()) {
      ConnectionPtr connection = std::move(idle_.back());  // the youngest: the surest to live
      idle_.pop_back();
      if (loop_.Now() - connection->idle_since < options_.idle_timeout &&
          connection->stream->IsQuiet()) {
        return connection;
      }
    }
    return nullptr;
  }

  void Keep(ConnectionPtr connection) {
    if (!connection->inbox.empty() || options_.idle_max == 0) return;
    connection->idle_since = loop_.Now();
    if (idle_.size() >= options_.idle_max) idle_.pop_front();
    idle_.push_back(std::move(connection));
  }

  rt::AsioLoop& loop_;
  HttpClientOptions options_;
  const Url url_;
  const std::string host_ = url_.scheme == "unix" ? "localhost" : url_.authority();
  rt::Gate gate_;
  std::list<ConnectionPtr> idle_;  // oldest first; holds permits, so it goes before the gate
};

HttpClient::HttpClient(std::unique_ptr<Body> body) : body_(std::move(body)) {}
HttpClient::~HttpClient() = default;

Result<std::unique_ptr<HttpClient>> HttpClient::New(rt::AsioLoop& loop, HttpClientOptions options) {
  TRY(Url url, ParseUrl(options.url));
  if (url.scheme == "https" && options.tls == nullptr) {
    return BadRequest("url " + Quote(options.url) + ": https needs a TLS context");
  }
  auto body = std::make_unique<Body>(loop, std::move(options), std::move(url));
  return std::unique_ptr<HttpClient>(new HttpClient(std::move(body)));
}

rt::Task<Result<HttpClientResponse>> HttpClient::Send(HttpClientRequest request,
                                                      SendOptions options) {
  return body_->Send(std::move(request), options);
}
rt::Task<Result<std::unique_ptr<HttpStream>>> HttpClient::Open(HttpClientRequest request,
                                                               Duration deadline) {
  return body_->Open(std::move(request), deadline);
}
rt::Task<Result<std::unique_ptr<WebSocket>>> HttpClient::OpenWebSocket(HttpClientRequest request,
                                                                       Duration deadline) {
  return body_->OpenWebSocket(std::move(request), deadline);
}
rt::Task<Status> HttpClient::Reach() { return body_->Reach(); }
void HttpClient::SetTls(std::shared_ptr<const TlsContext> tls) { body_->SetTls(std::move(tls)); }
void HttpClient::DropIdle() { body_->DropIdle(); }

}  // namespace berth::net
