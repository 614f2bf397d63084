// SPDX-License-Identifier: Apache-2.0
#include "app/bench/recovery_bench.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "app/bench/bench_world.h"
#include "app/bench/real_host.h"
#include "rt/sleep.h"
#include "store/bench/fsync_probe.h"

namespace berth::app {
namespace {

constexpr Duration kPoll = Duration::Millis(1);
constexpr Duration kBackLimit = Duration::Minutes(2);
constexpr Duration kLossLimit = Duration::Minutes(2);
constexpr Duration kSetLimit = Duration::Minutes(2);
constexpr Duration kGuestsLimit = Duration::Minutes(1);
constexpr Duration kRest = Duration::Seconds(1);
constexpr char kMachines[] = "machines";
constexpr char kFirst[] = "first";
constexpr char kSet[] = "set";
constexpr char kMove[] = "move";

// What all parts of one run share.
struct Run {
  rt::AsioLoop& loop;
  const RecoveryBenchOptions& options;
  HostProcess& hosts;
  HostProcess& lost_by_set;  // one host
  double fsync_per_s = 0;
  std::vector<Figure> figures;

  void Add(std::string metric,
           double value,
           std::string unit,
           std::map<std::string, std::string> params) {
    params["fsync_per_s"] = fmt::format("{:.0f}", fsync_per_s);
    params["object_bytes"] = std::to_string(BenchWorld::object_bytes());
    params["build"] = BuildType();
    params.try_emplace("policy", "spread");
    params.try_emplace("pools", std::to_string(options.hosts));
    figures.push_back({.metric = std::move(metric),
                       .value = value,
                       .unit = std::move(unit),
                       .params = std::move(params)});
  }
};

rt::Task<Status> Fill(Run& run, BenchWorld& world) {
  CO_TRY_STATUS(co_await world.StartServer());
  CO_TRY_STATUS(co_await world.MakeClass());
  for (const char* name : {kMachines, kSet, kMove}) {
    CO_TRY_STATUS(co_await world.MakeNamespace(name));
  }
  CO_TRY_STATUS(co_await world.Join(&run.hosts, 0, run.options.hosts));
  CO_TRY_STATUS(co_await world.Watch(kMachines));
  CreateRun machines;
  machines.prefix = "m";
  machines.creators = run.options.creators;
  machines.limit = run.options.machines;
  CO_TRY_STATUS(co_await world.Create(&machines));
  co_return co_await rt::Sleep(kRest);
}

// Seconds until every host is in contact again.
rt::Task<Result<double>> WaitForAll(Run& run, Time start, int64_t syncs_before) {
  const HostBoard& board = run.hosts.board();
  while (board.synced.load() < run.options.hosts ||
         board.syncs.load() < syncs_before + run.options.hosts) {
    if (run.loop.Now() - start > kBackLimit) {
      co_return Timeout(std::to_string(board.synced.load()) + " of " +
                        std::to_string(run.options.hosts) + " hosts came back within " +
                        FormatDuration(kBackLimit));
    }
    CO_TRY_STATUS(co_await rt::Sleep(kPoll));
  }
  co_return (run.loop.Now() - start).to_seconds();
}

rt::Task<Status> MeasureRestarts(Run& run, BenchWorld& world) {
  std::vector<double> first;
  std::vector<double> all;
  for (int i = 0; i < run.options.restarts; ++i) {
    // A namespace of its own: the watch shows nothing but the new machine.
    const std::string name = kFirst + std::to_string(i);
    CO_TRY_STATUS(co_await world.MakeNamespace(name));
    CO_TRY_STATUS(co_await rt::Sleep(kRest));
    const int64_t syncs = run.hosts.board().syncs.load();
    CO_TRY_STATUS(co_await world.KillServer());
    CO_TRY_STATUS(co_await world.StartServer());
    CO_TRY_STATUS(co_await world.Watch(name));
    CreateRun one;
    one.prefix = "new";
    one.creators = 1;
    one.limit = 1;
    CO_TRY_STATUS(co_await world.Create(&one));
    const Time start = world.server().started();
    first.push_back((world.watch().Find("new-0")->bound - start).to_seconds() * 1e3);
    CO_TRY(const double seconds, co_await WaitForAll(run, start, syncs));
    all.push_back(seconds);
    run.options.progress(fmt::format("ready after {:.0f} ms, placed after {:.0f}, all after {:.0f}",
                                     world.server().ready_ms(),
                                     first.back(),
                                     seconds * 1e3));
  }
  const std::map<std::string, std::string> params = {
      {"machines", std::to_string(run.options.machines)},
      {"restarts", std::to_string(run.options.restarts)},
      {"creators", "1"}};
  run.Add("recovery_ms", Median(first), "ms", params);
  run.Add("recovery_all_s", Median(all), "s", params);
  co_return OkStatus();
}

std::set<std::string> NamesOn(const MachineWatch& watch, const std::string& pool) {
  std::set<std::string> names;
  for (const auto& [name, seen] : watch.machines()) {
    if (seen.pool == pool) names.insert(name);
  }
  return names;
}

// Of a set every lost machine is followed by a new one.
rt::Task<Status> MeasureReplace(Run& run, BenchWorld& world) {
  const int index = run.options.hosts;
  CO_TRY_STATUS(co_await world.Join(&run.lost_by_set, index, 1));
  CO_TRY_STATUS(co_await world.Watch(kSet));
  CO_TRY_STATUS(co_await world.CreateSet("set", run.options.set_replicas, "spread"));
  CO_TRY_STATUS(
      co_await world.WaitForBound(static_cast<size_t>(run.options.set_replicas), kSetLimit));
  CO_TRY_STATUS(co_await rt::Sleep(kRest));
  const size_t lost = NamesOn(world.watch(), BenchHostName(index)).size();
  if (lost == 0) co_return Internal("no machine of the set is on the host that is to be lost");
  const size_t before = world.watch().bound();
  CO_TRY_STATUS(co_await run.lost_by_set.Lose());
  const Time start = run.loop.Now();
  CO_TRY_STATUS(co_await world.WaitForBound(before + lost, kLossLimit));
  run.Add("loss_to_replacement_s",
          (run.loop.Now() - start).to_seconds(),
          "s",
          {{"lost", std::to_string(lost)}, {"on_pool_loss", "Replace"}, {"creators", "1"}});
  co_return OkStatus();
}

rt::Task<Status> WaitForGuests(Run& run, RealHost* host, size_t count) {
  const Time end = run.loop.Now() + kGuestsLimit;
  size_t running = 0;
  while (running < count) {
    if (run.loop.Now() > end) {
      co_return Timeout(fmt::format("{} of {} guests ran after {} on the host that is to be lost",
                                    running,
                                    count,
                                    FormatDuration(kGuestsLimit)));
    }
    CO_TRY_STATUS(co_await rt::Sleep(kPoll));
    CO_TRY(running, co_await host->CountRunning());
  }
  co_return OkStatus();
}

// Until all of `lost` are bound elsewhere; when the last guest was seen running. No machine may be
// bound while guests of its old host still run: for that its runtime is asked all the time.
rt::Task<Result<Time>> WaitForMoves(Run& run,
                                    BenchWorld& world,
                                    RealHost* host,
                                    std::set<std::string> lost) {
  const Time start = run.loop.Now();
  const size_t count = lost.size();
  Time seen_running = start;
  size_t running = 1;
  while (!lost.empty() || running > 0) {
    std::erase_if(lost, [&world](const std::string& name) {
      return world.watch().Find(name)->moved != Time();
    });
    CO_TRY(running, co_await host->CountRunning());
    if (running > 0) seen_running = run.loop.Now();
    if (running > 0 && lost.size() < count) {
      co_return Internal(fmt::format(
          "{} machines were bound elsewhere while {} guests of their lost host still ran",
          count - lost.size(),
          running));
    }
    if (run.loop.Now() - start > kLossLimit) {
      co_return Timeout(std::to_string(lost.size()) + " machines were not moved within " +
                        FormatDuration(kLossLimit));
    }
    CO_TRY_STATUS(co_await rt::Sleep(kPoll));
  }
  co_return seen_running;
}

rt::Task<Status> MeasureMoveFrom(Run& run, BenchWorld& world, RealHost* host) {
  CO_TRY_STATUS(co_await world.Watch(kMove));
  CreateRun movable;
  movable.prefix = "move";
  movable.on_pool_loss = "Move";
  movable.creators = run.options.creators;
  movable.limit = run.options.movable;
  CO_TRY_STATUS(co_await world.Create(&movable));
  CO_TRY_STATUS(co_await rt::Sleep(kRest));
  const std::set<std::string> lost = NamesOn(world.watch(), kMove);
  if (lost.empty()) co_return Internal("no machine is on the host that is to be lost");
  CO_TRY_STATUS(co_await WaitForGuests(run, host, lost.size()));
  CO_TRY_STATUS(host->Lose());
  const Time start = run.loop.Now();
  CO_TRY(const Time seen_running, co_await WaitForMoves(run, world, host, lost));
  Time moved;
  for (const std::string& name : lost) moved = std::max(moved, world.watch().Find(name)->moved);
  run.Add("loss_to_move_s",
          (moved - start).to_seconds(),
          "s",
          {{"lost", std::to_string(lost.size())},
           {"on_pool_loss", "Move"},
           {"creators", std::to_string(movable.creators)},
           {"guests_end_s", fmt::format("{:.1f}", (seen_running - start).to_seconds())}});
  co_return OkStatus();
}

rt::Task<Status> MeasureMove(Run& run, BenchWorld& world) {
  CO_TRY(const std::unique_ptr<RealHost> host, co_await RealHost::Start(&world, kMove));
  const Status measured = co_await MeasureMoveFrom(run, world, host.get());
  CO_TRY_STATUS(co_await host->Stop());
  co_return measured;
}

rt::Task<Status> MeasureIn(Run& run, BenchWorld& world) {
  run.options.progress("hosts join, machines are made");
  CO_TRY_STATUS(co_await Fill(run, world));
  run.options.progress("the server is killed and started again");
  CO_TRY_STATUS(co_await MeasureRestarts(run, world));
  run.options.progress("a host with machines of a set falls silent");
  CO_TRY_STATUS(co_await MeasureReplace(run, world));
  run.options.progress("a real host with guests that move falls silent");
  co_return co_await MeasureMove(run, world);
}

rt::Task<Status> MeasureAll(Run& run) {
  BenchWorld world(run.loop, run.options.dir + "/recovery");
  const Status measured = co_await MeasureIn(run, world);
  CO_TRY_STATUS(co_await world.Close());
  co_return measured;
}

}  // namespace

Result<std::vector<Figure>> RunRecoveryBench(const RecoveryBenchOptions& options) {
  TRY(const auto hosts, HostProcess::Fork());
  TRY(const auto lost_by_set, HostProcess::Fork());
  options.progress("measuring the disk");
  TRY(const double fsyncs, store::MeasureFsyncPerSecond(options.dir, Duration::Seconds(1)));
  rt::AsioLoop loop("bench");
  Run run{.loop = loop,
          .options = options,
          .hosts = *hosts,
          .lost_by_set = *lost_by_set,
          .fsync_per_s = fsyncs,
          .figures = {}};
  run.Add("fsync_per_s", fsyncs, "1/s", {{"policy", "none"}, {"creators", "0"}, {"pools", "0"}});
  TRY_STATUS(rt::RunTask(loop, MeasureAll(run)));
  return std::move(run.figures);
}

}  // namespace berth::app
