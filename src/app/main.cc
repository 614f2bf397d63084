// SPDX-License-Identifier: Apache-2.0
#include <csignal>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "app/serve.h"
#include "base/log.h"

namespace {

using berth::app::ServerOptions;

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);
  berth::log::Configure({.level = berth::log::Level::kInfo, .format = berth::log::Format::kText});
  ServerOptions options;
  berth::Status status = ParseDomains(berth::app::kDefaultDomains, options);
  for (int i = 2; i + 1 < argc && status.ok(); i += 2) {
    const std::string_view flag = argv[i];
    if (flag == "--data-dir") options.data_dir = argv[i + 1];
    if (flag == "--listen") status = ParseListen(argv[i + 1], options);
    if (flag == "--debug-commit-trace") options.commit_trace = argv[i + 1];
  }
  if (status.ok()) {
    status = berth::app::Serve(std::move(options), [](const berth::app::Server& server) {
      std::printf(
          "serving %s, kubeconfig %s\n", server.url().c_str(), server.kubeconfig_path().c_str());
      std::fflush(stdout);
    });
  }
  if (!status.ok()) std::fprintf(stderr, "berth: %s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
