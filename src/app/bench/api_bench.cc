// SPDX-License-Identifier: Apache-2.0
#include "app/bench/api_bench.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>

#include "app/bench/machine_template.h"
#include "app/bench/prefill.h"
#include "app/bench/server_process.h"
#include "base/strings.h"
#include "rt/scope.h"
#include "rt/sleep.h"
#include "store/bench/fsync_probe.h"
#include "store/etcd/testing/etcd_process.h"

namespace berth::app {
namespace {

constexpr size_t kManyPerListed = 10;  // with which a start is measured
constexpr int kLists = 9;
constexpr char kEtcd[] = "/usr/bin/etcd";
constexpr std::string_view kGroup = "/apis/compute.ironcore.dev/v1alpha1/namespaces/";

std::string MachinesPath(std::string_view namespace_) {
  return std::string(kGroup) + std::string(namespace_) + "/machines";
}

// What all parts of one run share.
struct Run {
  rt::AsioLoop& loop;
  const ApiBenchOptions& options;
  const MachineTemplate& machine;
  double fsync_per_s = 0;
  std::vector<std::string> etcd = {};  // endpoints; none: the store is embedded
  std::vector<Figure> figures;

  void Add(std::string metric,
           double value,
           std::string unit,
           std::map<std::string, std::string> params = {}) {
    params["fsync_per_s"] = fmt::format("{:.0f}", fsync_per_s);
    if (!etcd.empty()) {
      metric.insert(0, "etcd_");
      params["members"] = std::to_string(etcd.size());
    }
    figures.push_back({.metric = std::move(metric),
                       .value = value,
                       .unit = std::move(unit),
                       .params = std::move(params)});
  }
  std::string Folder(std::string_view name) const { return options.dir + "/" + std::string(name); }
};

// Clients that create machines one after the other, until `end` or until `limit` of them are made.
struct Creators {
  net::HttpClient& client;
  const MachineTemplate& machine;
  std::string path;
  Time end;
  size_t limit = 0;  // 0: no limit
  size_t next = 0;
  size_t created = 0;
  std::vector<double> latencies_ms;

  rt::Task<Status> RunOne() {
    rt::Loop& loop = (co_await rt::CurrentContext{}).loop();
    while (loop.Now() < end && (limit == 0 || next < limit)) {
      net::HttpClientRequest request;
      request.method = "POST";
      request.target = path;
      request.headers.Set("Content-Type", "application/json");
      request.body = machine.Body("m-" + std::to_string(next++));
      const Time start = loop.Now();
      CO_TRY(const auto answer, co_await client.Send(std::move(request)));
      if (answer.status != 201)
        co_return Internal("create: " + std::to_string(answer.status) + " " + answer.body);
      latencies_ms.push_back((loop.Now() - start).to_seconds() * 1e3);
      ++created;
    }
    co_return OkStatus();
  }
};

rt::Task<Status> CreateNamespace(net::HttpClient& client, std::string name) {
  net::HttpClientRequest request;
  request.method = "POST";
  request.target = "/api/v1/namespaces";
  request.headers.Set("Content-Type", "application/json");
  request.body.emplace_back(R"({"apiVersion":"v1","kind":"Namespace","metadata":{"name":")" + name +
                            "\"}}");
  CO_TRY(const auto answer, co_await client.Send(std::move(request)));
  if (answer.status != 201) co_return Internal("create namespace: " + answer.body);
  co_return OkStatus();
}

rt::Task<Status> RunCreators(Run& run, Creators& creators) {
  rt::TaskScope scope(run.loop);
  for (int i = 0; i < run.options.clients; ++i) scope.Spawn("bench.create", creators.RunOne());
  co_return co_await scope.Join();
}

rt::Task<Status> MeasureStarts(Run& run) {
  std::vector<double> times;
  for (int i = 0; i < run.options.starts; ++i) {
    CO_TRY(const auto server,
           co_await ServerProcess::Start(run.loop, run.Folder("empty-" + std::to_string(i))));
    times.push_back(server->ready_ms());
    if (i == 0) {
      CO_TRY_STATUS(co_await rt::Sleep(Duration::Seconds(1)));
      CO_TRY(const double rss, server->RssMb());
      run.Add("rss_idle_mb", rss, "MB");
    }
    CO_TRY_STATUS(server->Stop());
  }
  run.Add("ready_empty_ms",
          Median(times),
          "ms",
          {{"starts", std::to_string(times.size())},
           {"min", fmt::format("{:.0f}", std::ranges::min(times))},
           {"max", fmt::format("{:.0f}", std::ranges::max(times))}});
  co_return OkStatus();
}

rt::Task<Status> MeasureCreates(Run& run, net::HttpClient& client) {
  Creators warm{.client = client,
                .machine = run.machine,
                .path = MachinesPath("default"),
                .end = run.loop.Now() + Duration::Millis(500)};
  CO_TRY_STATUS(co_await RunCreators(run, warm));
  Creators creators{.client = client,
                    .machine = run.machine,
                    .path = MachinesPath("default"),
                    .end = run.loop.Now() + run.options.duration,
                    .next = warm.next};
  const Time start = run.loop.Now();
  CO_TRY_STATUS(co_await RunCreators(run, creators));
  const double seconds = (run.loop.Now() - start).to_seconds();
  if (creators.created == 0) co_return Internal("no machine was created; is the server reachable?");
  const std::map<std::string, std::string> params = {
      {"clients", std::to_string(run.options.clients)},
      {"object_bytes", std::to_string(run.machine.body_bytes())},
      {"seconds", fmt::format("{:.1f}", seconds)},
      {"p50_ms", fmt::format("{:.2f}", Median(creators.latencies_ms))}};
  run.Add("create_rate_16", static_cast<double>(creators.created) / seconds, "1/s", params);
  run.Add("create_p99_ms_16", Percentile(creators.latencies_ms, 0.99), "ms", params);
  co_return OkStatus();
}

rt::Task<Status> MeasureList(Run& run, net::HttpClient& client) {
  CO_TRY_STATUS(co_await CreateNamespace(client, "list"));
  Creators creators{.client = client,
                    .machine = run.machine,
                    .path = MachinesPath("list"),
                    .end = run.loop.Now() + Duration::Minutes(2),
                    .limit = run.options.listed};
  CO_TRY_STATUS(co_await RunCreators(run, creators));
  std::vector<double> times;
  size_t bytes = 0;
  for (int i = 0; i < kLists; ++i) {
    net::HttpClientRequest request;
    request.target = MachinesPath("list");
    const Time start = run.loop.Now();
    CO_TRY(const auto answer, co_await client.Send(std::move(request)));
    times.push_back((run.loop.Now() - start).to_seconds() * 1e3);
    bytes = answer.body.size();
    if (answer.status != 200) co_return Internal("list: " + answer.body);
  }
  run.Add("list_10k_ms",
          Median(times),
          "ms",
          {{"objects", std::to_string(creators.created)},
           {"bytes", std::to_string(bytes)},
           {"min", fmt::format("{:.1f}", std::ranges::min(times))},
           {"max", fmt::format("{:.1f}", std::ranges::max(times))}});
  co_return OkStatus();
}

struct Watchers {
  net::HttpClient& client;
  std::string target;
  size_t opened = 0;
  size_t events = 0;
  size_t bytes = 0;

  rt::Task<Status> RunOne() {
    net::HttpClientRequest request;
    request.target = target;
    CO_TRY(const auto stream, co_await client.Open(std::move(request), Duration::Seconds(60)));
    if (stream->status() != 200) co_return Internal("watch: " + std::to_string(stream->status()));
    ++opened;
    while (true) {
      CO_TRY(const auto text, co_await stream->Read());
      if (text.empty()) co_return OkStatus();
      events += static_cast<size_t>(std::ranges::count(text, '\n'));
      bytes += text.size();
    }
  }
};

rt::Task<Status> WaitForEvents(const Watchers& watchers, size_t wanted, Duration limit) {
  rt::Loop& loop = (co_await rt::CurrentContext{}).loop();
  const Time end = loop.Now() + limit;
  while (watchers.events < wanted && loop.Now() < end)
    CO_TRY_STATUS(co_await rt::Sleep(Duration::Millis(2)));
  co_return OkStatus();
}

rt::Task<Status> MeasureWatch(Run& run, const ServerProcess& server, net::HttpClient& client) {
  CO_TRY_STATUS(co_await CreateNamespace(client, "watch"));
  CO_TRY(const auto watch_client, server.NewClient(static_cast<size_t>(run.options.watchers)));
  Watchers watchers{
      .client = *watch_client,
      .target = MachinesPath("watch") + "?watch=true&resourceVersion=0&timeoutSeconds=3600"};
  rt::TaskScope scope(run.loop);
  for (int i = 0; i < run.options.watchers; ++i) scope.Spawn("bench.watch", watchers.RunOne());
  const auto wanted = static_cast<size_t>(run.options.watchers);
  while (watchers.opened < wanted && scope.size() == wanted) {
    CO_TRY_STATUS(co_await rt::Sleep(Duration::Millis(5)));
  }
  // A few writers: what is measured is delivery, not creation.
  Creators creators{.client = client,
                    .machine = run.machine,
                    .path = MachinesPath("watch"),
                    .end = run.loop.Now() + run.options.duration};
  const Time start = run.loop.Now();
  CO_TRY_STATUS(co_await RunCreators(run, creators));
  CO_TRY_STATUS(co_await WaitForEvents(watchers, creators.created * wanted, Duration::Seconds(30)));
  const double seconds = (run.loop.Now() - start).to_seconds();
  run.Add(
      "watch_events_rate",
      static_cast<double>(watchers.events) / seconds,
      "1/s",
      {{"watchers", std::to_string(watchers.opened)},
       {"creates", std::to_string(creators.created)},
       {"expected_events", std::to_string(creators.created * wanted)},
       {"events", std::to_string(watchers.events)},
       {"mb_per_s", fmt::format("{:.0f}", static_cast<double>(watchers.bytes) / 1e6 / seconds)}});
  co_return co_await scope.Close();
}

rt::Task<Status> MeasureMany(Run& run) {
  const std::string folder = run.Folder("many");
  const size_t objects = run.options.listed * kManyPerListed;
  CO_TRY_STATUS(co_await Prefill(run.loop, folder, run.machine, objects));
  std::vector<double> times;
  for (int i = 0; i < std::max(1, run.options.starts / 2); ++i) {
    CO_TRY(const auto server, co_await ServerProcess::Start(run.loop, folder));
    times.push_back(server->ready_ms());
    if (i == 0) {
      CO_TRY_STATUS(co_await rt::Sleep(Duration::Seconds(1)));
      CO_TRY(const double rss, server->RssMb());
      run.Add("rss_100k_mb", rss, "MB", {{"objects", std::to_string(objects)}});
    }
    CO_TRY_STATUS(server->Stop());
  }
  run.Add("ready_100k_ms",
          Median(times),
          "ms",
          {{"objects", std::to_string(objects)}, {"starts", std::to_string(times.size())}});
  co_return OkStatus();
}

rt::Task<Status> MeasureLoad(Run& run) {
  std::vector<std::string> more;
  if (!run.etcd.empty()) more = {"--store", "etcd://" + Join(run.etcd, ",")};
  CO_TRY(const auto server,
         co_await ServerProcess::Start(run.loop, run.Folder("load"), 0, std::move(more)));
  CO_TRY(const auto client, server->NewClient(static_cast<size_t>(run.options.clients)));
  run.options.progress("creating machines");
  CO_TRY_STATUS(co_await MeasureCreates(run, *client));
  run.options.progress("listing machines");
  CO_TRY_STATUS(co_await MeasureList(run, *client));
  run.options.progress("delivering events to watchers");
  CO_TRY_STATUS(co_await MeasureWatch(run, *server, *client));
  co_return server->Stop();
}

// Starts and memory with an etcd would be measured with its state: they are the server's own.
rt::Task<Status> MeasureAll(Run& run) {
  if (!run.etcd.empty()) co_return co_await MeasureLoad(run);
  run.options.progress("starting and stopping empty servers");
  CO_TRY_STATUS(co_await MeasureStarts(run));
  CO_TRY_STATUS(co_await MeasureLoad(run));
  run.options.progress("starting with many machines");
  co_return co_await MeasureMany(run);
}

}  // namespace

Result<std::vector<Figure>> RunApiBench(const ApiBenchOptions& options) {
  TRY(const auto machine, MachineTemplate::Load());
  options.progress("measuring the disk");
  TRY(const double fsyncs, store::MeasureFsyncPerSecond(options.dir, Duration::Seconds(1)));
  rt::AsioLoop loop("bench");
  Run run{
      .loop = loop, .options = options, .machine = machine, .fsync_per_s = fsyncs, .figures = {}};
  run.Add("fsync_per_s", fsyncs, "1/s");
  std::optional<store::EtcdProcesses> etcd;
  if (options.etcd_members > 0) {
    if (::access(kEtcd, X_OK) != 0) {
      return NotFound(std::string(kEtcd) + " is missing: install Debian's etcd-server");
    }
    options.progress("an etcd starts");
    etcd.emplace(
        store::EtcdProcesses::Options{.members = options.etcd_members, .dir = options.dir});
    run.etcd = etcd->endpoints();
  }
  TRY_STATUS(rt::RunTask(loop, MeasureAll(run)));
  return std::move(run.figures);
}

}  // namespace berth::app
