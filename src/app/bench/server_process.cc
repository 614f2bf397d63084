// SPDX-License-Identifier: Apache-2.0
#include "app/bench/server_process.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>
#include <vector>

#include "base/strings.h"
#include "cli/kubeconfig/connection.h"
#include "net/url.h"
#include "rt/sleep.h"

namespace berth::app {
namespace {

// A start that takes longer is a failure, not a figure.
constexpr Duration kStartLimit = Duration::Seconds(60);
constexpr Duration kPoll = Duration::Millis(1);

std::vector<std::string> Words(const std::string& folder, uint16_t gateway_port) {
  return {"server",
          "--data-dir",
          folder,
          "--listen",
          "127.0.0.1:0",
          "--gateway-listen",
          "127.0.0.1:" + std::to_string(gateway_port),
          "--log-level",
          "error"};
}

}  // namespace

rt::Task<Result<std::unique_ptr<ServerProcess>>> ServerProcess::Start(
    rt::AsioLoop& loop, std::string folder, uint16_t gateway_port, std::vector<std::string> more) {
  std::error_code ignored;
  std::filesystem::remove(folder + "/kubeconfig", ignored);  // of an earlier start, on another port
  const Time start = loop.Now();
  std::vector<std::string> words = Words(folder, gateway_port);
  words.insert(words.end(), more.begin(), more.end());
  CO_TRY(ChildProcess process, ChildProcess::Start(std::move(words)));
  std::unique_ptr<ServerProcess> server(
      new ServerProcess(loop, std::move(folder), std::move(process)));
  server->started_ = start;
  while (loop.Now() - start < kStartLimit) {
    if (server->process_.HasEnded()) {
      co_return Unavailable("berth server ended before it was ready; run it by hand on " +
                            server->folder_);
    }
    if (server->Connect().ok()) {
      CO_TRY(const auto client, server->NewClient(1));
      net::HttpClientRequest request;
      request.target = "/readyz";
      const auto answer = co_await client->Send(std::move(request));
      if (answer.ok() && answer->status == 200) {
        server->ready_ms_ = (loop.Now() - start).to_seconds() * 1e3;
        co_return server;
      }
    }
    CO_TRY_STATUS(co_await rt::Sleep(kPoll));
  }
  co_return Timeout("berth server was not ready within " + FormatDuration(kStartLimit));
}

Status ServerProcess::Connect() {
  cli::KubeconfigFiles files{.origin = cli::KubeconfigOrigin::kFlag,
                             .paths = {folder_ + "/kubeconfig"}};
  TRY(const auto config, cli::LoadKubeconfig(files));
  TRY(const auto connection, cli::ResolveConnection(config, {}));
  net::TlsClientOptions tls;
  tls.ca_pem = connection.certificate_authority;
  tls.certificate_pem = connection.client_certificate;
  tls.key_pem = connection.client_key;
  TRY(tls_, net::TlsContext::NewClient(tls));
  authority_pem_ = connection.certificate_authority;
  url_ = connection.server;
  return OkStatus();
}

Result<uint16_t> ServerProcess::port() const {
  TRY(const auto url, net::ParseUrl(url_));
  return url.port;
}

Result<std::unique_ptr<net::HttpClient>> ServerProcess::NewClientOn(rt::AsioLoop& loop,
                                                                    size_t connections) const {
  net::HttpClientOptions options;
  options.url = url_;
  options.tls = tls_;
  options.idle_max = connections;
  options.connections_max = connections;
  return net::HttpClient::New(loop, std::move(options));
}

Result<uint16_t> FindFreePort() {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return Unavailable("socket: " + std::string(std::strerror(errno)));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  const bool found = bind(fd, generic, size) == 0 && getsockname(fd, generic, &size) == 0;
  close(fd);
  if (!found) return Unavailable("no free port: " + std::string(std::strerror(errno)));
  return ntohs(address.sin_port);
}

}  // namespace berth::app
