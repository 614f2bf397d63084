// SPDX-License-Identifier: Apache-2.0
#include "app/bench/abuse_bench.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "app/bench/machine_template.h"
#include "app/bench/prefill.h"
#include "app/bench/server_process.h"
#include "rt/scope.h"
#include "rt/sleep.h"

namespace berth::app {
namespace {

constexpr Duration kThink = Duration::Millis(10);    // between two requests of one client
constexpr Duration kBegin = Duration::Minutes(2);    // for all abusers to be there
constexpr Duration kEvents = Duration::Millis(500);  // between two changes that are watched
constexpr double kRatioMax = 3;                      // what clients that behave may suffer
constexpr std::string_view kConfigMaps = "/api/v1/namespaces/default/configmaps";
constexpr std::string_view kWatched = "/api/v1/namespaces/watched/configmaps";
constexpr std::string_view kMachines = "/apis/compute.ironcore.dev/v1alpha1/machines";
constexpr std::string_view kBinding =
    R"({"metadata":{"name":"bench"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io",)"
    R"("kind":"ClusterRole","name":"cluster-admin"},"subjects":[)"
    R"({"apiGroup":"rbac.authorization.k8s.io","kind":"Group","name":"bench"}]})";

// What a server keeps of a watch that is never read, at most: the lines of one read
// (apiserver/cache/cache_watch.cc), a reference to each object that is still to be told, 16 bytes
// in a vector that has grown, and what every watch costs (apiserver/authn/request_limiter.h). After
// 30 s without progress it is cut off.
constexpr size_t kEventsPerRead = 512;
constexpr size_t kReferenceBytes = 32;
constexpr size_t kWatchBytes = size_t{30} * 1024;
// Of a list that is never read: the piece that is being sent and the one that is being encrypted
// (apiserver/http/read.cc), each a quarter larger than it should be, a reference to each object,
// and what every watch costs.
constexpr size_t kPieceBytes = size_t{320} * 1024;
// Of a connection that says nothing: the beginning of a handshake.
constexpr size_t kSilentBytes = size_t{30} * 1024;
// Everything else that has grown meanwhile: what the four clients have made, the lists and
// documents that are being read, and what the allocator keeps of it.
constexpr size_t kGrowthBytes = size_t{64} * 1024 * 1024;

net::HttpClientRequest Post(std::string_view target, std::string body) {
  net::HttpClientRequest request;
  request.method = "POST";
  request.target = target;
  request.headers.Set("Content-Type", "application/json");
  request.body.emplace_back(body);
  return request;
}

std::string ConfigMap(const std::string& name) {
  return R"({"metadata":{"name":")" + name + R"("},"data":{"k":"v"}})";
}

rt::Task<Status> Make(net::HttpClient* client, std::string target, std::string body) {
  CO_TRY(const auto answer, co_await client->Send(Post(target, std::move(body))));
  if (answer.status != 201) co_return Internal("POST " + target + ": " + answer.body);
  co_return OkStatus();
}

// Clients that behave: each creates an object and reads it, one request at a time, with pauses.
struct Others {
  net::HttpClient& client;
  Time end;
  int next = 0;
  std::vector<double> latencies_ms;
  int refused = 0;

  rt::Task<Status> Timed(net::HttpClientRequest request, std::string user) {
    rt::Loop& loop = (co_await rt::CurrentContext{}).loop();
    request.headers.Set("Impersonate-User", std::move(user));
    request.headers.Set("Impersonate-Group", "bench");
    const Time start = loop.Now();
    CO_TRY(const auto answer, co_await client.Send(std::move(request)));
    latencies_ms.push_back((loop.Now() - start).to_seconds() * 1e3);
    if (answer.status == 429) {
      ++refused;
    } else if (answer.status / 100 != 2) {
      co_return Internal(fmt::format("{} {}", answer.status, answer.body));
    }
    co_return OkStatus();
  }

  rt::Task<Status> RunOne(std::string user) {
    rt::Loop& loop = (co_await rt::CurrentContext{}).loop();
    while (loop.Now() < end) {
      const std::string name = fmt::format("{}-{}-{}", user, loop.Now().nanos(), next++);
      CO_TRY_STATUS(co_await Timed(Post(kConfigMaps, ConfigMap(name)), user));
      CO_TRY_STATUS(co_await rt::Sleep(kThink));
      net::HttpClientRequest read;
      read.target = std::string(kConfigMaps) + "/" + name;
      CO_TRY_STATUS(co_await Timed(std::move(read), user));
      CO_TRY_STATUS(co_await rt::Sleep(kThink));
    }
    co_return OkStatus();
  }
};

struct Run {
  rt::AsioLoop& loop;
  const AbuseBenchOptions& options;
  ServerProcess& server;
  net::HttpClient& client;
  size_t line_bytes;  // of one machine as it is told
  double rss_idle_mb = 0;
  std::vector<Figure> figures;

  size_t stalled_watch_bytes() const {
    return kEventsPerRead * line_bytes + kReferenceBytes * options.machines + kWatchBytes;
  }
  size_t stalled_list_bytes() const {
    return 2 * kPieceBytes + kReferenceBytes * options.machines + kWatchBytes;
  }
  // What all abusers together may take, in MB as rss_abuse_mb is.
  double abuse_mb() const {
    const AbuseCounts& counts = options.counts;
    const auto times = [](int count, size_t bytes) { return static_cast<size_t>(count) * bytes; };
    const size_t bytes = times(counts.watchers, kWatchBytes) + times(counts.silent, kSilentBytes) +
                         times(counts.stalled, stalled_list_bytes()) +
                         times(counts.stalled_watches, stalled_watch_bytes()) + kGrowthBytes;
    return static_cast<double>(bytes) / 1e6;
  }
};

// As a list of one has it: a line of a watch has less around the machine.
rt::Task<Result<size_t>> LineBytes(net::HttpClient* client) {
  const std::string target = std::string(kMachines) + "?limit=1";
  net::HttpClientRequest request;
  request.target = target;
  CO_TRY(const auto answer, co_await client->Send(std::move(request)));
  if (answer.status != 200) co_return Internal("GET " + target + ": " + answer.body);
  co_return answer.body.size();
}

// Something happens in front of the watchers, in both measurements.
rt::Task<Status> Change(Run* run, bool* is_over) {
  for (int i = 0; !*is_over; ++i) {
    const std::string name = fmt::format("e-{}-{}", run->loop.Now().nanos(), i);
    CO_TRY_STATUS(co_await Make(&run->client, std::string(kWatched), ConfigMap(name)));
    CO_TRY_STATUS(co_await rt::Sleep(kEvents));
  }
  co_return OkStatus();
}

rt::Task<Result<double>> Measure(Run* run, std::string phase) {
  Others others{.client = run->client, .end = run->loop.Now() + run->options.duration};
  bool is_over = false;
  rt::TaskScope changes(run->loop);
  changes.Spawn("bench.change", Change(run, &is_over));
  rt::TaskScope scope(run->loop);
  for (int i = 0; i < run->options.clients; ++i) {
    scope.Spawn("bench.other", others.RunOne("other-" + std::to_string(i)));
  }
  CO_TRY_STATUS(co_await scope.Join());
  is_over = true;
  CO_TRY_STATUS(co_await changes.Join());
  const double p99 = Percentile(others.latencies_ms, 0.99);
  run->figures.push_back(
      {.metric = phase + "_p99_ms",
       .value = p99,
       .unit = "ms",
       .params = {{"clients", std::to_string(run->options.clients)},
                  {"requests", std::to_string(others.latencies_ms.size())},
                  {"refused", std::to_string(others.refused)},
                  {"p50_ms", fmt::format("{:.2f}", Median(others.latencies_ms))},
                  {"max_ms", fmt::format("{:.1f}", std::ranges::max(others.latencies_ms))}}});
  CO_TRY(const double rss, run->server.RssMb());
  run->figures.push_back(
      {.metric = "rss_" + phase + "_mb", .value = rss, .unit = "MB", .params = {}});
  co_return p99;
}

// Idle, and what all that is there may take.
void AddMemoryBar(const Run& run, Figure& figure) {
  const AbuseCounts& counts = run.options.counts;
  figure.params["watch_kb_max"] = std::to_string(kWatchBytes / 1024);
  figure.params["silent_kb_max"] = std::to_string(kSilentBytes / 1024);
  figure.params["stalled_list_kb_max"] = std::to_string(run.stalled_list_bytes() / 1024);
  figure.params["stalled_watch_kb_max"] = std::to_string(run.stalled_watch_bytes() / 1024);
  figure.params["growth_kb_max"] = std::to_string(kGrowthBytes / 1024);
  figure.params["watchers"] = std::to_string(counts.watchers);
  figure.params["silent"] = std::to_string(counts.silent);
  figure.params["stalled"] = std::to_string(counts.stalled);
  figure.params["stalled_watches"] = std::to_string(counts.stalled_watches);
  AddBar(figure, std::ceil(run.rss_idle_mb + run.abuse_mb()));
}

rt::Task<Status> WaitForAbusers(Run* run, const AbuseBoard* board) {
  const Time end = run->loop.Now() + kBegin;
  while (!board->has_begun) {
    if (run->loop.Now() >= end) {
      co_return Timeout(fmt::format(
          "{} of {} watchers are there", board->watching.load(), run->options.counts.watchers));
    }
    CO_TRY_STATUS(co_await rt::Sleep(Duration::Millis(10)));
  }
  // What is never read has filled what the kernel holds, and the first lists are through.
  co_return co_await rt::Sleep(Duration::Seconds(2));
}

rt::Task<Status> MeasureBoth(Run* run) {
  CO_TRY_STATUS(co_await Make(&run->client,
                              "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
                              std::string(kBinding)));
  CO_TRY_STATUS(
      co_await Make(&run->client, "/api/v1/namespaces", R"({"metadata":{"name":"watched"}})"));
  run->options.progress("clients alone");
  CO_TRY(const double idle, co_await Measure(run, "idle"));
  run->rss_idle_mb = run->figures.back().value;
  run->options.progress(
      fmt::format("{} watchers, {} lister, {} reader of documents, {} silent, {} lists and {} "
                  "watches that are never read",
                  run->options.counts.watchers,
                  run->options.counts.listers,
                  run->options.counts.readers,
                  run->options.counts.silent,
                  run->options.counts.stalled,
                  run->options.counts.stalled_watches));
  CO_TRY(const uint16_t port, run->server.port());
  const AbuseProcess::Options abuse{
      .counts = run->options.counts,
      .port = port,
      .all = std::string(kMachines),
      .watched = std::string(kWatched) + "?watch=true&timeoutSeconds=3600",
      .watch_all = std::string(kMachines) + "?watch=true&timeoutSeconds=3600",
      .new_client = [run](rt::AsioLoop& loop, size_t most) {
        return run->server.NewClientOn(loop, most);
      }};
  CO_TRY(const auto abusers, AbuseProcess::Start(abuse));
  const AbuseBoard& board = abusers->board();
  CO_TRY_STATUS(co_await WaitForAbusers(run, &board));
  const int64_t lists = board.lists;
  const int64_t documents = board.documents;
  CO_TRY(const double abused, co_await Measure(run, "abuse"));
  AddMemoryBar(*run, run->figures.back());
  run->figures.push_back(
      {.metric = "abuse_ratio",
       .value = abused / idle,
       .unit = "",
       .params = {{"watchers", std::to_string(board.watching.load())},
                  {"silent", std::to_string(board.silent.load())},
                  {"stalled", std::to_string(board.stalled.load())},
                  {"stalled_watches", std::to_string(board.stalled_watches.load())},
                  {"lists", std::to_string(board.lists.load() - lists)},
                  {"documents", std::to_string(board.documents.load() - documents)},
                  {"machines", std::to_string(run->options.machines)},
                  {"events", std::to_string(board.events.load())},
                  {"refused", std::to_string(board.refused.load())}}});
  AddBar(run->figures.back(), kRatioMax);
  co_return OkStatus();
}

rt::Task<Status> MeasureAll(rt::AsioLoop* loop,
                            const AbuseBenchOptions* options,
                            const MachineTemplate* machine,
                            std::vector<Figure>* figures) {
  const std::string folder = options->dir + "/abuse";
  CO_TRY_STATUS(co_await Prefill(*loop, folder, *machine, options->machines));
  CO_TRY(const auto server, co_await ServerProcess::Start(*loop, folder));
  CO_TRY(const auto client, server->NewClient(static_cast<size_t>(options->clients) + 2));
  CO_TRY(const size_t line_bytes, co_await LineBytes(client.get()));
  Run run{.loop = *loop,
          .options = *options,
          .server = *server,
          .client = *client,
          .line_bytes = line_bytes,
          .figures = {}};
  CO_TRY_STATUS(co_await MeasureBoth(&run));
  *figures = std::move(run.figures);
  co_return server->Stop();
}

}  // namespace

Result<std::vector<Figure>> RunAbuseBench(const AbuseBenchOptions& options) {
  TRY(const auto machine, MachineTemplate::Load());
  options.progress("making machines to list");
  rt::AsioLoop loop("bench");
  std::vector<Figure> figures;
  TRY_STATUS(rt::RunTask(loop, MeasureAll(&loop, &options, &machine, &figures)));
  return figures;
}

}  // namespace berth::app
