// SPDX-License-Identifier: Apache-2.0
#include "app/bench/cluster_bench.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <utility>

#include "app/bench/bench_world.h"
#include "app/bench/real_host.h"
#include "app/process/start_pages.h"
#include "rt/sleep.h"
#include "store/bench/fsync_probe.h"

namespace berth::app {
namespace {

// Until what many creates have taken for a moment is given back to the system.
constexpr Duration kMemoryRest = Duration::Seconds(5);
constexpr Duration kRest = Duration::Seconds(1);  // until what was begun is written
constexpr Duration kPoll = Duration::Millis(2);
constexpr Duration kReturnLimit = Duration::Minutes(2);
// Until a process has let go of what only its start needed.
constexpr Duration kStartRest = kStartOver + Duration::Seconds(1);
constexpr Duration kRunningLimit = Duration::Minutes(2);
constexpr Duration kSetLimit = Duration::Minutes(2);
constexpr double kMegabyteInKilobytes = 1000;

using Params = std::map<std::string, std::string>;

// What all parts of one run share.
struct Run {
  rt::AsioLoop& loop;
  const ClusterBenchOptions& options;
  double fsync_per_s = 0;
  double rss_empty_mb = 0;  // of the server before hosts came
  std::vector<Figure> figures;

  void Add(std::string metric, double value, std::string unit, const CreateRun& made, Params more) {
    more.try_emplace("policy", made.policy);
    more.try_emplace("creators", std::to_string(made.creators));
    AddPlain(std::move(metric), value, std::move(unit), std::move(more));
  }
  void AddPlain(std::string metric, double value, std::string unit, Params params) {
    params["fsync_per_s"] = fmt::format("{:.0f}", fsync_per_s);
    params["object_bytes"] = std::to_string(BenchWorld::object_bytes());
    params["build"] = BuildType();
    params.try_emplace("creators", "0");
    params.try_emplace("policy", "none");
    std::string details;
    for (const auto& [name, detail] : params) {
      if (!name.ends_with("_cpu_us") && !name.ends_with("_kb")) continue;
      details += fmt::format(" {}={}", name, detail);
    }
    options.progress(fmt::format("{} {:.1f} {}{}", metric, value, unit, details));
    figures.push_back({.metric = std::move(metric),
                       .value = value,
                       .unit = std::move(unit),
                       .params = std::move(params)});
  }
  CreateRun Creators(std::string prefix) const {
    CreateRun run;
    run.prefix = std::move(prefix);
    run.creators = options.creators;
    return run;
  }
};

double Rate(const CreateRun& made, const MachineWatch& watch) {
  return static_cast<double>(made.sent.size()) / TimeToBind(made, watch).to_seconds();
}

rt::Task<Status> WaitForGuests(Run& run, RealHost* host) {
  const Time end = run.loop.Now() + kRunningLimit;
  while (run.loop.Now() < end) {
    CO_TRY(const size_t running, co_await host->CountRunning());
    if (running == run.options.poollet_machines) co_return OkStatus();
    CO_TRY_STATUS(co_await rt::Sleep(kPoll));
  }
  co_return Timeout("the guests of a real poollet did not all run within " +
                    FormatDuration(kRunningLimit));
}

rt::Task<Status> MeasureOn(Run& run, BenchWorld& world, RealHost* host) {
  CO_TRY_STATUS(co_await rt::Sleep(kStartRest));
  CO_TRY(const double idle, host->PoolletRssMb());
  CreateRun guests = run.Creators("guest");
  guests.pool = "real";
  guests.limit = run.options.poollet_machines;
  CO_TRY_STATUS(co_await world.Create(&guests));
  CO_TRY_STATUS(co_await WaitForGuests(run, host));
  CO_TRY_STATUS(co_await rt::Sleep(kRest));
  CO_TRY(const double rss, host->PoolletRssMb());
  run.Add("rss_poollet_mb",
          rss,
          "MB",
          guests,
          {{"machines", std::to_string(run.options.poollet_machines)},
           {"idle_mb", fmt::format("{:.1f}", idle)}});
  co_return OkStatus();
}

rt::Task<Status> MeasurePoollet(Run& run, BenchWorld& world, HostProcess& /*hosts*/) {
  CO_TRY(const std::unique_ptr<RealHost> host, co_await RealHost::Start(&world, "real"));
  const Status measured = co_await MeasureOn(run, world, host.get());
  CO_TRY_STATUS(co_await host->Stop());
  co_return measured;
}

rt::Task<Status> MeasureIdle(Run& run, BenchWorld& world, HostProcess& /*hosts*/) {
  CreateRun warm = run.Creators("warm");
  warm.creators = 1;
  warm.limit = std::max<size_t>(run.options.idle_machines / 10, 1);
  CO_TRY_STATUS(co_await world.Create(&warm));
  CreateRun idle = run.Creators("idle");
  idle.creators = 1;
  // The next one is sent when the one before it was seen bound.
  for (size_t i = 0; i < run.options.idle_machines; ++i) {
    idle.limit = i + 1;
    CO_TRY_STATUS(co_await world.Create(&idle));
  }
  const std::vector<double> latencies = LatenciesMs(idle, world.watch());
  const Params params = {{"samples", std::to_string(latencies.size())},
                         {"pools", std::to_string(run.options.hosts)}};
  run.Add("idle_p50_ms", Median(latencies), "ms", idle, params);
  run.Add("idle_p99_ms", Percentile(latencies, 0.99), "ms", idle, params);
  co_return OkStatus();
}

rt::Task<Status> MeasureBurst(Run& run, BenchWorld& world, HostProcess& /*hosts*/) {
  CreateRun burst = run.Creators("burst");
  burst.limit = run.options.burst;
  CO_TRY_STATUS(co_await world.Create(&burst));
  const std::vector<double> latencies = LatenciesMs(burst, world.watch());
  run.Add("burst_p99_ms",
          Percentile(latencies, 0.99),
          "ms",
          burst,
          {{"machines", std::to_string(latencies.size())},
           {"pools", std::to_string(run.options.hosts)},
           {"p50_ms", fmt::format("{:.1f}", Median(latencies))}});
  co_return OkStatus();
}

rt::Task<Status> MeasureMemory(Run& run, BenchWorld& world, HostProcess& /*hosts*/) {
  CreateRun more = run.Creators("more");
  const size_t bound = world.watch().bound();
  if (bound < run.options.machines) {
    more.limit = run.options.machines - bound;
    CO_TRY_STATUS(co_await world.Create(&more));
  }
  CO_TRY_STATUS(co_await rt::Sleep(kMemoryRest));
  CO_TRY(const double rss, world.server().RssMb());
  run.Add("rss_server_mb",
          rss,
          "MB",
          more,
          {{"pools", std::to_string(run.options.hosts)},
           {"machines", std::to_string(world.watch().bound())},
           {"rest_s", fmt::format("{:.0f}", kMemoryRest.to_seconds())}});
  co_return OkStatus();
}

// A part of what the hosts hold together: a small world is not filled up.
size_t PartOf(int hosts, int64_t divisor) {
  return static_cast<size_t>(hosts * kBenchMachinesPerHost / divisor);
}

// Computing time of all who take part: what does not depend on who else computes.
struct Times {
  double server = 0;
  double hosts = 0;    // all of them
  double clients = 0;  // creators and watch

  void Add(const Times& before, const Times& after) {
    server += after.server - before.server;
    hosts += after.hosts - before.hosts;
    clients += after.clients - before.clients;
  }
};

Result<Times> TimesNow(BenchWorld& world, const HostProcess& hosts) {
  Times times;
  TRY(times.server, world.server().CpuSeconds());
  TRY(times.hosts, hosts.CpuSeconds());
  TRY(times.clients, CpuSecondsOf(getpid()));
  return times;
}

// What one machine took of them.
void AddTimes(const Times& spent, size_t machines, Params* params) {
  const auto per_machine_us = [machines](double seconds) {
    return fmt::format("{:.0f}",
                       seconds * 1e6 / static_cast<double>(std::max<size_t>(machines, 1)));
  };
  (*params)["server_cpu_us"] = per_machine_us(spent.server);
  (*params)["hosts_cpu_us"] = per_machine_us(spent.hosts);
  (*params)["clients_cpu_us"] = per_machine_us(spent.clients);
}

// The hard policy, and the easy one beside it.
rt::Task<Status> MeasureRate(
    Run& run, BenchWorld& world, HostProcess& hosts, std::string metric, int pools) {
  CreateRun spread = run.Creators("spread");
  spread.duration = run.options.duration;
  spread.limit = PartOf(pools, 4);
  CO_TRY(const Times before, TimesNow(world, hosts));
  CO_TRY_STATUS(co_await world.Create(&spread));
  CO_TRY(const Times after, TimesNow(world, hosts));
  CreateRun binpack = run.Creators("binpack");
  binpack.policy = "binpack";
  binpack.duration = run.options.duration;
  binpack.limit = PartOf(pools, 4);
  CO_TRY_STATUS(co_await world.Create(&binpack));
  const std::vector<double> latencies = LatenciesMs(spread, world.watch());
  Params params = {{"pools", std::to_string(pools)},
                   {"machines", std::to_string(spread.sent.size())},
                   {"p99_ms", fmt::format("{:.1f}", Percentile(latencies, 0.99))},
                   {"sent_again", std::to_string(world.refused())},
                   {"binpack_rate", fmt::format("{:.0f}", Rate(binpack, world.watch()))}};
  Times spent;
  spent.Add(before, after);
  AddTimes(spent, spread.sent.size(), &params);
  run.Add(std::move(metric), Rate(spread, world.watch()), "1/s", spread, std::move(params));
  co_return OkStatus();
}

// The same with hosts that report every machine as running, as soon as it is assigned.
rt::Task<Status> MeasureRunning(Run& run, BenchWorld& world, HostProcess& hosts) {
  hosts.board().reports_running.store(true);
  CreateRun made = run.Creators("running");
  made.duration = run.options.duration / 2;
  made.limit = PartOf(run.options.hosts, 8);
  CO_TRY_STATUS(co_await world.Create(&made));
  CO_TRY_STATUS(co_await world.WaitForRunning(made.sent.size(), kRunningLimit));
  const double seconds = (run.loop.Now() - made.start).to_seconds();
  hosts.board().reports_running.store(false);
  run.Add("running_rate",
          static_cast<double>(made.sent.size()) / seconds,
          "1/s",
          made,
          {{"pools", std::to_string(run.options.hosts)},
           {"machines", std::to_string(made.sent.size())}});
  co_return OkStatus();
}

// One set in a namespace of its own; copies per second.
rt::Task<Result<double>> PlaceSet(Run& run, BenchWorld& world, std::string name) {
  CO_TRY_STATUS(co_await world.MakeNamespace(name));
  CO_TRY_STATUS(co_await world.Watch(name));
  const auto replicas = static_cast<size_t>(run.options.set_replicas);
  const Time start = run.loop.Now();
  CO_TRY_STATUS(co_await world.CreateSet(name, run.options.set_replicas, "spread"));
  CO_TRY_STATUS(co_await world.WaitForBound(replicas, kSetLimit));
  co_return static_cast<double>(replicas) / (run.loop.Now() - start).to_seconds();
}

// One takes less than half a second, in which much can come between: the median of several counts,
// each on a server that has no other machines.
rt::Task<Status> MeasureSet(Run& run, BenchWorld& world, HostProcess& hosts) {
  std::vector<double> rates;
  Times spent;
  for (int i = 0; i < run.options.sets; ++i) {
    CO_TRY(const Times before, TimesNow(world, hosts));
    const std::string name = "set-" + std::to_string(i);
    CO_TRY(const double rate, co_await PlaceSet(run, world, name));
    CO_TRY(const Times after, TimesNow(world, hosts));
    rates.push_back(rate);
    spent.Add(before, after);
    CO_TRY_STATUS(co_await world.DeleteSet(name, kSetLimit));
    CO_TRY_STATUS(co_await rt::Sleep(kRest));
  }
  const auto [least, most] = std::ranges::minmax(rates);
  const auto replicas = static_cast<size_t>(run.options.set_replicas);
  Params params = {{"pools", std::to_string(run.options.hosts)},
                   {"policy", "spread"},
                   {"creators", "1"},
                   {"machines", std::to_string(replicas)},
                   {"sets", std::to_string(rates.size())},
                   {"first", fmt::format("{:.0f}", rates.front())},
                   {"least", fmt::format("{:.0f}", least)},
                   {"most", fmt::format("{:.0f}", most)}};
  AddTimes(spent, replicas * rates.size(), &params);
  run.AddPlain("set_rate", Median(rates), "1/s", std::move(params));
  co_return OkStatus();
}

rt::Task<Status> Prepare(BenchWorld& world) {
  CO_TRY_STATUS(co_await world.StartServer());
  CO_TRY_STATUS(co_await world.MakeClass());
  CO_TRY_STATUS(co_await world.MakeNamespace("bench"));
  co_return co_await world.Watch("bench");
}

// What sessions take of a server that knows their pools already: it is killed under hosts that do
// not answer, and started again. What hosts take that join for the first time, pools and records
// included, is reported beside it.
rt::Task<Status> MeasureSessions(Run& run, BenchWorld& world, HostProcess& hosts) {
  CO_TRY(const double joined, world.server().OwnRssMb());
  const auto syncs = hosts.board().syncs.load();
  hosts.Freeze();
  CO_TRY_STATUS(co_await world.KillServer());
  CO_TRY_STATUS(co_await world.StartServer());
  CO_TRY_STATUS(co_await world.Watch("bench"));
  CO_TRY_STATUS(co_await rt::Sleep(kRest));
  CO_TRY(const double before, world.server().OwnRssMb());
  hosts.Thaw();
  const Time end = run.loop.Now() + kReturnLimit;
  while (hosts.board().syncs.load() < syncs + run.options.hosts ||
         hosts.board().synced.load() < run.options.hosts) {
    if (run.loop.Now() > end) co_return Timeout("hosts did not come back");
    CO_TRY_STATUS(co_await rt::Sleep(kPoll));
  }
  CO_TRY_STATUS(co_await rt::Sleep(kRest));
  CO_TRY(const double after, world.server().OwnRssMb());
  const auto per_host = [&run](double from, double to) {
    return (to - from) * kMegabyteInKilobytes / run.options.hosts;
  };
  run.AddPlain(
      "rss_session_kb",
      per_host(before, after),
      "KB",
      {{"pools", std::to_string(run.options.hosts)},
       {"with", "session; its pool and host record were known before"},
       {"with_pool_and_record_kb", fmt::format("{:.1f}", per_host(run.rss_empty_mb, joined))}});
  co_return OkStatus();
}

rt::Task<Status> MeasureSmallRate(Run& run, BenchWorld& world, HostProcess& hosts) {
  return MeasureRate(run, world, hosts, "cluster_rate_1k", run.options.hosts);
}

// What is measured with the smaller number of hosts, in this order. A set has a world of its own:
// ten thousand machines more would be in the way of the others' figures, and theirs in its.
struct Part {
  std::string_view name;
  std::string_view title;
  rt::Task<Status> (*measure)(Run& run, BenchWorld& world, HostProcess& hosts);
};
constexpr std::array kSetParts = {
    Part{.name = "set", .title = "a set", .measure = &MeasureSet},
};
constexpr std::array kParts = {
    Part{.name = "sessions", .title = "hosts come back", .measure = &MeasureSessions},
    Part{.name = "idle", .title = "one machine after the other", .measure = &MeasureIdle},
    Part{.name = "burst", .title = "a burst", .measure = &MeasureBurst},
    Part{.name = "memory", .title = "memory", .measure = &MeasureMemory},
    Part{.name = "rate",
         .title = "machines as fast as they can be created",
         .measure = &MeasureSmallRate},
    Part{.name = "running", .title = "until they run", .measure = &MeasureRunning},
    Part{.name = "poollet", .title = "one real poollet", .measure = &MeasurePoollet},
};
constexpr std::string_view kManyPart = "many";

bool IsAsked(const Run& run, std::string_view part) {
  const std::vector<std::string>& only = run.options.only;
  return only.empty() || std::ranges::find(only, part) != only.end();
}

// A world of its own has hosts that have just joined.
rt::Task<Status> MeasureParts(Run& run,
                              BenchWorld& world,
                              HostProcess& hosts,
                              std::span<const Part> parts) {
  CO_TRY_STATUS(co_await Prepare(world));
  run.options.progress("hosts join");
  CO_TRY_STATUS(co_await rt::Sleep(kRest));
  CO_TRY(run.rss_empty_mb, world.server().OwnRssMb());
  CO_TRY_STATUS(co_await world.Join(&hosts, 0, run.options.hosts));
  CO_TRY_STATUS(co_await rt::Sleep(kRest));
  for (const Part& part : parts) {
    if (!IsAsked(run, part.name)) continue;
    run.options.progress(part.title);
    CO_TRY_STATUS(co_await part.measure(run, world, hosts));
  }
  co_return OkStatus();
}

rt::Task<Status> MeasureWorld(Run& run,
                              std::string folder,
                              std::unique_ptr<HostProcess> hosts,
                              std::span<const Part> parts) {
  const bool is_asked =
      std::ranges::any_of(parts, [&run](const Part& part) { return IsAsked(run, part.name); });
  if (!is_asked) co_return OkStatus();
  BenchWorld world(run.loop, run.options.dir + "/" + folder);
  const Status measured = co_await MeasureParts(run, world, *hosts, parts);
  CO_TRY_STATUS(co_await world.Close());
  co_return measured;
}

rt::Task<Status> MeasureLargeWorld(Run& run, BenchWorld& world, HostProcess& hosts) {
  run.options.progress("many hosts join");
  CO_TRY_STATUS(co_await Prepare(world));
  CO_TRY_STATUS(co_await world.Join(&hosts, 0, run.options.many_hosts));
  run.options.progress("machines on many hosts");
  co_return co_await MeasureRate(run, world, hosts, "cluster_rate_5k", run.options.many_hosts);
}

// Forked before there are threads.
struct Hosts {
  std::unique_ptr<HostProcess> of_set;
  std::unique_ptr<HostProcess> some;
  std::unique_ptr<HostProcess> many;
};

rt::Task<Status> MeasureAll(Run& run, Hosts hosts) {
  CO_TRY_STATUS(co_await MeasureWorld(run, "set", std::move(hosts.of_set), kSetParts));
  CO_TRY_STATUS(co_await MeasureWorld(run, "some", std::move(hosts.some), kParts));
  if (run.options.many_hosts == 0 || !IsAsked(run, kManyPart)) co_return OkStatus();
  BenchWorld world(run.loop, run.options.dir + "/many");
  const Status measured = co_await MeasureLargeWorld(run, world, *hosts.many);
  CO_TRY_STATUS(co_await world.Close());
  co_return measured;
}

}  // namespace

std::span<const std::string_view> ClusterBenchParts() {
  static constexpr auto kNames = [] {
    std::array<std::string_view, kSetParts.size() + kParts.size() + 1> names = {};
    auto at = names.begin();
    for (const Part& part : kSetParts) *at++ = part.name;
    for (const Part& part : kParts) *at++ = part.name;
    *at = kManyPart;
    return names;
  }();
  return kNames;
}

Result<std::vector<Figure>> RunClusterBench(const ClusterBenchOptions& options) {
  Hosts hosts;
  for (auto* one : {&hosts.of_set, &hosts.some, &hosts.many}) {
    TRY(*one, HostProcess::Fork());
  }
  options.progress("measuring the disk");
  TRY(const double fsyncs, store::MeasureFsyncPerSecond(options.dir, Duration::Seconds(1)));
  rt::AsioLoop loop("bench");
  Run run{.loop = loop, .options = options, .fsync_per_s = fsyncs, .figures = {}};
  run.AddPlain("fsync_per_s", fsyncs, "1/s", {});
  TRY_STATUS(rt::RunTask(loop, MeasureAll(run, std::move(hosts))));
  return std::move(run.figures);
}

}  // namespace berth::app
