// SPDX-License-Identifier: Apache-2.0
#include "app/bench/bench_world.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/strings.h"
#include "client/records/host_record.h"
#include "meta/json.h"
#include "meta/value.h"
#include "rt/backoff.h"
#include "rt/sleep.h"

namespace berth::app {
namespace {

constexpr Duration kPoll = Duration::Millis(1);
constexpr Duration kGonePoll = Duration::Millis(50);
constexpr Duration kBindLimit = Duration::Minutes(2);
// A handshake takes a few milliseconds of both cores.
constexpr Duration kJoinLimit = Duration::Minutes(5);
constexpr Duration kPostLimit = Duration::Minutes(1);
constexpr int kRecordWriters = 16;
constexpr std::string_view kCompute = "/apis/compute.ironcore.dev/v1alpha1";
constexpr std::string_view kSets = "/apis/berth.dev/v1alpha1/namespaces/";

std::string PlacementJson(const std::string& policy, const std::string& on_pool_loss) {
  std::string json = R"("placement":{"policy":")" + policy + '"';
  if (!on_pool_loss.empty()) json += R"(,"onPoolLoss":")" + on_pool_loss + '"';
  return json + '}';
}

std::string NameOf(const CreateRun& run, size_t number) {
  return run.prefix + '-' + std::to_string(number);
}

}  // namespace

std::string MachineJson(const std::string& name, const CreateRun& run) {
  return R"({"apiVersion":"compute.ironcore.dev/v1alpha1","kind":"Machine","metadata":{"name":")" +
         name +
         R"(","labels":{"app.kubernetes.io/name":"storefront","stage":"production"}},)"
         R"("spec":{"machineClassRef":{"name":")" +
         kBenchClass + R"("},)" +
         (run.pool.empty() ? "" : R"("machinePoolRef":{"name":")" + run.pool + R"("},)") +
         R"("power":"On",)" + PlacementJson(run.policy, run.on_pool_loss) + "}}";
}

std::string BuildType() {
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer) || \
    __has_feature(thread_sanitizer)
  return "sanitizer";
#elif defined(__OPTIMIZE__)
  return "release";
#else
  return "debug";
#endif
}

size_t BenchWorld::object_bytes() {
  const CreateRun run{.prefix = "m", .start = {}, .sent = {}};
  return MachineJson("m-1000", run).size();
}

rt::Task<Status> BenchWorld::StartServer() {
  std::error_code error;
  std::filesystem::create_directories(folder_, error);
  if (error) co_return Unavailable(folder_ + ": " + error.message());
  if (gateway_port_ == 0) {
    CO_TRY(gateway_port_, FindFreePort());
  }
  CO_TRY(server_, co_await ServerProcess::Start(loop_, folder_ + "/data", gateway_port_));
  CO_TRY(client_, server_->NewClient(kConnections));
  CO_TRY(watch_client_, server_->NewClient(1));
  co_return OkStatus();
}

rt::Task<Status> BenchWorld::KillServer() {
  server_->Kill();
  if (watching_ != nullptr) CO_TRY_STATUS(co_await watching_->Close());
  watch_client_.reset();
  client_.reset();
  failed_ = OkStatus();
  co_return OkStatus();
}

rt::Task<Status> BenchWorld::Close() {
  if (watching_ != nullptr) CO_TRY_STATUS(co_await watching_->Close());
  watch_client_.reset();
  client_.reset();
  if (server_ != nullptr) server_->Kill();
  co_return OkStatus();
}

rt::Task<Status> BenchWorld::Note(rt::Task<Status> work) {
  const Status status = co_await work;
  if (!status.ok() && !status.Is(Reason::kCancelled) && failed_.ok()) failed_ = status;
  co_return OkStatus();
}

// A server that has too much to do says so, and when to come back: then the same is sent again.
rt::Task<Status> BenchWorld::Post(std::string target, std::string body) {
  const Time end = loop_.Now() + kPostLimit;
  rt::Backoff backoff;
  for (;;) {
    net::HttpClientRequest request;
    request.method = "POST";
    request.target = target;
    request.headers.Set("Content-Type", "application/json");
    request.body.emplace_back(body);
    CO_TRY(const auto answer, co_await client_->Send(std::move(request)));
    if (answer.status == 201) co_return OkStatus();
    if (answer.status != 429 || loop_.Now() > end) {
      co_return Internal("POST " + target + ": " + std::to_string(answer.status) + " " +
                         answer.body.substr(0, 512));
    }
    ++refused_;
    const int64_t told = ParseInt(answer.headers.Get("Retry-After")).value_or(0);
    const Duration pause = std::max(Duration::Seconds(told), backoff.Next(loop_.random()));
    CO_TRY_STATUS(co_await rt::Sleep(pause));
  }
}

rt::Task<Status> BenchWorld::Delete(std::string target) {
  net::HttpClientRequest request;
  request.method = "DELETE";
  request.target = target;
  CO_TRY(const auto answer, co_await client_->Send(std::move(request)));
  if (answer.status == 200 || answer.status == 202 || answer.status == 404) co_return OkStatus();
  co_return Internal("DELETE " + target + ": " + std::to_string(answer.status));
}

rt::Task<Result<std::string>> BenchWorld::Get(std::string target) {
  net::HttpClientRequest request;
  request.target = target;
  CO_TRY(auto answer, co_await client_->Send(std::move(request)));
  if (answer.status == 200) co_return std::move(answer.body);
  co_return Internal("GET " + target + ": " + std::to_string(answer.status));
}

rt::Task<Status> BenchWorld::MakeClass() {
  std::string body = R"({"apiVersion":"compute.ironcore.dev/v1alpha1","kind":"MachineClass",)"
                     R"("metadata":{"name":")" +
                     std::string(kBenchClass) + R"("},"capabilities":{"cpu":"1","memory":"1Gi"}})";
  return Post(std::string(kCompute) + "/machineclasses", std::move(body));
}

rt::Task<Status> BenchWorld::MakeNamespace(std::string name) {
  return Post("/api/v1/namespaces",
              R"({"apiVersion":"v1","kind":"Namespace","metadata":{"name":")" + name + "\"}}");
}

rt::Task<Status> BenchWorld::Watch(std::string name) {
  if (watching_ != nullptr) CO_TRY_STATUS(co_await watching_->Close());
  watch_.Clear();
  namespace_ = name;
  watching_ = std::make_unique<rt::TaskScope>(loop_);
  watching_->Spawn("bench.watch", Note(watch_.Follow(watch_client_.get(), namespace_)));
  while (!watch_.is_open()) {
    CO_TRY_STATUS(failed_);
    CO_TRY_STATUS(co_await rt::Sleep(kPoll));
  }
  co_return OkStatus();
}

std::string HostRecordJson(const std::string& host, WallTime now) {
  client::HostRecord record;
  record.joined = now;
  meta::Value metadata = meta::Value::Object();
  metadata.Set("name", client::HostRecordName(host));
  meta::Value data = meta::Value::Object();
  for (const auto& [name, value] : client::FormatHostRecord(record)) data.Set(name, value);
  meta::Value object = meta::Value::Object();
  object.Set("apiVersion", "v1");
  object.Set("kind", "ConfigMap");
  object.Set("metadata", std::move(metadata));
  object.Set("data", std::move(data));
  return meta::WriteJson(object);
}

rt::Task<Status> BenchWorld::WriteHostRecords(int first, int count, int* next) {
  while (*next < count) {
    const std::string host = BenchHostName(first + (*next)++);
    CO_TRY_STATUS(co_await Post(std::string(kHostRecords), HostRecordJson(host, loop_.WallNow())));
  }
  co_return OkStatus();
}

rt::Task<Status> BenchWorld::Join(HostProcess* hosts, int first, int count) {
  int next = 0;
  {
    rt::TaskScope writers(loop_);
    for (int i = 0; i < kRecordWriters; ++i) {
      writers.Spawn("bench.record", Note(WriteHostRecords(first, count, &next)));
    }
    CO_TRY_STATUS(co_await writers.Join());
    CO_TRY_STATUS(failed_);
  }
  HostPlan plan{
      .server = gateway(), .authority = folder_ + "/data/pki", .first = first, .count = count};
  CO_TRY_STATUS(hosts->Begin(plan));
  const Time end = loop_.Now() + kJoinLimit;
  while (hosts->board().synced.load() < count) {
    if (!hosts->is_alive()) co_return Unavailable("the process of the hosts has ended");
    if (loop_.Now() > end) {
      co_return Timeout(std::to_string(hosts->board().synced.load()) + " of " +
                        std::to_string(count) + " hosts joined within " +
                        FormatDuration(kJoinLimit));
    }
    CO_TRY_STATUS(co_await rt::Sleep(kPoll));
  }
  co_return OkStatus();
}

rt::Task<Status> BenchWorld::CreateSome(CreateRun* run) {
  const std::string target = std::string(kCompute) + "/namespaces/" + namespace_ + "/machines";
  while (failed_.ok() && (run->limit == 0 || run->sent.size() < run->limit) &&
         (run->duration == Duration() || loop_.Now() - run->start < run->duration)) {
    std::string body = MachineJson(NameOf(*run, run->sent.size()), *run);
    run->sent.push_back(loop_.Now());
    CO_TRY_STATUS(co_await Post(target, std::move(body)));
  }
  co_return OkStatus();
}

rt::Task<Status> BenchWorld::Create(CreateRun* run) {
  const size_t others = watch_.bound() - run->sent.size();
  if (run->sent.empty()) run->start = loop_.Now();
  {
    rt::TaskScope creators(loop_);
    for (int i = 0; i < run->creators; ++i) {
      creators.Spawn("bench.create", Note(CreateSome(run)));
    }
    CO_TRY_STATUS(co_await creators.Join());
  }
  CO_TRY_STATUS(failed_);
  co_return co_await WaitForBound(others + run->sent.size(), kBindLimit);
}

rt::Task<Status> BenchWorld::CreateSet(std::string name, int replicas, std::string policy) {
  const std::string label = R"({"bench-set":")" + name + "\"}";
  std::string body =
      R"({"apiVersion":"berth.dev/v1alpha1","kind":"MachineSet","metadata":{"name":")" + name +
      R"("},"spec":{"replicas":)" + std::to_string(replicas) + R"(,"selector":{"matchLabels":)" +
      label + R"(},"template":{"metadata":{"labels":)" + label +
      R"(},"spec":{"machineClassRef":{"name":")" + kBenchClass + R"("},"power":"On",)" +
      PlacementJson(policy, "") + "}}}}";
  return Post(std::string(kSets) + namespace_ + "/machinesets", std::move(body));
}

rt::Task<Status> BenchWorld::DeleteSet(std::string name, Duration limit) {
  const Time end = loop_.Now() + limit;
  CO_TRY_STATUS(co_await Delete(std::string(kSets) + namespace_ + "/machinesets/" + name));
  const std::string machines =
      std::string(kCompute) + "/namespaces/" + namespace_ + "/machines?limit=1";
  for (;;) {
    CO_TRY(const std::string page, co_await Get(machines));
    if (page.find(R"("items":[])") != std::string::npos) co_return OkStatus();
    if (loop_.Now() > end) {
      co_return Timeout("machines of set " + name + " were there after " + FormatDuration(limit));
    }
    CO_TRY_STATUS(co_await rt::Sleep(kGonePoll));
  }
}

rt::Task<Status> BenchWorld::WaitForBound(size_t count, Duration limit) {
  const Time end = loop_.Now() + limit;
  while (watch_.bound() < count) {
    CO_TRY_STATUS(failed_);
    if (loop_.Now() > end) {
      co_return Timeout(std::to_string(watch_.bound()) + " of " + std::to_string(count) +
                        " machines were bound within " + FormatDuration(limit));
    }
    CO_TRY_STATUS(co_await rt::Sleep(kPoll));
  }
  co_return OkStatus();
}

rt::Task<Status> BenchWorld::WaitForRunning(size_t count, Duration limit) {
  const Time end = loop_.Now() + limit;
  while (watch_.running() < count) {
    CO_TRY_STATUS(failed_);
    if (loop_.Now() > end) {
      co_return Timeout(std::to_string(watch_.running()) + " of " + std::to_string(count) +
                        " machines ran within " + FormatDuration(limit));
    }
    CO_TRY_STATUS(co_await rt::Sleep(kPoll));
  }
  co_return OkStatus();
}

std::vector<double> LatenciesMs(const CreateRun& run, const MachineWatch& watch) {
  std::vector<double> latencies;
  latencies.reserve(run.sent.size());
  for (size_t i = 0; i < run.sent.size(); ++i) {
    const MachineWatch::Seen* seen = watch.Find(NameOf(run, i));
    if (seen != nullptr) latencies.push_back((seen->bound - run.sent[i]).to_seconds() * 1e3);
  }
  return latencies;
}

Duration TimeToBind(const CreateRun& run, const MachineWatch& watch) {
  Time last = run.start;
  for (size_t i = 0; i < run.sent.size(); ++i) {
    const MachineWatch::Seen* seen = watch.Find(NameOf(run, i));
    if (seen != nullptr) last = std::max(last, seen->bound);
  }
  return last - run.start;
}

}  // namespace berth::app
