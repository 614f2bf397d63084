// SPDX-License-Identifier: Apache-2.0
#include "store/bench/store_bench.h"

#include <fmt/format.h>
#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/random.h"
#include "rt/asio/asio_loop.h"
#include "rt/join_all.h"
#include "store/bench/fsync_probe.h"
#include "store/rocks/rocks_store.h"

namespace berth::store {
namespace {

constexpr Duration kProbeTime = Duration::Millis(500);
constexpr int kLoaders = 8;
constexpr size_t kLoadBatch = 64;

// About as compressible as an encoded object: words, numbers and punctuation.
std::string MakeValue(Random& random, size_t bytes) {
  std::string value = "{";
  while (value.size() < bytes) {
    value += fmt::format("\"{}\":\"{}\",", random.NameSuffix(6), random.NameSuffix(8));
    value += "\"metadata\":{\"labels\":{\"topology.berth.dev/zone\":\"a\"}},";
  }
  value.resize(bytes);
  return value;
}

// Resident memory of this process, after what was freed went back to the system.
double ResidentMegabytes() {
  ::malloc_trim(0);
  std::FILE* file = std::fopen("/proc/self/statm", "r");
  if (file == nullptr) return 0;
  unsigned long long total = 0;
  unsigned long long resident = 0;
  const int read = std::fscanf(file, "%llu %llu", &total, &resident);
  std::fclose(file);
  if (read != 2) return 0;
  return static_cast<double>(resident) * static_cast<double>(::sysconf(_SC_PAGESIZE)) / 1e6;
}

struct Producers {
  rt::Loop& loop;
  Store& store;
  const StoreBenchOptions& options;
  Time end;
  std::vector<int64_t> latencies;  // nanoseconds
};

rt::Task<Status> Produce(Producers* shared, int number) {
  Random random(static_cast<uint64_t>(number) + 1);
  const Bytes value(MakeValue(random, shared->options.value_bytes));
  for (int i = 0; shared->loop.Now() < shared->end; ++i) {
    const std::string key = fmt::format("/registry/machines/default/p{}-{:08}", number, i);
    Txn txn;
    txn.conditions.push_back(Condition::Absent(key));
    txn.ops.push_back(Op::Put(key, value));
    const Time start = shared->loop.Now();
    CO_TRY(TxnResult result, co_await shared->store.Commit(std::move(txn)));
    if (!result.committed) co_return Internal(fmt::format("key {} exists already", key));
    shared->latencies.push_back((shared->loop.Now() - start).nanos());
  }
  co_return OkStatus();
}

double Percentile(std::vector<int64_t>& sorted, double part) {
  if (sorted.empty()) return 0;
  const auto at = static_cast<size_t>(static_cast<double>(sorted.size() - 1) * part);
  return static_cast<double>(sorted[at]) / 1e6;
}

// Puts the objects number, number + kLoaders batches, ... into the store.
rt::Task<Status> Load(Store* store, const StoreBenchOptions* options, size_t number) {
  Random random(number + 1);
  for (size_t first = number * kLoadBatch; first < options->objects;
       first += kLoaders * kLoadBatch) {
    Txn txn;
    for (size_t i = first; i < std::min(first + kLoadBatch, options->objects); ++i) {
      std::string key = fmt::format(
          "/registry/machines/default/machine-{:x}-{:06}", (i * 2'654'435'761U) & 0xffff, i);
      txn.ops.push_back(Op::Put(std::move(key), Bytes(MakeValue(random, options->value_bytes))));
    }
    CO_TRY_STATUS(co_await store->Commit(std::move(txn)));
  }
  co_return OkStatus();
}

Status JoinOk(rt::AsioLoop& loop, std::vector<rt::Task<Status>> tasks) {
  for (const Status& status : rt::RunTask(loop, rt::JoinAll(std::move(tasks)))) TRY_STATUS(status);
  return OkStatus();
}

class Bench {
 public:
  Bench(const StoreBenchOptions& options, std::string dir)
      : options_(options), dir_(std::move(dir)) {}

  Status MeasureDisk() {
    TRY(const double rate, MeasureFsyncPerSecond(dir_, kProbeTime));
    fsyncs_ = rate;
    Add("fsync_per_s", rate, "1/s");
    return OkStatus();
  }

  Status MeasureCreates() {
    rt::AsioLoop loop("bench");
    TRY(std::unique_ptr<RocksStore> store, RocksStore::Open(loop, {.dir = dir_ + "/creates"}));
    const std::unique_ptr<Store> handle = store->NewHandle();
    const Time start = loop.Now();
    Producers shared{.loop = loop,
                     .store = *handle,
                     .options = options_,
                     .end = start + options_.duration,
                     .latencies = {}};
    std::vector<rt::Task<Status>> tasks;
    for (int i = 0; i < options_.producers; ++i) tasks.push_back(Produce(&shared, i));
    TRY_STATUS(JoinOk(loop, std::move(tasks)));
    const double seconds = (loop.Now() - start).to_seconds();
    std::ranges::sort(shared.latencies);
    const CommitStats stats = store->commit_stats();
    AddN("store_create_rate", static_cast<double>(shared.latencies.size()) / seconds, "1/s");
    AddN("store_create_p50_ms", Percentile(shared.latencies, 0.5), "ms");
    AddN("store_create_p99_ms", Percentile(shared.latencies, 0.99), "ms");
    const auto groups = static_cast<double>(std::max<uint64_t>(stats.groups, 1));
    AddN("store_group_average", static_cast<double>(stats.writes) / groups, "commits");
    return rt::RunTask(loop, store->Close());
  }

  Status MeasureStart() {
    TRY_STATUS(Fill());
    const double before = ResidentMegabytes();
    rt::AsioLoop loop("bench");
    const Time start = loop.Now();
    TRY(std::unique_ptr<RocksStore> store, RocksStore::Open(loop, {.dir = dir_ + "/objects"}));
    Add("store_open_ms", (loop.Now() - start).to_seconds() * 1e3, "ms");
    if (store->key_count() != options_.objects) {
      return Internal(fmt::format(
          "the store has {} keys, {} were written", store->key_count(), options_.objects));
    }
    Add("store_rss_mb", ResidentMegabytes() - before, "MB");
    return rt::RunTask(loop, store->Close());
  }

  std::vector<BenchFigure> Take() { return std::move(figures_); }

 private:
  Status Fill() {
    rt::AsioLoop loop("bench");
    TRY(std::unique_ptr<RocksStore> store, RocksStore::Open(loop, {.dir = dir_ + "/objects"}));
    const std::unique_ptr<Store> handle = store->NewHandle();
    const Time start = loop.Now();
    std::vector<rt::Task<Status>> tasks;
    for (size_t i = 0; i < kLoaders; ++i) tasks.push_back(Load(handle.get(), &options_, i));
    TRY_STATUS(JoinOk(loop, std::move(tasks)));
    const double seconds = (loop.Now() - start).to_seconds();
    Add("store_load_rate", static_cast<double>(options_.objects) / seconds, "1/s");
    return rt::RunTask(loop, store->Close());
  }

  void Add(std::string metric, double value, std::string unit) {
    BenchFigure& figure = figures_.emplace_back();
    figure.metric = std::move(metric);
    figure.value = value;
    figure.unit = std::move(unit);
    figure.params = {{"producers", std::to_string(options_.producers)},
                     {"objects", std::to_string(options_.objects)},
                     {"value_bytes", std::to_string(options_.value_bytes)},
                     {"fsync_per_s", fmt::format("{:.0f}", fsyncs_)}};
  }
  void AddN(const std::string& metric, double value, std::string unit) {
    Add(fmt::format("{}_{}", metric, options_.producers), value, std::move(unit));
  }

  const StoreBenchOptions& options_;
  const std::string dir_;
  double fsyncs_ = 0;
  std::vector<BenchFigure> figures_;
};

}  // namespace

Result<std::vector<BenchFigure>> RunStoreBench(const StoreBenchOptions& options) {
  if (options.producers <= 0 || options.objects == 0 || options.value_bytes > kMaxTxnBytes / 100) {
    return BadRequest(fmt::format(
        "store bench: producers {} and objects {} must be positive, value bytes {} at most {}",
        options.producers,
        options.objects,
        options.value_bytes,
        kMaxTxnBytes / 100));
  }
  std::string dir = options.dir + "/store-bench-XXXXXX";
  if (::mkdtemp(dir.data()) == nullptr) {
    return Unavailable(fmt::format("store bench: cannot make a folder in {}", options.dir));
  }
  Bench bench(options, dir);
  Status status = bench.MeasureDisk();
  if (status.ok()) status = bench.MeasureCreates();
  if (status.ok()) status = bench.MeasureStart();
  std::error_code ignored;
  std::filesystem::remove_all(dir, ignored);
  if (!status.ok()) return status.Wrap("store bench");
  return bench.Take();
}

}  // namespace berth::store
