// SPDX-License-Identifier: Apache-2.0
#include "app/bench/boot_bench.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <utility>

#include "app/bench/bench_world.h"
#include "app/bench/boot_steps.h"
#include "app/up/down_command.h"
#include "app/up/local_host.h"
#include "meta/json.h"
#include "rt/sleep.h"

namespace berth::app {
namespace {

constexpr Duration kPoll = Duration::Millis(2);
constexpr Duration kBootLimit = Duration::Minutes(10);  // ten guests on two cores without KVM
constexpr char kNamespace[] = "boot";
constexpr std::string_view kMachines =
    "/apis/compute.ironcore.dev/v1alpha1/namespaces/boot/machines";
constexpr std::string_view kHello = "Hello from Berth!";

std::string MachineJson(const std::string& name) {
  return R"({"apiVersion":"compute.ironcore.dev/v1alpha1","kind":"Machine","metadata":{"name":")" +
         name +
         R"("},"spec":{"machineClassRef":{"name":"tiny"},"volumes":[{"name":"root","device":"oda",)"
         R"("localDisk":{"sizeLimit":"1Mi","image":"demo"}}]}})";
}

std::string ReadWhole(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

double Millis(Duration duration) { return duration.to_seconds() * 1e3; }

// One machine, from its create on.
struct Boot {
  std::string name;
  Time sent;
  WallTime sent_wall;
  Duration acknowledged = Duration();
  Duration bound = Duration();
  Duration running = Duration();
  Duration userspace = Duration();
};

// A guest that booted alone.
struct Round {
  Boot boot;
  std::vector<BootStep> steps;
  double own_ms = 0;  // of create_to_running_ms
};

struct Run {
  const BootBenchOptions& options;
  const HostOptions& host;
  BenchWorld& world;
  std::string acceleration;
  std::vector<Figure> figures = {};

  std::vector<TraceSpan> spans() const {
    return ParseSpans(ReadWhole(host.trace + "/poollet.spans") + "\n" +
                      ReadWhole(host.trace + "/machine-runtime.spans"));
  }
  std::string console(const std::string& id) const {
    return host.folder + "/machines/" + id + "/console.log";
  }
  void Add(std::string metric, double value, std::map<std::string, std::string> params) {
    params["acceleration"] = acceleration;
    params["build"] = BuildType();
    figures.push_back(
        {.metric = std::move(metric), .value = value, .unit = "ms", .params = std::move(params)});
  }
};

bool HasSpoken(const Run& run, const std::string& id) {
  return !id.empty() && ReadWhole(run.console(id)).contains(kHello);
}

rt::Task<Status> Remove(Run* run, const std::vector<Boot>* boots) {
  for (const Boot& boot : *boots) {
    CO_TRY_STATUS(co_await run->world.Delete(std::string(kMachines) + "/" + boot.name));
  }
  const Time end = run->world.loop().Now() + kBootLimit;
  for (;;) {
    CO_TRY(const std::string text, co_await run->world.Get(std::string(kMachines)));
    CO_TRY(const meta::Value list, meta::ParseJson(text));
    const meta::Value* const items = list.Find("items");
    if (items != nullptr && items->is_array() && items->items().empty()) co_return OkStatus();
    if (run->world.loop().Now() > end) co_return Timeout("machines are not removed");
    CO_TRY_STATUS(co_await rt::Sleep(kPoll));
  }
}

// Creates so many and waits until all of them have spoken.
rt::Task<Status> BootAll(Run* run, std::string prefix, int count, std::vector<Boot>* boots) {
  rt::AsioLoop& loop = run->world.loop();
  for (int i = 0; i < count; ++i) {
    Boot& boot = boots->emplace_back();
    boot.name = prefix + "-" + std::to_string(i);
    boot.sent = loop.Now();
    boot.sent_wall = loop.WallNow();
    CO_TRY_STATUS(co_await run->world.Post(std::string(kMachines), MachineJson(boot.name)));
    boot.acknowledged = loop.Now() - boot.sent;
  }
  const Time end = loop.Now() + kBootLimit;
  for (int speaking = 0; speaking < count;) {
    if (loop.Now() > end) {
      co_return Timeout(fmt::format(
          "{} of {} guests spoke within {}", speaking, count, FormatDuration(kBootLimit)));
    }
    CO_TRY_STATUS(co_await rt::Sleep(kPoll));
    for (Boot& boot : *boots) {
      const MachineWatch::Seen* const seen = run->world.watch().Find(boot.name);
      if (boot.userspace != Duration() || seen == nullptr || seen->running == Time()) continue;
      boot.bound = seen->bound - boot.sent;
      boot.running = seen->running - boot.sent;
      if (!HasSpoken(*run, seen->id)) continue;
      boot.userspace = loop.Now() - boot.sent;
      ++speaking;
    }
  }
  co_return OkStatus();
}

double MedianOf(const std::vector<Boot>& boots, Duration Boot::* what) {
  std::vector<double> values;
  for (const Boot& boot : boots) values.push_back(Millis(boot.*what));
  return Median(std::move(values));
}

Result<Round> RoundOf(const Run& run, const Boot& boot) {
  Round round;
  round.boot = boot;
  TRY(round.steps,
      StepsOf({.sent = boot.sent_wall,
               .acknowledged = boot.sent_wall + boot.acknowledged,
               .bound = boot.sent_wall + boot.bound,
               .running = boot.sent_wall + boot.running,
               .userspace = boot.sent_wall + boot.userspace},
              run.spans()));
  round.own_ms = Millis(SumOf(round.steps, &BootStep::own));
  run.options.progress(
      fmt::format("one guest: runs after {:.0f} ms (libvirt {:.0f}, qemu-img {:.0f}, we {:.0f}), "
                  "speaks after {:.0f}",
                  Millis(boot.running),
                  Millis(SumOf(round.steps, &BootStep::libvirt)),
                  Millis(SumOf(round.steps, &BootStep::qemu_img)),
                  round.own_ms,
                  Millis(boot.userspace)));
  return round;
}

void AddSteps(Run& run, const std::vector<BootStep>& steps) {
  for (const BootStep& step : steps) {
    std::map<std::string, std::string> params = {{"step", step.what}};
    const auto add = [&params](const std::string& name, Duration part) {
      if (part != Duration()) params[name + "_ms"] = fmt::format("{:.1f}", Millis(part));
    };
    add("own", step.own);
    add("image", step.image);
    add("libvirt", step.libvirt);
    add("qemu_img", step.qemu_img);
    run.Add("step_" + step.name + "_ms", Millis(step.took), std::move(params));
  }
}

rt::Task<Status> MeasureOne(Run* run) {
  std::vector<Boot> all;
  std::vector<Round> rounds;
  for (int i = 0; i < run->options.rounds; ++i) {
    std::vector<Boot> boots;
    CO_TRY_STATUS(co_await BootAll(run, "one-" + std::to_string(i), 1, &boots));
    all.push_back(boots.front());
    CO_TRY(Round round, RoundOf(*run, boots.front()));
    rounds.push_back(std::move(round));
    CO_TRY_STATUS(co_await Remove(run, &boots));
  }
  std::ranges::sort(rounds, {}, &Round::own_ms);
  const Round& middle = rounds[rounds.size() / 2];
  const auto text = [](Duration duration) { return fmt::format("{:.1f}", Millis(duration)); };
  const std::map<std::string, std::string> params = {
      {"guests", "1"},
      {"rounds", std::to_string(run->options.rounds)},
      {"bind_ms", text(middle.boot.bound)},
      {"libvirt_ms", text(SumOf(middle.steps, &BootStep::libvirt))},
      {"qemu_img_ms", text(SumOf(middle.steps, &BootStep::qemu_img))}};
  run->Add("create_to_running_ms", MedianOf(all, &Boot::running), params);
  run->Add("create_to_userspace_ms", MedianOf(all, &Boot::userspace), params);
  run->Add("control_plane_ms", middle.own_ms, params);
  AddSteps(*run, middle.steps);
  co_return OkStatus();
}

rt::Task<Status> MeasureMany(Run* run) {
  const int count = run->options.many;
  std::vector<Boot> boots;
  CO_TRY_STATUS(co_await BootAll(run, "many", count, &boots));
  const auto last = [&boots](Duration Boot::* what) {
    Duration most;
    for (const Boot& boot : boots) most = std::max(most, boot.*what);
    return fmt::format("{:.0f}", Millis(most));
  };
  const std::string guests = std::to_string(count);
  run->Add("create_to_running_" + guests + "_ms",
           MedianOf(boots, &Boot::running),
           {{"guests", guests}, {"last_ms", last(&Boot::running)}});
  run->Add("create_to_userspace_" + guests + "_ms",
           MedianOf(boots, &Boot::userspace),
           {{"guests", guests}, {"last_ms", last(&Boot::userspace)}});
  co_return co_await Remove(run, &boots);
}

rt::Task<Result<std::string>> AccelerationOf(BenchWorld* world, std::string pool) {
  CO_TRY(const std::string text,
         co_await world->Get("/apis/compute.ironcore.dev/v1alpha1/machinepools/" + pool));
  constexpr std::string_view kFact = R"("machine-acceleration":")";
  const size_t at = text.find(kFact);
  if (at == std::string::npos) co_return std::string("unknown");
  const std::string rest = text.substr(at + kFact.size());
  co_return rest.substr(0, rest.find('"'));
}

rt::Task<Result<std::vector<Figure>>> Measure(const BootBenchOptions* options,
                                              BenchWorld* world,
                                              LocalHost* host,
                                              const HostOptions* layout) {
  const LocalHost::Told told = [options](size_t done, size_t of, std::string_view step) {
    if (done < of) options->progress(fmt::format("{} of {}: {}", done, of, step));
  };
  CO_TRY_STATUS(co_await host->Bring(told));
  if (!std::filesystem::exists(HostLayout(*layout).demo_image())) {
    co_return NotFound("the demo image could not be made: `berth image build` says why");
  }
  CO_TRY_STATUS(co_await world->MakeNamespace(kNamespace));
  CO_TRY_STATUS(co_await world->Watch(kNamespace));
  Run run{.options = *options, .host = *layout, .world = *world, .acceleration = {}};
  CO_TRY(run.acceleration, co_await AccelerationOf(world, layout->name));
  CO_TRY_STATUS(co_await MeasureOne(&run));
  if (options->many > 1) {
    options->progress(fmt::format("{} guests at once", options->many));
    CO_TRY_STATUS(co_await MeasureMany(&run));
  }
  co_return std::move(run.figures);
}

}  // namespace

Result<std::vector<Figure>> RunBootBench(const BootBenchOptions& options) {
  TRY(const std::optional<ProcessUser> user, GuestUserOfThisMachine());
  const std::string folder = options.dir + "/host";
  if (std::string missing = MissingForGuests(folder, user); !missing.empty()) {
    return NotFound("this machine runs no guests: " + missing);
  }
  rt::AsioLoop loop("bench");
  BenchWorld world(loop, options.dir + "/server");
  TRY_STATUS(rt::RunTask(loop, world.StartServer()));
  HostOptions layout;
  layout.folder = folder;
  layout.run_folder = options.run_dir;
  layout.name = "bench";
  layout.acceleration = options.acceleration;
  // However few cores there are.
  layout.overcommit_cpu = std::to_string(std::max(options.many, 1));
  layout.user = user;
  layout.gateway = world.gateway();
  layout.kubeconfig = world.folder() + "/data/kubeconfig";
  layout.trace = layout.run_folder;
  LocalHost host(loop, layout);
  Result<std::vector<Figure>> figures =
      rt::RunTask(loop, Measure(&options, &world, &host, &layout));
  const Status stopped = rt::RunTask(loop, host.Stop());
  const Status ended = EndGuests(folder);
  std::error_code ignored;
  std::filesystem::remove_all(options.run_dir, ignored);
  TRY_STATUS(rt::RunTask(loop, world.Close()));
  if (!figures.ok()) return figures.status();
  TRY_STATUS(stopped);
  TRY_STATUS(ended);
  return figures;
}

}  // namespace berth::app
