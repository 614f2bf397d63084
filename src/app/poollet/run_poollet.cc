// SPDX-License-Identifier: Apache-2.0
#include "app/poollet/run_poollet.h"

#include <sys/stat.h>

#include <csignal>
#include <map>
#include <memory>
#include <utility>

#include "app/poollet/fencer_command.h"
#include "app/poollet/hardware.h"
#include "app/poollet/metrics_page.h"
#include "app/process/open_files.h"
#include "app/process/span_log.h"
#include "app/process/start_pages.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/version.h"
#include "cli/failure.h"
#include "iri/grpc/client.h"
#include "iri/grpc/endpoint.h"
#include "net/h2/h2_dialer.h"
#include "pki/private_file.h"
#include "poollet/disk/file_disk.h"
#include "poollet/fencer/host_sleep.h"
#include "poollet/fencer/process_fencer.h"
#include "poollet/identity/identity.h"
#include "poollet/poollet.h"
#include "poollet/reconcile/driver.h"
#include "rt/asio/asio_loop.h"
#include "rt/backoff.h"
#include "rt/child_context.h"
#include "rt/event.h"
#include "rt/loop_lag.h"
#include "rt/sleep.h"
#include "rt/thread_pool.h"

namespace berth::app {
namespace {

// What a runtime says is heard, and not only that it took its time.
static_assert(iri::kAskLimit < poollet::kCallLimit && iri::kChangeLimit < poollet::kCallLimit);

// What a process needs for one poollet. Members end in reverse order.
class PoolletProcess {
 public:
  PoolletProcess(rt::AsioLoop& loop, PoolletRunOptions options)
      : loop_(loop),
        options_(std::move(options)),
        lag_(loop, "main", registry_),
        pool_({.threads = 1, .queue_max = 1024, .name = "disk"}),
        disk_(options_.data_dir, pool_),
        dialer_(loop) {}

  rt::Task<Status> Run(std::function<void()> on_ready) {
    Status started;
    {
      // A runtime or a server may be away for long: waiting for them ends with the first signal.
      rt::ChildContext child(co_await rt::CurrentContext());
      cancellable_ = &child;
      rt::Task<Status> start = Start();
      started = co_await start.In(child.context());
      cancellable_ = nullptr;
    }
    if (started.ok() && !stop_.is_set()) {
      on_ready();
      const rt::TimerId trim = loop_.After("poollet.trim", kStartOver, &GiveBackStartPages);
      started = co_await stop_.Wait();
      loop_.CancelTimer(trim);
    }
    const bool was_stopped = stop_.is_set();
    const Status ended = co_await End();
    co_return started.ok() || was_stopped ? ended : started;
  }

  // The first call asks for an end, the second one for an end now.
  void Signal() {
    if (cancellable_ != nullptr) cancellable_->Cancel();
    stop_.Set();
  }

 private:
  rt::Task<Status> Start() {
    CO_TRY_STATUS(co_await FindRuntimes());
    CO_TRY_STATUS(co_await StartFencer());
    CO_TRY_STATUS(co_await Join());
    co_return co_await StartPoollet();
  }

  rt::Task<Status> End() {
    if (poollet_ != nullptr) CO_TRY_STATUS(co_await LeaveServer());
    if (metrics_ != nullptr) CO_TRY_STATUS(co_await metrics_->Stop());
    if (identity_ != nullptr) CO_TRY_STATUS(co_await identity_->Close());
    if (fencer_ != nullptr) CO_TRY_STATUS(co_await fencer_->Close());
    co_return OkStatus();
  }

  rt::Task<Status> LeaveServer() {
    LOG_INFO("leaving: {}",
             options_.on_stop == poollet::LeaveMode::kDrain ? "drain" : "everything runs on");
    rt::ChildContext child(co_await rt::CurrentContext());
    cancellable_ = &child;
    rt::Task<Status> stop = poollet_->Stop(options_.on_stop);
    const Status stopped = co_await stop.In(child.context());
    cancellable_ = nullptr;
    if (stopped.ok()) co_return stopped;
    LOG_WARNING("leaving at once: {}", stopped.message());
    co_return co_await poollet_->Abandon();
  }

  iri::RuntimeClient& ClientFor(const std::string& path) {
    auto& client = clients_[path];
    if (client != nullptr) return *client;
    iri::RuntimeClientOptions options;
    options.allowed_uids = options_.runtime_users;
    client = std::make_unique<iri::RuntimeClient>(loop_, path, std::move(options));
    return *client;
  }

  rt::Task<Result<iri::Runtimes>> FindRuntime(iri::RuntimeKind kind, PoolRuntime runtime) {
    iri::EndpointSearch search;
    search.kind = kind;
    search.flag = runtime.endpoint;
    search.variable = runtime.variable;
    if (search.flag.empty() && search.variable.empty()) {
      LOG_INFO(
          "looking for a runtime of {} for up to {}", runtime.pool, FormatDuration(search.limit));
    }
    const auto endpoint = co_await iri::FindEndpoint(std::move(search));
    if (!endpoint.ok()) {
      co_return cli::Advise(
          endpoint.status(),
          "start one (berth runtime --help), or name its socket: " + runtime.flag + " unix:/PATH");
    }
    const std::string path = *endpoint;
    iri::RuntimeClient& client = ClientFor(path);
    rt::Backoff backoff;
    while (true) {
      const auto found = co_await client.Discover();
      if (found.ok()) co_return *found;
      if (found.status().Is(Reason::kForbidden)) co_return found.status();
      LOG_WARNING("runtime {}: {}", path, found.status().message());
      CO_TRY_STATUS(co_await rt::Sleep(backoff.Next(loop_.random())));
    }
  }

  rt::Task<Status> FindRuntimes() {
    if (!options_.machine.pool.empty()) {
      CO_TRY(const auto found, co_await FindRuntime(iri::RuntimeKind::kMachine, options_.machine));
      if (found.machine == nullptr) co_return BadRequest("the machine runtime serves no machines");
      runtimes_.machine = found.machine;
      runtimes_.machine_host = found.host;
    }
    if (!options_.volume.pool.empty()) {
      CO_TRY(const auto found, co_await FindRuntime(iri::RuntimeKind::kVolume, options_.volume));
      if (found.volume == nullptr) co_return BadRequest("the volume runtime serves no volumes");
      runtimes_.volume = found.volume;
      runtimes_.volume_host = found.host;
    }
    if (!options_.bucket.pool.empty()) {
      CO_TRY(const auto found, co_await FindRuntime(iri::RuntimeKind::kBucket, options_.bucket));
      if (found.bucket == nullptr) co_return BadRequest("the bucket runtime serves no buckets");
      runtimes_.bucket = found.bucket;
      runtimes_.bucket_host = found.host;
    }
    co_return OkStatus();
  }

  // Leases of guests that are processes are kept by a process of their own; other runtimes keep
  // them themselves, or have none. A runtime that does not know its guests yet holds up nobody:
  // nothing of it starts before it does, and nothing that may move before its fencer has it.
  rt::Task<Status> StartFencer() {
    iri::HostRuntime* const host = runtimes_.machine_host;
    if (host == nullptr) co_return OkStatus();
    rt::Backoff backoff;
    while (true) {
      const auto is_needed = co_await poollet::NeedsProcessFencer(host);
      if (is_needed.ok() && !*is_needed) co_return OkStatus();
      if (is_needed.ok()) break;
      LOG_WARNING("machine runtime: {}", is_needed.status().message());
      CO_TRY_STATUS(co_await rt::Sleep(backoff.Next(loop_.random())));
    }
    const std::string folder = options_.data_dir + "/fencer";
    CO_TRY_STATUS(pki::EnsurePrivateFolder(folder));
    launcher_.emplace(folder);
    std::function<Status()> launch = [this] { return launcher_->Launch(); };
    fencer_ = std::make_unique<poollet::ProcessFencer>(loop_, *host, folder, std::move(launch));
    fencer_->Start();
    co_return OkStatus();
  }

  rt::Task<Status> Join() {
    rt::Backoff backoff;
    while (true) {
      poollet::IdentityOptions options;
      options.host = options_.host;
      options.token = options_.token;
      options.servers = options_.servers;
      auto identity = co_await poollet::Identity::Open(loop_, disk_, dialer_, std::move(options));
      if (identity.ok()) {
        identity_ = *std::move(identity);
        identity_->Start();
        co_return OkStatus();
      }
      if (!identity.status().Is(Reason::kUnavailable) && !identity.status().Is(Reason::kTimeout)) {
        co_return identity.status();
      }
      LOG_WARNING("{}", identity.status().message());
      CO_TRY_STATUS(co_await rt::Sleep(backoff.Next(loop_.random())));
    }
  }

  void AddPool(std::string kind, const PoolRuntime& runtime, poollet::HostOptions& options) const {
    if (runtime.pool.empty()) return;
    poollet::PoolSetup setup;
    setup.kind = std::move(kind);
    setup.name = runtime.pool;
    setup.provider_id = "berth://" + identity_->stored().host + "/" + runtime.pool;
    options.pools.push_back(std::move(setup));
  }

  rt::Task<Status> StartPoollet() {
    poollet::Poollet::Deps deps;
    deps.loop = &loop_;
    deps.dialer = &dialer_;
    deps.credentials = identity_.get();
    deps.disk = &disk_;
    deps.runtimes = runtimes_;
    deps.fencer = fencer_.get();
    deps.slept = &poollet::SleptSinceBoot;
    poollet::Poollet::Options options;
    AddPool("MachinePool", options_.machine, options.host);
    AddPool("VolumePool", options_.volume, options.host);
    AddPool("BucketPool", options_.bucket, options.host);
    options.host.facts = ReadHardware(options_.data_dir);
    options.host.servers = options_.servers;
    for (const auto& server : identity_->stored().servers) options.host.servers.push_back(server);
    options.host.version = std::string(kVersion);
    options.host.statistics_interval = options_.statistics_interval;
    options.host.watch.poll_interval = options_.poll_interval;
    options.host.mass_deletion = options_.mass_deletion;
    options.session.drain_limit = options_.drain_limit;
    if (!options_.trace.empty()) {
      CO_TRY(spans_, SpanLog::Open(loop_, options_.trace));
      options.host.trace = [spans = spans_.get()](std::string_view step, std::string_view uid) {
        spans->Mark("poollet." + std::string(step), uid);
      };
    }
    CO_TRY(poollet_, co_await poollet::Poollet::Start(deps, std::move(options)));
    if (!options_.metrics.empty()) {
      CO_TRY(metrics_, MetricsPage::Start(loop_, options_.metrics, *poollet_, registry_));
    }
    co_return OkStatus();
  }

  rt::AsioLoop& loop_;
  const PoolletRunOptions options_;
  metrics::Registry registry_;
  rt::LoopLag lag_;
  rt::ThreadPool pool_;
  poollet::FileDisk disk_;
  net::H2Dialer dialer_;
  std::map<std::string, std::unique_ptr<iri::RuntimeClient>> clients_;  // by socket
  poollet::HostRuntimes runtimes_;
  std::optional<FencerLauncher> launcher_;
  std::unique_ptr<poollet::ProcessFencer> fencer_;  // if the guests are processes
  std::unique_ptr<poollet::Identity> identity_;
  std::unique_ptr<SpanLog> spans_;  // or none, and then nothing is traced
  std::unique_ptr<poollet::Poollet> poollet_;
  std::unique_ptr<MetricsPage> metrics_;
  rt::Event stop_;
  rt::ChildContext* cancellable_ = nullptr;  // what the next signal breaks off
};

}  // namespace

Status RunPoollet(PoolletRunOptions options, std::function<void()> on_ready) {
  umask(0077);  // nothing that a poollet writes is for others
  RaiseOpenFiles(kOpenFilesWantedOfHost);
  TRY_STATUS(pki::EnsurePrivateFolder(options.data_dir));
  rt::AsioLoop loop("main");
  PoolletProcess process(loop, std::move(options));
  loop.OnSignal({SIGTERM, SIGINT}, [&process](int) { process.Signal(); });
  return rt::RunTask(loop, process.Run(std::move(on_ready)));
}

}  // namespace berth::app
