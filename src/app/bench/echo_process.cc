// SPDX-License-Identifier: Apache-2.0
#include "app/bench/echo_process.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <utility>

#include "base/strings.h"
#include "net/h2/h2_server.h"
#include "net/socket.h"
#include "rt/asio/asio_loop.h"

namespace berth::app {
namespace {

rt::Task<Status> Chat(net::MessageStream* stream) {
  for (;;) {
    CO_TRY(std::optional<std::string> message, co_await stream->Read());
    if (!message.has_value()) co_return OkStatus();
    CO_TRY_STATUS(co_await stream->Write(*std::move(message)));
  }
}

// Tells the port and serves until the other end of `hold` closes.
rt::Task<Status> Serve(rt::AsioLoop* loop, net::TlsServerOptions tls, int tell, int hold) {
  net::H2ServerOptions options;
  CO_TRY(options.tls, net::NewH2ServerTls(std::move(tls)));
  options.drain_timeout = Duration();
  options.connections_per_identity_max = options.connections_max;  // one certificate for all
  net::RpcRoutes routes;
  routes.streams[kEchoMethod] = {
      .handler = [](net::RpcCall, net::MessageStream& stream) { return Chat(&stream); }};
  CO_TRY(const auto server, net::H2Server::Start(*loop, std::move(options), std::move(routes)));
  const uint16_t port = server->port();
  const bool told = ::write(tell, &port, sizeof(port)) == sizeof(port);
  net::Socket parent(*loop, hold);
  if (told) CO_TRY_STATUS(co_await parent.Readable());
  co_return co_await server->Stop();
}

}  // namespace

Result<std::unique_ptr<EchoProcess>> EchoProcess::Start(const net::TlsServerOptions& tls) {
  std::array<int, 2> tell{};
  std::array<int, 2> hold{};
  if (::pipe(tell.data()) != 0) return Unavailable("pipe: " + std::string(std::strerror(errno)));
  if (::pipe(hold.data()) != 0) return Unavailable("pipe: " + std::string(std::strerror(errno)));
  const pid_t pid = ::fork();
  if (pid < 0) return Unavailable("fork: " + std::string(std::strerror(errno)));
  if (pid == 0) {
    ::close(tell[0]);
    ::close(hold[1]);
    rt::AsioLoop loop("echo");
    const Status served = rt::RunTask(loop, Serve(&loop, tls, tell[1], hold[0]));
    ::_exit(served.ok() ? 0 : 1);
  }
  ::close(tell[1]);
  ::close(hold[0]);
  uint16_t port = 0;
  const bool told = ::read(tell[0], &port, sizeof(port)) == sizeof(port);
  ::close(tell[0]);
  auto process = std::unique_ptr<EchoProcess>(new EchoProcess(pid, hold[1], port));
  if (!told) return Unavailable("the server process did not start");
  return process;
}

EchoProcess::~EchoProcess() {
  ::close(hold_);
  ::kill(pid_, SIGTERM);
  int status = 0;
  ::waitpid(pid_, &status, 0);
}

Result<double> EchoProcess::AnonymousKb() const {
  std::ifstream file("/proc/" + std::to_string(pid_) + "/status");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("RssAnon:")) continue;
    const std::string_view rest = Trim(std::string_view(line).substr(sizeof("RssAnon:") - 1));
    const std::optional<int64_t> kb = ParseInt(rest.substr(0, rest.find(' ')));
    if (kb.has_value()) return static_cast<double>(*kb);
  }
  return Unavailable("the memory of the server process cannot be read");
}

Result<double> EchoProcess::CpuMs() const {
  std::ifstream file("/proc/" + std::to_string(pid_) + "/schedstat");
  int64_t nanos = 0;
  if (!(file >> nanos)) return Unavailable("the time of the server process cannot be read");
  return static_cast<double>(nanos) / 1e6;
}

}  // namespace berth::app
