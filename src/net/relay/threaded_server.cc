// SPDX-License-Identifier: Apache-2.0
#include "net/relay/threaded_server.h"

#include <utility>

#include "net/relay/relay.h"
#include "rt/asio/loop_thread.h"
#include "rt/run_on.h"
#include "rt/scope.h"

namespace berth::net {

class ThreadedServer::Body {
 public:
  explicit Body(rt::Loop& home) : handlers_(home) {}
  // The turn of the last visit ends before anything of it is destroyed.
  ~Body() { thread_.reset(); }
  Body(const Body&) = delete;
  Body& operator=(const Body&) = delete;

  rt::Task<Status> Start(H2ServerOptions options, RpcRoutes routes) {
    RpcRoutes relayed = RelayRoutes(std::move(routes), thread_->loop(), handlers_);
    rt::MakeTask<Status> start =
        [this, options = std::move(options), relayed = std::move(relayed)]() mutable {
          return StartThere(std::move(options), std::move(relayed));
        };
    co_return co_await rt::RunOn<Status>(&visits_, std::move(start));
  }
  rt::Task<Status> Stop() {
    if (std::exchange(is_stopped_, true)) co_return OkStatus();
    rt::MakeTask<Status> stop = [this] { return StopThere(); };
    const Status stopped = co_await rt::RunOn<Status>(&visits_, std::move(stop));
    CO_TRY_STATUS(co_await handlers_.Close());
    co_return stopped;
  }
  // Runs on the server's loop. Nothing comes after Stop() there.
  template <class F>
  void Tell(F words) {
    if (is_stopped_) return;
    thread_->loop().Post("net.threaded", [this, words = std::move(words)]() mutable {
      if (server_ != nullptr) words(*server_);
    });
  }

  const std::string& address() const { return address_; }
  uint16_t port() const { return port_; }
  rt::Loop& loop() { return thread_->loop(); }

 private:
  rt::Task<Status> StartThere(H2ServerOptions options, RpcRoutes routes) {
    CO_TRY(server_, H2Server::Start(thread_->loop(), std::move(options), std::move(routes)));
    address_ = server_->address();
    port_ = server_->port();
    co_return OkStatus();
  }
  rt::Task<Status> StopThere() {
    if (server_ != nullptr) CO_TRY_STATUS(co_await server_->Stop());
    server_.reset();
    co_return OkStatus();
  }

  bool is_stopped_ = false;
  std::string address_;  // set before Start() returns
  uint16_t port_ = 0;
  rt::TaskScope handlers_;
  std::unique_ptr<H2Server> server_;  // on the thread
  std::unique_ptr<rt::LoopThread> thread_ = std::make_unique<rt::LoopThread>("net");
  rt::TaskScope visits_{thread_->loop()};  // on the thread
};

rt::Task<Result<std::unique_ptr<ThreadedServer>>> ThreadedServer::Start(rt::Loop* home,
                                                                        H2ServerOptions options,
                                                                        RpcRoutes routes) {
  auto body = std::make_unique<Body>(*home);
  const Status started = co_await body->Start(std::move(options), std::move(routes));
  if (!started.ok()) {
    CO_TRY_STATUS(co_await body->Stop());
    co_return started;
  }
  co_return std::unique_ptr<ThreadedServer>(new ThreadedServer(std::move(body)));
}

ThreadedServer::ThreadedServer(std::unique_ptr<Body> body) : body_(std::move(body)) {}
ThreadedServer::~ThreadedServer() = default;

const std::string& ThreadedServer::address() const { return body_->address(); }
uint16_t ThreadedServer::port() const { return body_->port(); }
rt::Loop& ThreadedServer::loop() { return body_->loop(); }
void ThreadedServer::Open() {
  body_->Tell([](H2Server& server) { server.Open(); });
}
void ThreadedServer::SetTls(std::shared_ptr<const TlsContext> tls) {
  body_->Tell([tls = std::move(tls)](H2Server& server) { server.SetTls(tls); });
}
rt::Task<Status> ThreadedServer::Stop() { return body_->Stop(); }

}  // namespace berth::net
