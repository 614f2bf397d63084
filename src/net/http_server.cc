// SPDX-License-Identifier: Apache-2.0
#include "net/http_server.h"

#include <unistd.h>

#include <list>
#include <utility>

#include "base/check.h"
#include "base/log.h"
#include "base/strings.h"
#include "net/acceptor.h"
#include "net/body_budget.h"
#include "net/census.h"
#include "net/handshake_lane.h"
#include "net/http_connection.h"
#include "net/http_writer.h"
#include "net/owned_fd.h"
#include "net/socket.h"
#include "net/stream.h"
#include "net/tls_stream.h"
#include "rt/child_context.h"
#include "rt/scope.h"

namespace berth::net {
namespace {

// Connections that were given up and have not ended yet, beyond the limit of all.
constexpr size_t kEndingMax = 64;

}  // namespace

class HttpServer::Body {
 public:
  Body(rt::AsioLoop& loop, HttpServerOptions options, HttpHandler handler, int listener)
      : loop_(loop),
        options_(std::move(options)),
        handler_(std::move(handler)),
        bodies_(options_.body_bytes_max),
        shared_{.options = options_,
                .handler = handler_,
                .bodies = bodies_,
                .date = [this] { return Date(); }},
        lane_(loop),
        connections_(loop),
        acceptor_(loop, listener, [this](int fd) { Take(fd); }) {}
  ~Body() { CHECK(stopped_) << "an HTTP server is destroyed before Stop() was awaited"; }
  Body(const Body&) = delete;
  Body& operator=(const Body&) = delete;

  const std::string& address() const { return acceptor_.address(); }
  uint16_t port() const { return acceptor_.port(); }
  size_t connections() const { return connections_.size(); }
  void SetTls(std::shared_ptr<const TlsContext> tls) { options_.tls = std::move(tls); }

  rt::Task<Status> Stop() {
    if (std::exchange(stopped_, true)) co_return OkStatus();
    shared_.draining = true;
    CO_TRY_STATUS(co_await acceptor_.Stop());
    if (options_.h2 != nullptr) options_.h2->Drain();
    for (Live* live : live_) {
      if (live->is_h2) continue;
      if (live->connection == nullptr || !live->connection->busy()) live->context->Cancel();
    }
    const rt::TimerId timer =
        loop_.After("net.drain", options_.drain_timeout, [this] { connections_.Cancel(); });
    CO_TRY_STATUS(co_await connections_.Join());
    loop_.CancelTimer(timer);
    co_return OkStatus();
  }

 private:
  // A connection in progress, as the drain sees it.
  struct Live {
    rt::ChildContext* context = nullptr;
    HttpConnection* connection = nullptr;  // null while the handshake lasts, and of h2
    bool is_h2 = false;
    bool is_given_up = false;
  };

  static void GiveUp(Live& live) {
    live.is_given_up = true;
    live.context->Cancel();
  }

  // Of those that do nothing for anybody; the list is in the order of arrival. False: none is idle.
  bool GiveUpOldestIdle() {
    for (Live* live : live_) {
      if (live->is_given_up || live->connection == nullptr || !live->connection->idle()) continue;
      GiveUp(*live);
      return true;
    }
    return false;
  }
  void GiveUpOldestHandshake() {
    for (Live* live : live_) {
      if (live->is_given_up || live->is_h2 || live->connection != nullptr) continue;
      return GiveUp(*live);
    }
  }

  void Take(int fd) {
    // Those given up are still counted until they have ended, a turn or two later.
    const size_t count = connections_.size();
    const bool has_room = count < options_.connections_max ||
                          (count < options_.connections_max + kEndingMax && GiveUpOldestIdle());
    if (handshaking_ >= options_.handshakes_max) GiveUpOldestHandshake();
    if (!has_room) {
      LOG_DEBUG("{}: refused a connection, the limit is {}",
                acceptor_.address(),
                options_.connections_max);
      ::close(fd);
      return;
    }
    ConfigureTcp(fd);
    connections_.Spawn("net.http", Serve(fd));
  }

  rt::Task<Status> Serve(int fd) {
    OwnedFd owned(fd);
    const std::unique_ptr<Census::Entry> of_address =
        by_address_.Add(HostOf(PeerAddress(owned.get())), options_.connections_per_address_max);
    if (of_address == nullptr) co_return OkStatus();
    rt::ChildContext child(co_await rt::CurrentContext());
    Live live{.context = &child};
    const auto place = live_.insert(live_.end(), &live);
    rt::Task<Status> serving = ServeIn(&live, &owned);
    const Status status = co_await serving.In(child.context());
    live_.erase(place);
    if (!status.ok()) LOG_DEBUG("{}: {}", acceptor_.address(), status.ToString());
    co_return OkStatus();  // what a peer does is no failure of the server
  }

  rt::Task<Status> ServeIn(Live* live, OwnedFd* fd) {
    CO_TRY(std::unique_ptr<Stream> stream, co_await OpenStream(fd));
    if (options_.h2 != nullptr && stream->alpn() == "h2") {
      live->is_h2 = true;
      co_return co_await options_.h2->Serve(std::move(stream));
    }
    HttpConnection connection(shared_, *stream);
    live->connection = &connection;
    const Status status = co_await connection.Run();
    live->connection = nullptr;
    co_return status;
  }

  // Out of line: its frame is for the handshake only.
  [[gnu::noinline]] rt::Task<Result<std::unique_ptr<Stream>>> OpenStream(OwnedFd* fd) {
    if (options_.tls == nullptr) {
      co_return std::unique_ptr<Stream>(std::make_unique<PlainStream>(loop_, fd->Release()));
    }
    ++handshaking_;
    auto stream = co_await TlsStream::Accept(
        &loop_, fd->Release(), options_.tls, options_.handshake_timeout, &lane_);
    --handshaking_;
    co_return stream;
  }

  std::string_view Date() {
    const WallTime now = loop_.WallNow();
    if (now.seconds() != date_second_) {
      date_second_ = now.seconds();
      date_ = FormatHttpDate(now);
    }
    return date_;
  }

  rt::AsioLoop& loop_;
  HttpServerOptions options_;
  const HttpHandler handler_;
  BodyBudget bodies_;
  HttpShared shared_;
  std::string date_;
  int64_t date_second_ = -1;
  HandshakeLane lane_;
  size_t handshaking_ = 0;
  Census by_address_;
  bool stopped_ = false;
  std::list<Live*> live_;
  rt::TaskScope connections_;
  Acceptor acceptor_;
};

HttpServer::HttpServer(std::unique_ptr<Body> body) : body_(std::move(body)) {}
HttpServer::~HttpServer() = default;

Result<std::unique_ptr<HttpServer>> HttpServer::Start(rt::AsioLoop& loop,
                                                      HttpServerOptions options,
                                                      HttpHandler handler) {
  loop.Assert();
  TRY(const int fd, ListenTcp(options.address, options.port));
  auto body = std::make_unique<Body>(loop, std::move(options), std::move(handler), fd);
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(body)));
}

const std::string& HttpServer::address() const { return body_->address(); }
uint16_t HttpServer::port() const { return body_->port(); }
size_t HttpServer::connections() const { return body_->connections(); }
void HttpServer::SetTls(std::shared_ptr<const TlsContext> tls) { body_->SetTls(std::move(tls)); }
rt::Task<Status> HttpServer::Stop() { return body_->Stop(); }

}  // namespace berth::net
