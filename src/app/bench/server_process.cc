// SPDX-License-Identifier: Apache-2.0
#include "app/bench/server_process.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <utility>
#include <vector>

#include "base/strings.h"
#include "cli/kubeconfig/connection.h"
#include "rt/sleep.h"

extern char** environ;

namespace berth::app {
namespace {

// A start that takes longer is a failure, not a figure.
constexpr Duration kStartLimit = Duration::Seconds(60);
constexpr Duration kPoll = Duration::Millis(1);

Result<pid_t> Spawn(const std::string& folder) {
  std::array<std::string, 8> words = {
      "berth", "server", "--data-dir", folder, "--listen", "127.0.0.1:0", "--log-level", "error"};
  std::vector<char*> arguments;
  for (auto& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  pid_t pid = 0;
  const int error =
      posix_spawn(&pid, "/proc/self/exe", nullptr, nullptr, arguments.data(), environ);
  if (error != 0) return Unavailable("start of berth server: " + std::string(std::strerror(error)));
  return pid;
}

}  // namespace

rt::Task<Result<std::unique_ptr<ServerProcess>>> ServerProcess::Start(rt::AsioLoop& loop,
                                                                      std::string folder) {
  std::error_code ignored;
  std::filesystem::remove(folder + "/kubeconfig", ignored);  // of an earlier start, on another port
  const Time start = loop.Now();
  CO_TRY(const pid_t pid, Spawn(folder));
  std::unique_ptr<ServerProcess> server(new ServerProcess(loop, std::move(folder), pid));
  while (loop.Now() - start < kStartLimit) {
    if (waitpid(pid, nullptr, WNOHANG) == pid) {
      server->pid_ = 0;
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
  url_ = connection.server;
  return OkStatus();
}

Result<std::unique_ptr<net::HttpClient>> ServerProcess::NewClient(size_t connections) const {
  net::HttpClientOptions options;
  options.url = url_;
  options.tls = tls_;
  options.idle_max = connections;
  options.connections_max = connections;
  return net::HttpClient::New(loop_, std::move(options));
}

Result<double> ServerProcess::RssMb() const {
  std::ifstream file("/proc/" + std::to_string(pid_) + "/statm");
  long total = 0;
  long resident = 0;
  if (!(file >> total >> resident))
    return Unavailable("memory of process " + std::to_string(pid_) + " is unknown");
  return static_cast<double>(resident) * static_cast<double>(sysconf(_SC_PAGESIZE)) / 1e6;
}

Status ServerProcess::Stop() {
  if (pid_ == 0) return OkStatus();
  kill(pid_, SIGTERM);
  int code = 0;
  waitpid(std::exchange(pid_, 0), &code, 0);
  if (code != 0) return Internal("berth server ended with status " + std::to_string(code));
  return OkStatus();
}

ServerProcess::~ServerProcess() {
  if (pid_ == 0) return;
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

}  // namespace berth::app
