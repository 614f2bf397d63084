// SPDX-License-Identifier: Apache-2.0
#include "app/bench/boot_bench.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <utility>

#include "app/bench/bench_world.h"
#include "app/bench/boot_figures.h"
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
  std::string uid;
  std::string id;  // at the runtime
  Time sent;
  WallTime sent_wall;
  Duration acknowledged = Duration();
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

  std::vector<TraceSpan> spans() const {
    return ParseSpans(ReadWhole(host.trace + "/poollet.spans") + "\n" +
                      ReadWhole(host.trace + "/machine-runtime.spans"));
  }
  std::string console(const std::string& id) const {
    return host.folder + "/machines/" + id + "/console.log";
  }
  void Add(std::vector<Figure> more) {
    for (Figure& figure : more) {
      figure.params["acceleration"] = acceleration;
      figure.params["build"] = BuildType();
      figures.push_back(std::move(figure));
    }
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
      boot.uid = seen->uid;
      boot.id = seen->id;
      ++speaking;
    }
  }
  co_return OkStatus();
}

// What the guest took, step by step; its steps add up to it.
Result<BootedGuest> Explain(const Run& run, const Boot& boot, const std::vector<TraceSpan>& spans) {
  BootedGuest guest;
  guest.times = {.sent = boot.sent_wall,
                 .acknowledged = boot.sent_wall + boot.acknowledged,
                 .bound = boot.sent_wall + boot.bound,
                 .running = boot.sent_wall + boot.running,
                 .userspace = boot.sent_wall + boot.userspace};
  Result<std::vector<BootStep>> steps = StepsOf(guest.times, SpansOf(spans, {boot.uid, boot.id}));
  if (!steps.ok()) return steps.status().Wrap("machine " + boot.name);
  guest.steps = *std::move(steps);
  if (const Status sum = CheckSum(guest.times, guest.steps); !sum.ok()) {
    return sum.Wrap("machine " + boot.name);
  }
  const auto millis = [&guest](Duration BootStep::* what) {
    return Millis(SumOf(guest.steps, what));
  };
  run.options.progress(
      fmt::format("{}: runs after {:.0f} ms (libvirt {:.0f}, qemu-img {:.0f}, we {:.0f}, of that "
                  "{:.0f} for its turn), speaks after {:.0f}",
                  boot.name,
                  Millis(boot.running),
                  millis(&BootStep::libvirt),
                  millis(&BootStep::qemu_img),
                  millis(&BootStep::own),
                  millis(&BootStep::paced),
                  Millis(boot.userspace)));
  return guest;
}

// Boots so many at once, adds what each took, and removes them.
rt::Task<Status> Measure(Run* run,
                         std::string prefix,
                         int count,
                         std::vector<BootedGuest>* guests) {
  std::vector<Boot> boots;
  CO_TRY_STATUS(co_await BootAll(run, std::move(prefix), count, &boots));
  const std::vector<TraceSpan> spans = run->spans();
  for (const Boot& boot : boots) {
    CO_TRY(BootedGuest guest, Explain(*run, boot, spans));
    guests->push_back(std::move(guest));
  }
  co_return co_await Remove(run, &boots);
}

rt::Task<Status> MeasureOne(Run* run) {
  std::vector<BootedGuest> guests;
  for (int i = 0; i < run->options.rounds; ++i) {
    CO_TRY_STATUS(co_await Measure(run, "one-" + std::to_string(i), 1, &guests));
  }
  run->Add(BootFigures(std::move(guests), 1));
  co_return OkStatus();
}

rt::Task<Status> MeasureMany(Run* run) {
  const int count = run->options.many;
  std::vector<BootedGuest> guests;
  CO_TRY_STATUS(co_await Measure(run, "many", count, &guests));
  run->Add(BootFigures(std::move(guests), count));
  co_return OkStatus();
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

rt::Task<Result<std::vector<Figure>>> MeasureAll(const BootBenchOptions* options,
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
  if (std::string missing = MissingForGuests(folder, options.run_dir, user); !missing.empty()) {
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
  layout.machine_words = {"--local-disk=20Gi",
                          "--overcommit-cpu=" + std::to_string(std::max(options.many, 1))};
  layout.user = user;
  layout.gateway = world.gateway();
  layout.kubeconfig = world.folder() + "/data/kubeconfig";
  layout.trace = layout.run_folder;
  LocalHost host(loop, layout);
  Result<std::vector<Figure>> figures =
      rt::RunTask(loop, MeasureAll(&options, &world, &host, &layout));
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
