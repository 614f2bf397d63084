// SPDX-License-Identifier: Apache-2.0
#include "app/bench_command.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <ostream>

#include "app/bench/abuse_bench.h"
#include "app/bench/api_bench.h"
#include "app/bench/bench_world.h"
#include "app/bench/boot_bench.h"
#include "app/bench/cluster_bench.h"
#include "app/bench/failover_bench.h"
#include "app/bench/figures.h"
#include "app/bench/recovery_bench.h"
#include "app/bench/rpc_bench.h"
#include "app/process/flag_tables.h"
#include "app/process/open_files.h"
#include "app/up/host_layout.h"
#include "cli/arguments.h"
#include "cli/session/session.h"
#include "rt/asio/asio_loop.h"
#include "scheduler/bench/scheduler_bench.h"
#include "store/bench/store_bench.h"

namespace berth::app {
namespace {

using cli::Arguments;
using cli::Flag;
using cli::FlagKind;
using cli::Session;

constexpr std::array<std::string_view, 2> kFormats = {"table", "json"};
constexpr std::array<std::string_view, 3> kAccelerations = {"auto", "kvm", "tcg"};
// Of every bench.
constexpr std::array kCommonFlags = {
    Flag{.name = "quick",
         .help = "End within 40 seconds (cluster, recovery: 150); figures scatter more."},
    Flag{.name = "output",
         .letter = 'o',
         .kind = FlagKind::kText,
         .value_name = "FORMAT",
         .help = "A table for people, or one JSON object per figure.",
         .fallback = "table",
         .values = kFormats},
};
constexpr std::array kDirFlags = {
    Flag{.name = "dir",
         .kind = FlagKind::kText,
         .value_name = "DIR",
         .help = "Folder on the disk to measure; what is written there is removed again.",
         .fallback = "/var/tmp",
         .completion = cli::Completion::kFiles},
};
constexpr std::array kHostsFlags = {
    Flag{.name = "hosts",
         .kind = FlagKind::kNumber,
         .value_name = "N",
         .help = "A smaller or larger world: N hosts instead of 1,000, and all else in proportion.",
         .fallback = "1000"},
};
constexpr std::array kOnlyFlags = {
    Flag{.name = "only",
         .kind = FlagKind::kCommaList,
         .value_name = "PART",
         .help = "Only these: sessions, idle, burst, memory, rate, running, set, poollet, many."},
};
constexpr std::array kApiOwnFlags = {
    Flag{.name = "etcd",
         .kind = FlagKind::kNumber,
         .value_name = "N",
         .help =
             "Creates, lists and watches with the store in a private etcd of N members; 0: in the "
             "server.",
         .fallback = "0"},
    Flag{.name = "machines",
         .kind = FlagKind::kNumber,
         .value_name = "N",
         .help = "A smaller world: lists of N machines, and all else in proportion.",
         .fallback = "10000"},
};
constexpr std::array kWatchersFlags = {
    Flag{.name = "watchers",
         .kind = FlagKind::kNumber,
         .value_name = "N",
         .help = "A smaller or larger world: N watchers, and all else in proportion.",
         .fallback = "2000"},
};
constexpr std::array kGuestFlags = {
    Flag{.name = "guests",
         .kind = FlagKind::kNumber,
         .value_name = "N",
         .help = "Guests at once, behind those one after the other.",
         .fallback = "10"},
    Flag{.name = "acceleration",
         .kind = FlagKind::kText,
         .value_name = "HOW",
         .help = "kvm, tcg, or auto: KVM if a probe guest boots with it.",
         .fallback = "auto",
         .values = kAccelerations},
};
constexpr std::array kFailoverOwnFlags = {
    Flag{.name = "hosts",
         .kind = FlagKind::kNumber,
         .value_name = "N",
         .help = "Hosts that follow whoever leads.",
         .fallback = "50"},
    Flag{.name = "losses",
         .kind = FlagKind::kNumber,
         .value_name = "N",
         .help = "How often the leader is lost: killed, paused, cut off, and so on in turn; with "
                 "--quick at most 6 times.",
         .fallback = "30"},
};
constexpr std::array kSchedulerOwnFlags = {
    Flag{.name = "pools",
         .kind = FlagKind::kNumber,
         .value_name = "N",
         .help = "A smaller or larger world: N pools, and a tenth and a hundredth of them.",
         .fallback = "100000"},
};
constexpr auto kPlainFlags = JoinFlags(kCommonFlags, kDirFlags);
constexpr auto kAbuseFlags = JoinFlags(kPlainFlags, kWatchersFlags);
constexpr auto kApiFlags = JoinFlags(kPlainFlags, kApiOwnFlags);
constexpr auto kBootFlags = JoinFlags(kPlainFlags, kGuestFlags);
constexpr auto kFailoverFlags = JoinFlags(kPlainFlags, kFailoverOwnFlags);
constexpr auto kRecoveryFlags = JoinFlags(kPlainFlags, kHostsFlags);
constexpr auto kClusterFlags = JoinFlags(kRecoveryFlags, kOnlyFlags);
constexpr auto kSchedulerFlags = JoinFlags(kCommonFlags, kSchedulerOwnFlags);

constexpr int64_t kMembersMax = 7;
constexpr int64_t kMachinesMin = 100;
constexpr int64_t kMachinesMax = 10'000;
constexpr int64_t kGuestsMax = 100;
constexpr int64_t kWatchersMin = 8;
constexpr int64_t kWatchersMax = 7'000;  // the places of one address, with those for the others
constexpr int64_t kHostsMin = 4;
constexpr int64_t kHostsMax = 20'000;
constexpr int64_t kFollowersMax = 1'000;  // hosts that have to come back within a minute
constexpr int64_t kLossesMin = 3;         // one of each kind
constexpr int64_t kPoolsMin = 1'000;      // a hundredth is still enough to pack
constexpr int64_t kPoolsMax = 1'000'000;
constexpr int64_t kLossesMax = 300;
constexpr int kQuickLosses = 6;

// The value of a flag, from `least` to `most`.
Result<int> NumberOf(const Arguments& arguments,
                     std::string_view flag,
                     int64_t least,
                     int64_t most) {
  const int64_t value = arguments.Number(flag);
  if (value >= least && value <= most) return static_cast<int>(value);
  return BadRequest("--" + std::string(flag) + " " + std::to_string(value) + ": expected " +
                    std::to_string(least) + " to " + std::to_string(most));
}

Result<int> HostsOf(const Arguments& arguments) {
  return NumberOf(arguments, "hosts", kHostsMin, kHostsMax);
}

// A folder that is removed with everything in it.
class ScratchFolder {
 public:
  static Result<ScratchFolder> Make(const std::string& parent) {
    std::string path = parent + "/berth-bench-XXXXXX";
    if (mkdtemp(path.data()) == nullptr)
      return BadRequest("folder " + parent + ": " + std::strerror(errno));
    return ScratchFolder(std::move(path));
  }
  ScratchFolder(ScratchFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  ScratchFolder& operator=(ScratchFolder&&) = delete;
  ~ScratchFolder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }

 private:
  explicit ScratchFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

void Print(Session& session,
           const Arguments& arguments,
           std::string_view bench,
           const std::vector<Figure>& figures) {
  if (arguments.Text("output") == "json") {
    for (const auto& figure : figures) session.out() << FigureJson(bench, figure) << '\n';
  } else {
    PrintTable(bench, figures, session.out());
  }
}

// A step that begins is told at once.
std::function<void(std::string_view)> TellTo(Session& session) {
  return [&session](std::string_view what) { session.err() << "bench: " << what << std::endl; };
}

// Runs a bench in a folder of its own and prints what it has measured.
template <class Options, class Run>
Status Measure(Session& session,
               const Arguments& arguments,
               std::string_view bench,
               Options options,
               Run run) {
  TRY(const auto folder, ScratchFolder::Make(arguments.Text("dir")));
  RaiseOpenFiles();
  options.dir = folder.path();
  options.progress = TellTo(session);
  TRY(const auto figures, run(options));
  Print(session, arguments, bench, figures);
  return OkStatus();
}

Status RunAbuse(Session& session, const Arguments& arguments) {
  AbuseBenchOptions options;
  TRY(const int watchers, NumberOf(arguments, "watchers", kWatchersMin, kWatchersMax));
  options.counts.watchers = watchers;
  options.counts.silent = watchers / 4;
  options.counts.stalled = std::max(1, watchers / 64);
  options.counts.stalled_watches = options.counts.stalled;
  options.machines = static_cast<size_t>(watchers) * 5;
  if (arguments.Switch("quick")) options.duration = Duration::Seconds(8);
  return Measure(session, arguments, "abuse", options, &RunAbuseBench);
}

Status RunApi(Session& session, const Arguments& arguments) {
  ApiBenchOptions options;
  TRY(options.etcd_members, NumberOf(arguments, "etcd", 0, kMembersMax));
  TRY(const int machines, NumberOf(arguments, "machines", kMachinesMin, kMachinesMax));
  if (arguments.Switch("quick")) {
    options.duration = Duration::Seconds(4);
    options.starts = 3;
  }
  options.listed = static_cast<size_t>(machines);
  options.watchers = machines / 10;
  options.duration = std::max(options.duration * machines / kMachinesMax, Duration::Millis(500));
  return Measure(session, arguments, "api", options, &RunApiBench);
}

template <class Measured>
std::vector<Figure> ToFigures(const std::vector<Measured>& measured) {
  std::vector<Figure> figures;
  for (const auto& figure : measured) {
    figures.push_back({.metric = figure.metric,
                       .value = figure.value,
                       .unit = figure.unit,
                       .params = figure.params});
  }
  return figures;
}

Status RunStore(Session& session, const Arguments& arguments) {
  TRY(const auto folder, ScratchFolder::Make(arguments.Text("dir")));
  store::StoreBenchOptions options;
  options.dir = folder.path();
  if (!arguments.Switch("quick")) options.duration = Duration::Seconds(10);
  TRY(const auto measured, store::RunStoreBench(options));
  Print(session, arguments, "store", ToFigures(measured));
  return OkStatus();
}

// The core alone: nothing is written, created or encoded.
void SayWhatTakesNoPart(std::vector<Figure>& figures) {
  for (Figure& figure : figures) {
    for (const char* name : {"fsync_per_s", "creators", "object_bytes"}) figure.params[name] = "0";
    figure.params["build"] = BuildType();
  }
}

Status RunScheduler(Session& session, const Arguments& arguments) {
  rt::AsioLoop loop("bench");
  scheduler::SchedulerBenchOptions options;
  options.now = [&loop] { return loop.Now(); };
  options.progress = TellTo(session);
  TRY(const int pools, NumberOf(arguments, "pools", kPoolsMin, kPoolsMax));
  const auto most = static_cast<size_t>(pools);
  options.pools = {most / 100, most / 10, most};
  options.quality_pools = most / 100;
  if (arguments.Switch("quick")) {
    options.duration = Duration::Millis(700);
    options.rounds = 3;
    options.quality_seeds = 3;
  }
  std::vector<Figure> figures = ToFigures(scheduler::RunSchedulerBench(options));
  SayWhatTakesNoPart(figures);
  Print(session, arguments, "scheduler", figures);
  return OkStatus();
}

Status RunRpc(Session& session, const Arguments& arguments) {
  RpcBenchOptions options;
  if (arguments.Switch("quick")) options.pairs = 20'000;
  return Measure(session, arguments, "rpc", options, &RunRpcBench);
}

Status RunCluster(Session& session, const Arguments& arguments) {
  ClusterBenchOptions options;
  TRY(options.hosts, HostsOf(arguments));
  options.many_hosts = options.hosts * 5;
  options.machines = static_cast<size_t>(options.hosts) * 5;
  options.burst = static_cast<size_t>(options.hosts) * 3;
  options.set_replicas = options.hosts * 10;
  options.only = arguments.List("only");
  const std::span<const std::string_view> parts = ClusterBenchParts();
  for (const std::string& part : options.only) {
    if (std::ranges::find(parts, part) != parts.end()) continue;
    return BadRequest("--only " + part + ": there is no such part");
  }
  if (arguments.Switch("quick")) {
    options.duration = Duration::Seconds(5);
    options.idle_machines = 200;
  }
  return Measure(session, arguments, "cluster", options, &RunClusterBench);
}

Status RunBoot(Session& session, const Arguments& arguments) {
  BootBenchOptions options;
  TRY(options.many, NumberOf(arguments, "guests", 1, kGuestsMax));
  options.acceleration = arguments.Text("acceleration");
  if (arguments.Switch("quick")) options.rounds = 1;
  const auto run = [&session](BootBenchOptions placed) {
    // The guests' user comes through.
    std::filesystem::permissions(placed.dir, std::filesystem::perms(0711));
    placed.run_dir = DefaultRunDir(placed.dir, session.environment().Variable("XDG_RUNTIME_DIR"));
    return RunBootBench(placed);
  };
  return Measure(session, arguments, "boot", options, run);
}

Status RunRecovery(Session& session, const Arguments& arguments) {
  RecoveryBenchOptions options;
  TRY(options.hosts, HostsOf(arguments));
  options.machines = static_cast<size_t>(options.hosts) * 5;
  options.set_replicas = options.hosts * 2;
  options.movable = static_cast<size_t>(options.hosts) * 2;
  if (arguments.Switch("quick")) options.restarts = 1;
  return Measure(session, arguments, "recovery", options, &RunRecoveryBench);
}

Status RunFailover(Session& session, const Arguments& arguments) {
  FailoverBenchOptions options;
  TRY(options.hosts, NumberOf(arguments, "hosts", kHostsMin, kFollowersMax));
  TRY(options.losses, NumberOf(arguments, "losses", kLossesMin, kLossesMax));
  if (arguments.Switch("quick")) options.losses = std::min(options.losses, kQuickLosses);
  // The figures are printed whatever they say.
  Status verdict;
  const auto run = [&verdict](const FailoverBenchOptions& placed) -> Result<std::vector<Figure>> {
    TRY(FailoverOutcome outcome, RunFailoverBench(placed));
    verdict = outcome.verdict;
    return std::move(outcome.figures);
  };
  TRY_STATUS(Measure(session, arguments, "failover", options, run));
  return verdict;
}

}  // namespace

cli::Command BenchCommand() {
  static const auto* const kChildren = new std::array<cli::Command, 9>{
      cli::Command{
          .name = "abuse",
          .summary = "What others notice of 2,000 watchers and clients that behave badly",
          .details =
              "A server of its own with 10,000 machines, and a process full of clients: 2,000\n"
              "watch, one lists everything in a loop, 500 connect and say nothing, 31 list and\n"
              "31 watch everything and never read. The time of other clients' requests, alone\n"
              "and beside them.",
          .examples = "berth bench abuse --quick\nberth bench abuse -o json",
          .flags = kAbuseFlags,
          .run = &RunAbuse},
      cli::Command{
          .name = "api",
          .summary = "The whole server over TLS: creates, lists, watches, starts, memory",
          .details = "Starts servers of its own in a folder below --dir; yours is not touched.",
          .examples = "berth bench api --quick\nberth bench api -o json --dir /mnt/nvme\n"
                      "berth bench api --quick --etcd 3",
          .flags = kApiFlags,
          .run = &RunApi},
      cli::Command{
          .name = "boot",
          .summary = "Real guests: from a create until they run, and until they speak",
          .details =
              "Starts a server and a host of its own with libvirtd, runtimes and poollet, as\n"
              "`berth up` does, and boots the demo image. What the control plane takes is\n"
              "all but the time inside of libvirt, qemu-img and QEMU.",
          .examples = "berth bench boot --quick --guests 1\nberth bench boot -o json",
          .flags = kBootFlags,
          .run = &RunBoot},
      cli::Command{
          .name = "cluster",
          .summary = "Server, 1,000 and 5,000 hosts, creators: machines placed per second",
          .details = "A server process of its own and hosts that speak the session protocol, each\n"
                     "with its own connection and certificate. The clock runs from the create to\n"
                     "the binding on a watch.",
          .examples = "berth bench cluster --quick\nberth bench cluster --only set,memory -o json",
          .flags = kClusterFlags,
          .run = &RunCluster},
      cli::Command{
          .name = "failover",
          .summary = "Three servers on three members of etcd: the leader is killed and cut off",
          .details =
              "50 hosts that follow whoever leads, and machines that are created meanwhile.\n"
              "The leader is killed, paused, and cut off from etcd while it lives on, ten\n"
              "times each. The clock runs from that to the first new placement. Machines that\n"
              "were lost, or placed twice by the API or by what hosts hold, fail the bench.",
          .examples = "berth bench failover --quick\nberth bench failover -o json\n"
                      "berth bench failover --hosts 8 --losses 3",
          .flags = kFailoverFlags,
          .run = &RunFailover},
      cli::Command{
          .name = "recovery",
          .summary = "A killed server and silent hosts: how long until all is well again",
          .details =
              "1,000 hosts and 5,000 machines. Hosts are lost by dropped packets: nothing is\n"
              "closed, and nothing that is sent to them is acknowledged.",
          .examples = "berth bench recovery --quick",
          .flags = kRecoveryFlags,
          .run = &RunRecovery},
      cli::Command{
          .name = "scheduler",
          .summary = "The scheduler's core alone: placements per second, quality of packing",
          .details =
              "Placements and releases on 1,000, 10,000 and 100,000 pools in memory, on one\n"
              "core; utilisation at the first refusal against an exact best fit.",
          .examples = "berth bench scheduler --quick\nberth bench scheduler -o json",
          .flags = kSchedulerFlags,
          .run = &RunScheduler},
      cli::Command{.name = "store",
                   .summary = "The store alone: durable commits, start, memory",
                   .details = "Opens a store of its own in a folder below --dir.",
                   .examples = "berth bench store --quick",
                   .flags = kPlainFlags,
                   .run = &RunStore},
      cli::Command{.name = "rpc",
                   .summary = "Sessions alone: mutual TLS, memory, messages there and back",
                   .details = "A server process of its own and 1,000 sessions from this one.",
                   .examples = "berth bench rpc --quick",
                   .flags = kPlainFlags,
                   .run = &RunRpc}};
  return {.name = "bench",
          .group = "Server",
          .usage = "abuse|api|boot|cluster|failover|recovery|rpc|scheduler|store",
          .summary = "Measure speed and memory on this machine",
          .details =
              "Prints figures, not verdicts: machines are noisy. Compare within one run. One\n"
              "fails for what it found: failover, if something was lost or placed twice.",
          .examples = "berth bench api --quick",
          .children = *kChildren};
}

}  // namespace berth::app
