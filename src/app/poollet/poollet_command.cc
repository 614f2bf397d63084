// SPDX-License-Identifier: Apache-2.0
#include "app/poollet/poollet_command.h"

#include <unistd.h>

#include <array>
#include <filesystem>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "app/poollet/hardware.h"
#include "app/poollet/run_poollet.h"
#include "app/process/private_memory.h"
#include "app/process/process_flags.h"
#include "base/folders.h"
#include "base/log.h"
#include "base/strings.h"
#include "cli/arguments.h"
#include "cli/environment.h"
#include "cli/session/session.h"
#include "iri/grpc/endpoint.h"
#include "pki/private_file.h"

namespace berth::app {
namespace {

using cli::Arguments;
using cli::Flag;
using cli::FlagKind;
using cli::Session;

constexpr std::array<std::string_view, 2> kOnStop = {"keep", "drain"};
constexpr Duration kDrainLimitMin = Duration::Seconds(1);

constexpr std::array kFlags = {
    Flag{.name = "token-file",
         .kind = FlagKind::kText,
         .value_name = "FILE",
         .help = "(server) Join token, needed once; - reads standard input.",
         .completion = cli::Completion::kFiles},
    Flag{.name = "name",
         .kind = FlagKind::kText,
         .value_name = "HOST",
         .help = "(host) Name of this host; by default its host name."},
    Flag{.name = "data-dir",
         .kind = FlagKind::kText,
         .value_name = "DIR",
         .help = "(host) Folder for key, certificate and record. As root /var/lib/berth/poollet, "
                 "else ~/.local/share/berth/poollet.",
         .variable = "BERTH_POOLLET_DATA_DIR",
         .completion = cli::Completion::kFiles},
    Flag{.name = "machine-pool",
         .kind = FlagKind::kText,
         .value_name = "NAME",
         .help = "(pools) MachinePool to announce."},
    Flag{.name = "volume-pool",
         .kind = FlagKind::kText,
         .value_name = "NAME",
         .help = "(pools) VolumePool to announce."},
    Flag{.name = "bucket-pool",
         .kind = FlagKind::kText,
         .value_name = "NAME",
         .help = "(pools) BucketPool to announce."},
    Flag{.name = "machine-runtime",
         .kind = FlagKind::kText,
         .value_name = "SOCKET",
         .help = "(runtimes) unix:/path of the machine runtime; by default looked for."},
    Flag{.name = "volume-runtime",
         .kind = FlagKind::kText,
         .value_name = "SOCKET",
         .help = "(runtimes) The same for volumes."},
    Flag{.name = "runtime-user",
         .kind = FlagKind::kCommaList,
         .value_name = "NAME|UID",
         .help = "(runtimes) Who runtimes may be beside root and the poollet's own user. They name "
                 "the poollet's with --allow-user. May be repeated.",
         .variable = "BERTH_RUNTIME_USER"},
    Flag{.name = "bucket-runtime",
         .kind = FlagKind::kText,
         .value_name = "SOCKET",
         .help = "(runtimes) The same for buckets."},
    Flag{.name = "poll-interval",
         .kind = FlagKind::kDuration,
         .value_name = "TIME",
         .help = "(runtimes) How often a runtime without a watch is listed.",
         .fallback = "5s"},
    Flag{.name = "statistics-interval",
         .kind = FlagKind::kDuration,
         .value_name = "TIME",
         .help = "(runtimes) How often capacity and statistics are read and reported.",
         .fallback = "15s"},
    Flag{.name = "on-stop",
         .kind = FlagKind::kText,
         .value_name = "WHAT",
         .help = "(host) On SIGTERM: keep leaves everything running, drain waits until the server "
                 "has sent everything elsewhere that can be elsewhere.",
         .fallback = "keep",
         .values = kOnStop},
    Flag{.name = "drain-timeout",
         .kind = FlagKind::kDuration,
         .value_name = "TIME",
         .help = "(host) How long --on-stop drain waits; what is here then stays, as with keep.",
         .fallback = "5m"},
    Flag{.name = "yes",
         .help = "(host) Obey deletions of more than a tenth of what runs here even if the "
                 "server's history was rewound."},
    Flag{.name = "metrics",
         .kind = FlagKind::kText,
         .value_name = "ADDR:PORT",
         .help = "(logs) Serve metrics for Prometheus there, without TLS."},
    Flag{.name = "trace",
         .kind = FlagKind::kText,
         .value_name = "FILE",
         .help = "(logs) Append a line of JSON when a machine is assigned, made and running.",
         .completion = cli::Completion::kFiles},
    kLogLevelFlag,
    kLogFormatFlag,
};

// "a:7444,b:7444"
std::vector<std::string> ReadServers(std::string_view text) {
  std::vector<std::string> servers;
  for (std::string_view server : Split(text, ',')) {
    server = Trim(server);
    if (!server.empty()) servers.emplace_back(server);
  }
  return servers;
}

Result<std::string> ReadToken(const Arguments& arguments, cli::Environment& environment) {
  const std::string& file = arguments.Text("token-file");
  std::string text = arguments.Text("token");
  if (file == "-") {
    text.assign(std::istreambuf_iterator<char>(*environment.in), std::istreambuf_iterator<char>());
  } else if (!file.empty()) {
    TRY(text, pki::ReadPrivateFile(file));
  }
  return std::string(Trim(text));
}

PoolRuntime ReadPool(const Arguments& arguments,
                     const cli::Environment& environment,
                     const std::string& kind,
                     iri::RuntimeKind runtime) {
  PoolRuntime pool;
  pool.pool = arguments.Text(kind + "-pool");
  pool.flag = "--" + kind + "-runtime";
  pool.endpoint = arguments.Text(kind + "-runtime");
  pool.variable = environment.Variable(iri::EndpointVariable(runtime));
  return pool;
}

Result<PoolletRunOptions> ReadOptions(const Arguments& arguments, cli::Environment& environment) {
  PoolletRunOptions options;
  options.data_dir = arguments.Text("data-dir");
  if (options.data_dir.empty()) options.data_dir = DefaultDataDir(environment) + "/poollet";
  options.host = arguments.Text("name");
  if (options.host.empty()) options.host = Hostname();
  options.servers = ReadServers(arguments.Text("server"));
  TRY(options.token, ReadToken(arguments, environment));
  options.machine = ReadPool(arguments, environment, "machine", iri::RuntimeKind::kMachine);
  options.volume = ReadPool(arguments, environment, "volume", iri::RuntimeKind::kVolume);
  options.bucket = ReadPool(arguments, environment, "bucket", iri::RuntimeKind::kBucket);
  if (options.machine.pool.empty() && options.volume.pool.empty() && options.bucket.pool.empty()) {
    return BadRequest("no pool: give at least one of --machine-pool, --volume-pool, --bucket-pool");
  }
  Result<std::vector<uid_t>> users = iri::UsersOf(arguments.List("runtime-user"));
  if (!users.ok()) return users.status().Wrap("--runtime-user");
  options.runtime_users = *std::move(users);
  options.poll_interval = arguments.Span("poll-interval");
  options.statistics_interval = arguments.Span("statistics-interval");
  if (options.poll_interval < Duration::Millis(100) ||
      options.statistics_interval < Duration::Millis(100)) {
    return BadRequest("--poll-interval and --statistics-interval must be at least 100ms");
  }
  if (arguments.Text("on-stop") == "drain") options.on_stop = poollet::LeaveMode::kDrain;
  options.drain_limit = arguments.Span("drain-timeout");
  if (options.drain_limit < kDrainLimitMin) {
    return BadRequest("--drain-timeout " + FormatDuration(options.drain_limit) +
                      " must be at least " + FormatDuration(kDrainLimitMin));
  }
  if (arguments.Switch("yes")) {
    options.mass_deletion = poollet::HostOptions::MassDeletion::kAllowed;
  }
  options.metrics = arguments.Text("metrics");
  options.trace = arguments.Text("trace");
  return options;
}

Status Run(Session& session, const Arguments& arguments) {
  ConfigureLog(arguments);
  KeepMemoryPrivate();
  TRY(auto options, ReadOptions(arguments, session.environment()));
  // Beside root's (/var/lib/berth/poollet) are those of guests, to which QEMU comes as another
  // user.
  const std::string above = std::filesystem::path(options.data_dir).parent_path().string();
  if (geteuid() == 0 && !above.empty()) TRY_STATUS(MakeOpenFolders(above));
  return RunPoollet(std::move(options), [] { LOG_INFO("the poollet runs"); });
}

}  // namespace

cli::Command PoolletCommand() {
  return {
      .name = "poollet",
      .group = "Server",
      .summary = "Run the agent of a host, which announces its pools",
      .details =
          "Joins a cluster with a token, once, and from then on keeps what the server assigns to "
          "this host alive in its runtimes, with or without contact to the server.\n\n"
          "--server is HOST:PORT of the server's gateway; several are separated by commas and "
          "tried in order. The token comes from --token-file or standard input; --token works "
          "too, but everybody on this host can see it.",
      .examples =
          "# join with a token and announce a machine pool and a volume pool\n"
          "berth poollet --server server:7444 --token-file token --machine-pool host-1 "
          "--volume-pool host-1-disks\n"
          "# after that no token is needed\n"
          "berth poollet --server server:7444 --machine-pool host-1 --on-stop drain",
      .flags = kFlags,
      .run = &Run};
}

}  // namespace berth::app
