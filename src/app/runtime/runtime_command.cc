// SPDX-License-Identifier: Apache-2.0
#include "app/runtime/runtime_command.h"

#include <sys/stat.h>

#include <array>
#include <csignal>
#include <memory>
#include <ostream>
#include <utility>
#include <vector>

#include "app/runtime/fake_runtime_options.h"
#include "app/runtime/machine_runtime_command.h"
#include "app/runtime/runtime_process.h"
#include "app/runtime/volume_runtime_command.h"
#include "base/strings.h"
#include "cli/arguments.h"
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

constexpr std::array<std::string_view, 2> kGuests = {"simulated", "processes"};

constexpr std::array kFakeFlags = {
    Flag{.name = "socket",
         .kind = FlagKind::kText,
         .value_name = "DIR|PATH",
         .help =
             "(sockets) Folder for one socket per kind, or PATH.sock for one that serves all. As "
             "root /run/berth.",
         .completion = cli::Completion::kFiles},
    kAllowUserFlag,
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
  RuntimeServers servers;
};

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

Status RunFake(Session& session, const Arguments& arguments) {
  net::InitGrpcProcess();
  umask(0077);  // sockets and state are for their owner only
  TRY(const std::string socket, RuntimeSocketPath(arguments.Text("socket"), session.environment()));
  TRY(const std::vector<uid_t> allowed, AllowedUsers(arguments));
  rt::AsioLoop loop("main");
  rt::Event stop;
  loop.OnSignal({SIGTERM, SIGINT}, [&stop](int) { stop.Set(); });
  FakeProcess process;
  TRY_STATUS(Assemble(loop, arguments, process));
  for (const FakeSocket& place : FakeSockets(socket)) {
    auto server = iri::RuntimeServer::Start(
        loop, place.path, PartOf(process.host->runtimes(), place.serves), allowed);
    if (!server.ok()) {
      TRY_STATUS(rt::RunTask(loop, StopServers(&process.servers)));
      return server.status();
    }
    session.out() << "serving unix:" << place.path << '\n';
    process.servers.push_back(*std::move(server));
  }
  session.out() << "next    berth iri version --endpoint unix:" << process.servers.front()->path()
                << std::endl;
  return rt::RunTask(loop, ServeUntil(&stop, &process.servers));
}

constexpr cli::Command kFake = {
    .name = "fake",
    .summary = "A host that runs nothing, behind the real runtime interface",
    .details =
        "Machines, volumes and buckets that exist only in memory, on a host with a capacity, boot "
        "times, failures and lies as told. For trying things out, for tests and for benchmarks. "
        "Runs until it is told to stop.",
    .examples =
        "# a host of 8 cores, one socket per kind in /run/berth\n"
        "berth runtime fake --socket /run/berth\n"
        "# a bad one that survives kill -9\n"
        "berth runtime fake --socket /run/bad.sock --fail create-answer=0.2,boot=0.1 "
        "--state-file /var/tmp/bad\n"
        "# what it runs\n"
        "berth iri machines --endpoint unix:/run/berth/iri-machineprovider.sock",
    .flags = kFakeFlags,
    .run = &RunFake};

}  // namespace

cli::Command RuntimeCommand() {
  static const std::array kChildren = {kFake, VolumeRuntimeCommand(), MachineRuntimeCommand()};
  return {
      .name = "runtime",
      .group = "Hosts",
      .usage = "fake|volume|machine",
      .summary = "Run what runs machines, volumes and buckets on a host",
      .details = "A runtime serves the runtime interface on a unix socket; a poollet drives it.",
      .examples =
          "berth runtime fake --socket /run/berth\n"
          "berth runtime volume --socket /run/berth --dir /var/lib/berth/disks --classes "
          "classes.yaml\n"
          "berth runtime machine --socket /run/berth --dir /var/lib/berth/machines --classes "
          "classes.yaml",
      .children = kChildren};
}

}  // namespace berth::app
