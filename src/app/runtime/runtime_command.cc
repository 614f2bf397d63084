// SPDX-License-Identifier: Apache-2.0
#include "app/runtime/runtime_command.h"

#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <filesystem>
#include <memory>
#include <ostream>
#include <utility>
#include <vector>

#include "app/runtime/fake_runtime_options.h"
#include "base/strings.h"
#include "cli/arguments.h"
#include "cli/failure.h"
#include "cli/files.h"
#include "cli/session/session.h"
#include "iri/grpc/server.h"
#include "net/grpc_status.h"
#include "rt/asio/asio_loop.h"
#include "rt/event.h"
#include "runtime/fake/fake_host.h"
#include "runtime/fake/fake_state_file.h"

namespace berth::app {
namespace {

using cli::Arguments;
using cli::Flag;
using cli::FlagKind;
using cli::Session;

// Calls in progress may end when the process is told to stop.
constexpr Duration kStopGrace = Duration::Seconds(2);

constexpr std::array<std::string_view, 2> kGuests = {"simulated", "processes"};

constexpr std::array kFakeFlags = {
    Flag{.name = "socket",
         .kind = FlagKind::kText,
         .value_name = "DIR|PATH",
         .help =
             "(sockets) Folder for one socket per kind, or PATH.sock for one that serves all. As "
             "root /run/berth.",
         .completion = cli::Completion::kFiles},
    Flag{.name = "name",
         .kind = FlagKind::kText,
         .value_name = "NAME",
         .help = "(host) Name of the host, shows in handles and endpoints.",
         .fallback = "fake"},
    Flag{.name = "cpu",
         .kind = FlagKind::kText,
         .value_name = "CORES",
         .help = "(host) Cores that all machines share.",
         .fallback = "8"},
    Flag{.name = "memory",
         .kind = FlagKind::kText,
         .value_name = "SIZE",
         .help = "(host) Memory that all machines share.",
         .fallback = "32Gi"},
    Flag{.name = "storage",
         .kind = FlagKind::kText,
         .value_name = "SIZE",
         .help = "(host) Disk that volumes, snapshots and local disks share.",
         .fallback = "1Ti"},
    Flag{.name = "classes",
         .kind = FlagKind::kCommaList,
         .value_name = "NAME:CORES:MEMORY",
         .help = "(host) Machine classes instead of small:1:1Gi,medium:2:4Gi,large:4:8Gi."},
    Flag{.name = "foreign",
         .help = "(host) Be somebody else's runtime: no additions of Berth, create is not "
                 "idempotent."},
    Flag{.name = "guests",
         .kind = FlagKind::kText,
         .value_name = "HOW",
         .help = "(host) simulated, or processes: each machine is a process that sleeps, and its "
                 "leases are kept by the poollet's fencer.",
         .fallback = "simulated",
         .values = kGuests},
    Flag{.name = "boot-time",
         .kind = FlagKind::kDuration,
         .value_name = "TIME",
         .help = "(speed) From create to running.",
         .fallback = "2s"},
    Flag{.name = "shutdown-time",
         .kind = FlagKind::kDuration,
         .value_name = "TIME",
         .help = "(speed) From delete or power off to gone.",
         .fallback = "1s"},
    Flag{.name = "fail",
         .kind = FlagKind::kCommaList,
         .value_name = "WHAT=RATE",
         .help =
             "(faults) call, create, create-answer, answer, boot, delete as probabilities, crash "
             "per hour."},
    Flag{.name = "lie",
         .kind = FlagKind::kCommaList,
         .value_name = "WHAT",
         .help = "(faults) capacity=FACTOR, omit=PROBABILITY, running, duplicates, leases, room."},
    Flag{.name = "state-file",
         .kind = FlagKind::kText,
         .value_name = "FILE",
         .help = "(state) Keep objects and guests over restarts and kill -9.",
         .completion = cli::Completion::kFiles},
    Flag{.name = "seed",
         .kind = FlagKind::kNumber,
         .value_name = "N",
         .help = "(state) Of ids and faults; 0: a random one.",
         .fallback = "0"},
};

Result<std::string> SocketOf(const Arguments& arguments, const cli::Environment& environment) {
  std::string socket = arguments.Text("socket");
  const std::string_view user_folder = environment.Variable("XDG_RUNTIME_DIR");
  if (socket.empty() && geteuid() == 0) socket = "/run/berth";
  if (socket.empty() && !user_folder.empty()) socket = std::string(user_folder) + "/berth";
  if (socket.empty()) {
    return cli::Advise(BadRequest("no place for the sockets"), "name a folder with --socket");
  }
  std::error_code failed;
  const auto absolute = std::filesystem::absolute(socket, failed);
  if (failed) return BadRequest("--socket " + Quote(socket) + ": " + failed.message());
  return absolute.lexically_normal().string();
}

iri::Runtimes PartOf(const iri::Runtimes& all, FakeSocket::Serves serves) {
  using Serves = FakeSocket::Serves;
  iri::Runtimes part;
  const auto serves_kind = [&](Serves kind) { return serves == Serves::kAll || serves == kind; };
  if (serves_kind(Serves::kMachines)) part.machine = all.machine;
  if (serves_kind(Serves::kVolumes)) part.volume = all.volume;
  if (serves_kind(Serves::kBuckets)) part.bucket = all.bucket;
  part.host = all.host;
  return part;
}

struct FakeProcess {
  std::shared_ptr<runtime::FakeHostState> state;
  std::unique_ptr<runtime::FakeStateFile> file;
  std::unique_ptr<runtime::FakeHost> host;
  std::vector<std::unique_ptr<iri::RuntimeServer>> servers;
};

// Which start of this machine it is.
std::string HostBoot() {
  const Result<std::string> id = cli::ReadFile("/proc/sys/kernel/random/boot_id");
  return id.ok() ? std::string(Trim(*id)) : "unknown";
}

Status Assemble(rt::AsioLoop& loop, const Arguments& arguments, FakeProcess& process) {
  TRY(runtime::FakeHostOptions options, FakeHostOf(arguments));
  const int64_t seed = arguments.Number("seed");
  process.state = std::make_shared<runtime::FakeHostState>(
      std::move(options), seed == 0 ? loop.random().Next() : static_cast<uint64_t>(seed));
  if (const std::string& path = arguments.Text("state-file"); !path.empty()) {
    TRY(process.file, runtime::FakeStateFile::Open(path, process.state, HostBoot()));
  }
  process.host = std::make_unique<runtime::FakeHost>(loop, process.state);
  return OkStatus();
}

rt::Task<Status> StopAll(FakeProcess* process) {
  for (const auto& server : process->servers) CO_TRY_STATUS(co_await server->Stop(kStopGrace));
  co_return OkStatus();
}

rt::Task<Status> ServeUntil(rt::Event* stop, FakeProcess* process) {
  CO_TRY_STATUS(co_await stop->Wait());
  co_return co_await StopAll(process);
}

Status RunFake(Session& session, const Arguments& arguments) {
  net::InitGrpcProcess();
  umask(0077);  // sockets and state are for their owner only
  TRY(const std::string socket, SocketOf(arguments, session.environment()));
  rt::AsioLoop loop("main");
  rt::Event stop;
  loop.OnSignal({SIGTERM, SIGINT}, [&stop](int) { stop.Set(); });
  FakeProcess process;
  TRY_STATUS(Assemble(loop, arguments, process));
  for (const FakeSocket& place : FakeSockets(socket)) {
    auto server =
        iri::RuntimeServer::Start(loop, place.path, PartOf(process.host->runtimes(), place.serves));
    if (!server.ok()) {
      TRY_STATUS(rt::RunTask(loop, StopAll(&process)));
      return server.status();
    }
    session.out() << "serving unix:" << place.path << '\n';
    process.servers.push_back(*std::move(server));
  }
  session.out() << "next    berth iri version --endpoint unix:" << process.servers.front()->path()
                << std::endl;
  return rt::RunTask(loop, ServeUntil(&stop, &process));
}

constexpr std::array kChildren = {cli::Command{
    .name = "fake",
    .summary = "A host that runs nothing, behind the real runtime interface",
    .details =
        "Machines, volumes and buckets that exist only in memory, on a host with a capacity, boot "
        "times, failures and lies as told. For trying things out, for tests and for benchmarks. "
        "Runs until it is told to stop.",
    .examples = "# a host of 8 cores, one socket per kind in /run/berth\n"
                "berth runtime fake --socket /run/berth\n"
                "# a bad one that survives kill -9\n"
                "berth runtime fake --socket /run/bad.sock --fail create-answer=0.2,boot=0.1 "
                "--state-file /var/tmp/bad\n"
                "# what it runs\n"
                "berth iri machines --endpoint unix:/run/berth/iri-machineprovider.sock",
    .flags = kFakeFlags,
    .run = &RunFake}};

}  // namespace

cli::Command RuntimeCommand() {
  return {
      .name = "runtime",
      .group = "Hosts",
      .usage = "fake",
      .summary = "Run what runs machines, volumes and buckets on a host",
      .details = "A runtime serves the runtime interface on a unix socket; a poollet drives it.",
      .examples = "berth runtime fake --socket /run/berth",
      .children = kChildren};
}

}  // namespace berth::app
