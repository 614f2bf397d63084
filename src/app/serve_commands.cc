// SPDX-License-Identifier: Apache-2.0
#include "app/serve_commands.h"

#include <fmt/core.h>

#include <array>
#include <ostream>
#include <string>

#include "app/process/process_flags.h"
#include "app/serve.h"
#include "app/server_options.h"
#include "base/log.h"
#include "cli/arguments.h"
#include "cli/session/session.h"

namespace berth::app {
namespace {

using cli::Arguments;
using cli::Flag;
using cli::FlagKind;
using cli::Session;

constexpr std::array kFlags = {
    Flag{.name = "data-dir",
         .kind = FlagKind::kText,
         .value_name = "DIR",
         .help = "(storage) Folder for everything that is kept. As root /var/lib/berth, else "
                 "~/.local/share/berth.",
         .variable = "BERTH_DATA_DIR",
         .completion = cli::Completion::kFiles},
    Flag{.name = "listen",
         .kind = FlagKind::kText,
         .value_name = "ADDR:PORT",
         .help = "(network) Where to serve HTTPS; port 0 takes a free one.",
         .fallback = kDefaultListen,
         .variable = "BERTH_LISTEN"},
    Flag{.name = "gateway-listen",
         .kind = FlagKind::kText,
         .value_name = "ADDR:PORT",
         .help =
             "(network) Where poollets connect. Port 7444 beside --listen, or a free one if that "
             "takes a free one.",
         .variable = "BERTH_GATEWAY_LISTEN"},
    Flag{.name = "tls-name",
         .kind = FlagKind::kCommaList,
         .value_name = "NAME",
         .help = "(network) Further names and addresses by which clients reach the server."},
    Flag{.name = "domains",
         .kind = FlagKind::kText,
         .value_name = "LIST",
         .help = "(cluster) Domains of the API groups; the first is canonical, the others are "
                 "aliases.",
         .fallback = kDefaultDomains,
         .variable = "BERTH_DOMAINS"},
    kLogLevelFlag,
    kLogFormatFlag,
    Flag{.name = "debug-commit-trace",
         .kind = FlagKind::kText,
         .value_name = "FILE",
         .help = "(debug) A file of 16 bytes that is told when commits begin and end."},
};

Result<ServerOptions> ReadOptions(const Arguments& arguments, const cli::Environment& environment) {
  ServerOptions options;
  options.data_dir = arguments.Text("data-dir");
  if (options.data_dir.empty()) options.data_dir = DefaultDataDir(environment);
  TRY_STATUS(ParseListen(arguments.Text("listen"), options));
  TRY_STATUS(ParseGatewayListen(arguments.Text("gateway-listen"), options));
  TRY_STATUS(ParseDomains(arguments.Text("domains"), options));
  options.names = arguments.List("tls-name");
  options.commit_trace = arguments.Text("debug-commit-trace");
  return options;
}

Status RunUp(Session& session, const Arguments& arguments) {
  ConfigureLog(arguments);
  TRY(auto options, ReadOptions(arguments, session.environment()));
  return Serve(std::move(options), [&session](const Server& server) {
    session.out() << fmt::format(
        "Berth serves {}\n"
        "poollets      {}\n"
        "kubeconfig    {}\n"
        "next          export KUBECONFIG={}; kubectl get namespaces\n",
        server.url(),
        server.gateway_address(),
        server.kubeconfig_path(),
        server.kubeconfig_path());
    session.out().flush();
  });
}

Status RunServer(Session& session, const Arguments& arguments) {
  ConfigureLog(arguments);
  TRY(auto options, ReadOptions(arguments, session.environment()));
  return Serve(std::move(options),
               [](const Server& server) { LOG_INFO("serving {}", server.url()); });
}

}  // namespace

cli::Command UpCommand() {
  return {.name = "up",
          .group = "Server",
          .usage = "[flags]",
          .summary = "Start everything in one process",
          .details =
              "Starts a server with its store in one folder and runs until it is told to stop. The "
              "first "
              "start makes a certificate authority and a kubeconfig for the administrator.",
          .examples =
              "# a server for this machine\n"
              "berth up\n"
              "# one for tests, on a free port\n"
              "berth up --data-dir /tmp/berth --listen 127.0.0.1:0",
          .flags = kFlags,
          .run = &RunUp};
}

cli::Command ServerCommand() {
  return {.name = "server",
          .group = "Server",
          .usage = "[flags]",
          .summary = "Run a server under a service manager",
          .details = "Like up, but says everything through its log.",
          .examples =
              "berth server --listen 0.0.0.0:7443 --tls-name berth.example.org --log-format json",
          .flags = kFlags,
          .run = &RunServer};
}

}  // namespace berth::app
