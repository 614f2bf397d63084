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
#include "app/up/down_command.h"
#include "app/up/local_host.h"
#include "base/strings.h"
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
  Duration bound = Duration();
  Duration running = Duration();
  Duration userspace = Duration();
};

struct Run {
  const BootBenchOptions& options;
  const HostOptions& host;
  BenchWorld& world;
  std::string acceleration;
  std::vector<Figure> figures = {};

  std::string trace() const { return host.trace; }
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

rt::Task<Status> MeasureOne(Run* run) {
  std::vector<Boot> all;
  std::vector<double> own;
  std::vector<double> libvirt;
  std::vector<double> qemu_img;
  for (int round = 0; round < run->options.rounds; ++round) {
    std::vector<Boot> boots;
    CO_TRY_STATUS(co_await BootAll(run, "one-" + std::to_string(round), 1, &boots));
    const Boot& boot = boots.front();
    const std::vector<ForeignSpan> spans = ParseSpans(ReadWhole(run->trace()));
    const WallTime running = boot.sent_wall + boot.running;
    libvirt.push_back(Millis(Covered(spans, "libvirt.", boot.sent_wall, running)));
    qemu_img.push_back(Millis(Covered(spans, "qemu-img.", boot.sent_wall, running)));
    own.push_back(Millis(boot.running - Covered(spans, "", boot.sent_wall, running)));
    run->options.progress(
        fmt::format("one guest: runs after {:.0f} ms (libvirt {:.0f}, qemu-img {:.0f}, we {:.0f}), "
                    "speaks after {:.0f}",
                    Millis(boot.running),
                    libvirt.back(),
                    qemu_img.back(),
                    own.back(),
                    Millis(boot.userspace)));
    all.push_back(boot);
    CO_TRY_STATUS(co_await Remove(run, &boots));
  }
  const std::map<std::string, std::string> params = {
      {"guests", "1"},
      {"rounds", std::to_string(run->options.rounds)},
      {"bind_ms", fmt::format("{:.1f}", MedianOf(all, &Boot::bound))},
      {"libvirt_ms", fmt::format("{:.1f}", Median(libvirt))},
      {"qemu_img_ms", fmt::format("{:.1f}", Median(qemu_img))}};
  run->Add("create_to_running_ms", MedianOf(all, &Boot::running), params);
  run->Add("create_to_userspace_ms", MedianOf(all, &Boot::userspace), params);
  run->Add("control_plane_ms", Median(own), params);
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

std::vector<ForeignSpan> ParseSpans(std::string_view lines) {
  std::vector<ForeignSpan> spans;
  for (const std::string_view line : Split(lines, '\n')) {
    const Result<meta::Value> value = meta::ParseJson(line);
    if (!value.ok()) continue;
    const meta::Value* const begin = value->Find("begin");
    const meta::Value* const end = value->Find("end");
    if (begin == nullptr || end == nullptr || !begin->is_int() || !end->is_int()) continue;
    spans.push_back({.name = std::string(value->GetString({"span"})),
                     .begin = WallTime::FromMicros(begin->as_int()),
                     .end = WallTime::FromMicros(end->as_int())});
  }
  return spans;
}

Duration Covered(const std::vector<ForeignSpan>& spans,
                 std::string_view prefix,
                 WallTime begin,
                 WallTime end) {
  std::vector<std::pair<WallTime, WallTime>> parts;
  for (const ForeignSpan& span : spans) {
    if (!span.name.starts_with(prefix)) continue;
    const WallTime from = std::max(span.begin, begin);
    const WallTime to = std::min(span.end, end);
    if (from < to) parts.emplace_back(from, to);
  }
  std::ranges::sort(parts);
  Duration covered;
  WallTime reached = begin;
  for (const auto& [from, to] : parts) {
    const WallTime next = std::max(from, reached);
    if (to <= next) continue;
    covered = covered + (to - next);
    reached = to;
  }
  return covered;
}

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
  layout.trace = layout.run_folder + "/spans";
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
