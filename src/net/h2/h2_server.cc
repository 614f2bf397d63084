// SPDX-License-Identifier: Apache-2.0
#include "net/h2/h2_server.h"

#include <unistd.h>

#include <utility>

#include "base/check.h"
#include "base/log.h"
#include "net/census.h"
#include "net/crowd.h"
#include "net/h2/h2_sessions.h"
#include "net/socket.h"
#include "net/stream.h"
#include "net/tls_stream.h"
#include "rt/child_context.h"
#include "rt/scope.h"

namespace berth::net {
namespace {

constexpr std::string_view kAlpn = "h2";
// Connections that were given up and have not ended yet, beyond the limit of all.
constexpr size_t kEndingMax = 64;
// From the end of a handshake to the first call, of a host that means it.
constexpr Duration kFirstWordMax = Duration::Seconds(10);

}  // namespace

Result<std::shared_ptr<const TlsContext>> NewH2ServerTls(TlsServerOptions options) {
  options.alpn = {std::string(kAlpn)};
  return TlsContext::NewServer(options);
}

class H2Server::Body {
 public:
  Body(rt::AsioLoop& loop, H2ServerOptions options, RpcRoutes routes, int listener)
      : loop_(loop),
        options_(std::move(options)),
        lane_(loop),
        sessions_({.limits = options_.limits,
                   .connections_max = options_.connections_max,
                   .connections_per_identity_max = options_.connections_per_identity_max,
                   .anonymous = options_.anonymous},
                  std::move(routes)),
        connections_(loop),
        acceptor_(loop, listener, [this](int fd) { Take(fd); }, options_.doors) {}
  ~Body() { CHECK(stopped_) << "an H2Server is destroyed before Stop() was awaited"; }
  Body(const Body&) = delete;
  Body& operator=(const Body&) = delete;

  const std::string& address() const { return acceptor_.address(); }
  uint16_t port() const { return acceptor_.port(); }
  size_t connections() const { return connections_.size(); }
  void SetTls(std::shared_ptr<const TlsContext> tls) { options_.tls = std::move(tls); }
  void Open() { acceptor_.Open(); }

  rt::Task<Status> Stop() {
    if (std::exchange(stopped_, true)) co_return OkStatus();
    CO_TRY_STATUS(co_await acceptor_.Stop());
    while (GiveUpHandshake()) continue;
    sessions_.Drain();
    const rt::TimerId timer =
        loop_.After("h2.drain", options_.drain_timeout, [this] { connections_.Cancel(); });
    CO_TRY_STATUS(co_await connections_.Join());
    loop_.CancelTimer(timer);
    co_return OkStatus();
  }

 private:
  struct Handshake {
    rt::ChildContext context;
    std::unique_ptr<Crowd<Handshake>::Place> place;  // null: given up
  };

  // False: there is none.
  bool GiveUpHandshake() {
    Handshake* one = handshaking_.OldestOfMost([](const Handshake&) { return true; });
    if (one == nullptr) return false;
    one->place.reset();
    one->context.Cancel();
    return true;
  }

  // The newcomer has shown nothing yet. Who has just come in, and has not said yet what for, goes
  // last: else whoever only knocks, and often, would throw out hosts right behind their handshakes.
  bool MakeRoom() {
    return sessions_.EndOne(kFirstWordMax) || GiveUpHandshake() || sessions_.EndOne();
  }

  void Take(int fd) {
    // Those that made way are counted until they have ended, a turn or two later.
    const size_t count = connections_.size();
    const bool has_room = count < options_.connections_max ||
                          (count < options_.connections_max + kEndingMax && MakeRoom());
    if (!has_room) {
      LOG_DEBUG("{}: refused a connection, the limit is {}",
                acceptor_.address(),
                options_.connections_max);
      ::close(fd);
      return;
    }
    if (handshaking_.size() >= options_.handshakes_max) GiveUpHandshake();
    ConfigureTcp(fd);
    connections_.Spawn("h2.serve", Serve(fd));
  }

  rt::Task<Status> Serve(int fd) {
    OwnedFd owned(fd);
    const std::unique_ptr<Census::Entry> of_address =
        by_address_.Add(HostOf(PeerAddress(owned.get())), options_.connections_per_address_max);
    if (of_address == nullptr) co_return OkStatus();
    Result<std::unique_ptr<Stream>> stream = co_await Shake(&owned);
    Status status = stream.status();
    if (status.ok()) status = co_await sessions_.Serve(*std::move(stream));
    Note(status);
    co_return OkStatus();  // what a peer does is no failure of the server
  }

  // Out of line, as all that is not for the life of a connection: its frame is small so.
  [[gnu::noinline]] void Note(const Status& status) const {
    LOG_DEBUG("{}: {}", acceptor_.address(), status.ToString());
  }

  // Out of line: its frame is for the handshake only.
  [[gnu::noinline]] rt::Task<Result<std::unique_ptr<Stream>>> Shake(OwnedFd* fd) {
    Handshake handshake{.context = rt::ChildContext(co_await rt::CurrentContext()),
                        .place = nullptr};
    handshake.place = handshaking_.Add(HostOf(PeerAddress(fd->get())), handshake);
    auto shaking =
        TlsStream::Accept(&loop_, fd->Release(), options_.tls, options_.handshake_timeout, &lane_);
    Result<std::unique_ptr<Stream>> stream = co_await shaking.In(handshake.context.context());
    handshake.place.reset();
    if (stream.ok() && (*stream)->alpn() != kAlpn) {
      co_return Unavailable("the client does not ask for h2");
    }
    co_return stream;
  }

  rt::AsioLoop& loop_;
  H2ServerOptions options_;
  HandshakeLane lane_;
  Census by_address_;
  bool stopped_ = false;
  Crowd<Handshake> handshaking_;
  H2Sessions sessions_;
  rt::TaskScope connections_;
  Acceptor acceptor_;
};

H2Server::H2Server(std::unique_ptr<Body> body) : body_(std::move(body)) {}
H2Server::~H2Server() = default;

Result<std::unique_ptr<H2Server>> H2Server::Start(rt::AsioLoop& loop,
                                                  H2ServerOptions options,
                                                  RpcRoutes routes) {
  loop.Assert();
  if (options.tls == nullptr) return BadRequest("an H2Server needs a TLS context");
  int fd = -1;
  if (options.listener != nullptr) {
    fd = options.listener->Release();
  } else {
    TRY(fd, ListenTcp(options.address, options.port));
  }
  auto body = std::make_unique<Body>(loop, std::move(options), std::move(routes), fd);
  return std::unique_ptr<H2Server>(new H2Server(std::move(body)));
}

const std::string& H2Server::address() const { return body_->address(); }
uint16_t H2Server::port() const { return body_->port(); }
size_t H2Server::connections() const { return body_->connections(); }
void H2Server::SetTls(std::shared_ptr<const TlsContext> tls) { body_->SetTls(std::move(tls)); }
void H2Server::Open() { body_->Open(); }
rt::Task<Status> H2Server::Stop() { return body_->Stop(); }

}  // namespace berth::net
