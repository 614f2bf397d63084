// SPDX-License-Identifier: Apache-2.0
#include "app/serve.h"
#include "app/serve_commands.h"
#include "app/server_flags.h"
#include "base/log.h"
#include "cli/session/session.h"

namespace berth::app {
namespace {

class LoggedStart final : public Companion {
 public:
  void Start(rt::AsioLoop& loop, const Server& server) override {
    (void)loop;
    LOG_INFO("serving {}", server.url());
  }
  rt::Task<Status> Stop() override { co_return OkStatus(); }
};

Status RunServer(cli::Session& session, const cli::Arguments& arguments) {
  ConfigureLog(arguments);
  TRY(auto options, ReadServerOptions(arguments, session.environment()));
  LoggedStart start;
  return Serve(std::move(options), start);
}

}  // namespace

cli::Command ServerCommand() {
  return {.name = "server",
          .group = "Server",
          .summary = "Run a server under a service manager",
          .details = "A server and nothing else, which says everything through its log.",
          .examples =
              "berth server --listen 0.0.0.0:7443 --tls-name berth.example.org --log-format json",
          .flags = kServerFlags,
          .run = &RunServer};
}

}  // namespace berth::app
