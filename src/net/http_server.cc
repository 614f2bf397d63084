// SPDX-License-Identifier: Apache-2.0
#include "net/http_server.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <list>
#include <system_error>
#include <utility>

#include "base/check.h"
#include "base/log.h"
#include "base/strings.h"
#include "net/http_connection.h"
#include "net/http_writer.h"
#include "net/socket.h"
#include "net/stream.h"
#include "net/tls_stream.h"
#include "net/url.h"
#include "rt/child_context.h"
#include "rt/gate.h"
#include "rt/scope.h"
#include "rt/sleep.h"

namespace berth::net {
namespace {

// Connections taken before others have a turn.
constexpr int kAcceptBatch = 64;
constexpr Duration kOutOfDescriptorsPause = Duration::Millis(100);

// Closes a descriptor that nobody has taken over.
class OwnedFd {
 public:
  explicit OwnedFd(int fd) : fd_(fd) {}
  ~OwnedFd() {
    if (fd_ >= 0) ::close(fd_);
  }
  OwnedFd(const OwnedFd&) = delete;
  OwnedFd& operator=(const OwnedFd&) = delete;
  int Release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

bool IsOutOfResources(int error) {
  return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

}  // namespace

class HttpServer::Body {
 public:
  Body(rt::AsioLoop& loop, HttpServerOptions options, HttpHandler handler, int listener)
      : loop_(loop),
        options_(std::move(options)),
        handler_(std::move(handler)),
        shared_{.options = options_, .handler = handler_, .date = [this] { return Date(); }},
        handshakes_(options_.handshakes_max),
        listener_(std::make_unique<Socket>(loop, listener)),
        accepting_(loop),
        connections_(loop) {
    address_ = LocalAddress(listener);
    const auto where = ParseHostPort(address_, 0);
    port_ = where.ok() ? where->port : 0;
    accepting_.Spawn("net.accept", AcceptAll());
  }
  ~Body() { CHECK(stopped_) << "an HTTP server is destroyed before Stop() was awaited"; }
  Body(const Body&) = delete;
  Body& operator=(const Body&) = delete;

  const std::string& address() const { return address_; }
  uint16_t port() const { return port_; }
  size_t connections() const { return connections_.size(); }
  void SetTls(std::shared_ptr<const TlsContext> tls) { options_.tls = std::move(tls); }

  rt::Task<Status> Stop() {
    if (std::exchange(stopped_, true)) co_return OkStatus();
    shared_.draining = true;
    CO_TRY_STATUS(co_await accepting_.Close());
    listener_.reset();
    for (Live* live : live_) {
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
    HttpConnection* connection = nullptr;  // null while the handshake lasts
  };

  rt::Task<Status> AcceptAll() {
    for (;;) {
      CO_TRY_STATUS(co_await listener_->Readable());
      for (int taken = 0; taken < kAcceptBatch; ++taken) {
        const int fd = ::accept4(listener_->fd(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0) {
          Take(fd);
          continue;
        }
        if (errno == EAGAIN) break;
        if (IsOutOfResources(errno)) {
          LOG_WARNING("{}: accept: {}", address_, std::generic_category().message(errno));
          CO_TRY_STATUS(co_await rt::Sleep(kOutOfDescriptorsPause));
          break;
        }
        // Anything else is about that one connection, which was gone before it was taken.
      }
    }
  }

  void Take(int fd) {
    if (connections_.size() >= options_.connections_max) {
      LOG_DEBUG("{}: refused a connection, the limit is {}", address_, options_.connections_max);
      ::close(fd);
      return;
    }
    ConfigureTcp(fd);
    connections_.Spawn("net.http", Serve(fd));
  }

  rt::Task<Status> Serve(int fd) {
    OwnedFd owned(fd);
    rt::ChildContext child(co_await rt::CurrentContext());
    Live live{.context = &child};
    const auto place = live_.insert(live_.end(), &live);
    rt::Task<Status> serving = ServeIn(&live, &owned);
    const Status status = co_await serving.In(child.context());
    live_.erase(place);
    if (!status.ok()) LOG_DEBUG("{}: {}", address_, status.ToString());
    co_return OkStatus();  // what a peer does is no failure of the server
  }

  rt::Task<Status> ServeIn(Live* live, OwnedFd* fd) {
    CO_TRY(const std::unique_ptr<Stream> stream, co_await OpenStream(fd));
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
    CO_TRY(const rt::Gate::Permit permit, co_await handshakes_.Enter());
    co_return co_await TlsStream::Accept(
        &loop_, fd->Release(), options_.tls, options_.handshake_timeout);
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
  HttpShared shared_;
  std::string address_;
  uint16_t port_ = 0;
  std::string date_;
  int64_t date_second_ = -1;
  rt::Gate handshakes_;
  std::unique_ptr<Socket> listener_;
  bool stopped_ = false;
  std::list<Live*> live_;
  rt::TaskScope accepting_;
  rt::TaskScope connections_;
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
