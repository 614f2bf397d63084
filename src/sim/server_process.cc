// SPDX-License-Identifier: Apache-2.0
#include "sim/server_process.h"

#include <algorithm>
#include <utility>

#include "apiserver/policy/bootstrap.h"
#include "apiserver/registry/cluster_identity.h"
#include "client/records/cluster_record.h"
#include "rt/sleep.h"

namespace berth::sim {
namespace {

std::vector<const meta::KindInfo*> StoredKinds(const meta::Scheme& scheme) {
  std::vector<const meta::KindInfo*> kinds;
  for (const meta::KindInfo* kind : scheme.kinds()) {
    if (kind->storage == meta::Storage::kStored) kinds.push_back(kind);
  }
  return kinds;
}

apiserver::Identity Own() {
  return {.user = "system:berth", .groups = {"system:masters"}, .uid = {}};
}

// Longer than any run is, which has 660 minutes at most (scenario.cc): a wake-up that was missed
// must not be made good by a look that comes all the same.
constexpr Duration kNoRecheck = Duration::Minutes(24 * 60);
// As servers that share a store do (app/server.cc).
constexpr Duration kSharedHeartbeat = Duration::Millis(500);
constexpr Duration kListEvery = Duration::Seconds(10);
// What a leader that takes its time loses before it begins (Broken::kSluggish).
constexpr Duration kSluggish = Duration::Seconds(4);

}  // namespace

ServerProcess::ServerProcess(Deps deps, Options options)
    : deps_(std::move(deps)),
      options_(std::move(options)),
      starting_(deps_.loop),
      standing_(deps_.loop),
      following_(deps_.loop),
      scope_(deps_.loop),
      second_scope_(deps_.loop),
      requests_(deps_.loop) {}

ServerProcess::~ServerProcess() = default;

rt::Task<Status> ServerProcess::OpenStore() {
  if (deps_.shared != nullptr) {
    handle_ = deps_.shared->NewHandle(*deps_.link);
  } else {
    CO_TRY_STATUS(co_await OpenOwnStore());
  }
  broken_store_ = std::make_unique<BrokenStore>(*handle_, options_.broken);
  watched_ = std::make_unique<WatchedStore>(*broken_store_, deps_.acknowledged);
  faulty_ = std::make_unique<store::FaultyStore>(*watched_, options_.seed, store::StoreFaults{});
  co_return OkStatus();
}

rt::Task<Status> ServerProcess::OpenOwnStore() {
  memory_ = store::MemoryStore::Open(deps_.loop, deps_.disk);
  handle_ = memory_->NewHandle();
  raw_ = memory_->NewHandle();
  if (options_.rewound) CO_TRY_STATUS(co_await Rewind());
  store::RangeRequest all;
  all.start = "/";
  all.end = store::PrefixEnd("/");
  CO_TRY(const store::RangeResult range, co_await raw_->Range(std::move(all)));
  deps_.reader.Loaded(range);
  loaded_ = range.revision;
  following_.Spawn("sim.follow", Follow());
  co_return OkStatus();
}

// As `berth restore` does.
rt::Task<Status> ServerProcess::Rewind() {
  constexpr int64_t kRevisionJump = 1'000'000'000;
  CO_TRY(const store::Revision copied, co_await raw_->CurrentRevision());
  const int64_t behind = std::max<int64_t>(0, options_.rewound->revision.value - copied.value);
  memory_->SkipRevisions(behind + kRevisionJump);
  CO_TRY_STATUS(
      co_await apiserver::BeginIncarnation(deps_.loop, *raw_, options_.rewound->replaced));
  CO_TRY(const store::Revision begun, co_await raw_->CurrentRevision());
  co_return co_await raw_->Compact(begun);
}

rt::Task<Status> ServerProcess::Follow() {
  store::WatchRequest request;
  request.start = "/";
  request.end = store::PrefixEnd("/");
  request.from = loaded_.Next();
  CO_TRY(const std::unique_ptr<store::Watch> watch, co_await raw_->StartWatch(std::move(request)));
  for (;;) {
    CO_TRY(const store::WatchBatch batch, co_await watch->Next());
    deps_.reader.Changed(batch);
  }
}

rt::Task<Status> ServerProcess::StartParts(store::Store* store, apiserver::LoopbackClient* client) {
  // Sets go on to remove what is too many: only the loss of a host is not noticed. What waits for
  // its user goes on to wait: only hosts are told to delete it.
  const bool are_well =
      options_.broken == Broken::kNoReplace || options_.broken == Broken::kUsedDisk;
  const Broken broken = are_well ? Broken::kNothing : options_.broken;
  controllers_client_ = std::make_unique<BrokenClient>(*client, broken);
  controllers_ = std::make_unique<controller::BuiltinControllers>(
      deps_.loop, *controllers_client_, deps_.scheme);
  scope_.Spawn("controllers", controllers_->Run());
  compactor_ = std::make_unique<apiserver::Compactor>(*faulty_);
  scope_.Spawn("compactor", compactor_->Run());
  CO_TRY(cluster_, co_await apiserver::CountStart(deps_.loop, *store));
  CO_TRY_STATUS(co_await client::PublishCluster(*client, cluster_));
  broken_binder_ = std::make_unique<BrokenBinder>(*client, options_.broken);
  binder_ = std::make_unique<WatchedBinder>(*broken_binder_, deps_.moments, options_.seed);
  app::FleetPartsOptions parts_options;
  parts_options.servers = {AddressOf(options_.node)};
  parts_options.scheduler_seed = options_.seed;
  parts_options.recheck = kNoRecheck;
  if (deps_.shared != nullptr) parts_options.heartbeat = kSharedHeartbeat;
  parts_client_ = std::make_unique<BrokenClient>(*client, options_.broken);
  parts_ = std::make_unique<app::FleetParts>(
      app::FleetParts::Deps{.loop = deps_.loop,
                            .client = *parts_client_,
                            .binder = *binder_,
                            .tombstones = *client,
                            .rewound = *client,
                            .scheme = deps_.scheme,
                            .authority = deps_.authority,
                            .entropy = deps_.entropy,
                            .metrics = metrics_,
                            .view = [this](fleet::Fleet& gateway) -> fleet::Fleet& {
                              fleet_ = std::make_unique<WatchedFleet>(gateway, deps_.moments);
                              return *fleet_;
                            },
                            .leads = [this] { return holds_lease(); }},
      cluster_,
      std::move(parts_options));
  net::SimServerOptions server_options;
  server_options.client_ca_pem = deps_.authority.certificate_pem();
  server_options.expired_client_certificates = net::ExpiredCertificates::kMark;
  CO_TRY(server_, deps_.network.Serve(options_.node, server_options, parts_->routes()));
  controllers_->UseBulk(&parts_->scheduler().bulk());
  is_leading_ = true;
  co_return OkStatus();
}

// As app/server.cc does.
void ServerProcess::StartCandidacy() {
  app::ServerPlace place{.id = options_.node,
                         .url = "https://" + options_.node,
                         .gateways = {AddressOf(options_.node)}};
  list_ = std::make_unique<app::ServerList>(deps_.loop, *client_, place);
  candidacy_ = std::make_unique<app::Candidacy>(
      app::Candidacy::Deps{.loop = deps_.loop, .store = *faulty_, .client = *client_},
      app::CandidacyOptions{.id = options_.node,
                            .run = std::to_string(options_.life),
                            .url = place.url,
                            .on_deposed = options_.on_deposed});
  standing_.Spawn("server.list", list_->Run());
  standing_.Spawn("server.candidacy", candidacy_->Run());
  standing_.Spawn("server.lead", Lead());
}

rt::Task<Status> ServerProcess::StartReign(store::Condition fence) {
  reign_ = fence.mod_revision;
  reign_store_ = std::make_unique<ReignStore>(*faulty_, *deps_.witness, reign_);
  store::Store* store = reign_store_.get();
  if (options_.broken != Broken::kFence) {
    fenced_ = std::make_unique<store::FencedStore>(
        *reign_store_, std::move(fence), [this] { candidacy_->Depose(); });
    store = fenced_.get();
  }
  reign_registry_ =
      std::make_unique<apiserver::StoreRegistry>(deps_.loop, *store, *cache_, deps_.scheme);
  reign_client_ =
      std::make_unique<apiserver::LoopbackClient>(*reign_registry_, deps_.scheme, Own());
  if (options_.broken == Broken::kSluggish) CO_TRY_STATUS(co_await rt::Sleep(kSluggish));
  co_return co_await StartParts(store, reign_client_.get());
}

rt::Task<Status> ServerProcess::Lead() {
  const auto fence = co_await candidacy_->Elected();
  if (!fence.ok()) co_return fence.status();
  const Status started = co_await StartReign(*fence);
  if (started.Is(Reason::kCancelled)) co_return started;
  if (!started.ok()) {
    candidacy_->Depose();
    co_return started;
  }
  for (;;) {
    auto gateways = co_await list_->Gateways();
    if (gateways.ok()) parts_->gateway().SetServers(*std::move(gateways));
    CO_TRY_STATUS(co_await rt::Sleep(kListEvery));
  }
}

rt::Task<Status> ServerProcess::Start() {
  CO_TRY_STATUS(co_await OpenStore());
  CO_TRY(cache_,
         co_await apiserver::WatchCache::Start(
             deps_.loop, *faulty_, StoredKinds(deps_.scheme), apiserver::WatchCacheOptions()));
  registry_ =
      std::make_unique<apiserver::StoreRegistry>(deps_.loop, *faulty_, *cache_, deps_.scheme);
  CO_TRY_STATUS(co_await apiserver::EnsureDefaults(*registry_, deps_.scheme));
  client_ = std::make_unique<apiserver::LoopbackClient>(*registry_, deps_.scheme, Own());
  users_client_ = std::make_unique<BrokenClient>(*client_, options_.broken);
  if (deps_.shared == nullptr) {
    CO_TRY_STATUS(co_await StartParts(faulty_.get(), client_.get()));
  } else {
    StartCandidacy();
  }
  faulty_->SetFaults(options_.faults);
  is_serving_ = true;
  co_return OkStatus();
}

rt::Task<Status> ServerProcess::BeginTask(std::function<void(Status)> done) {
  const Status started = co_await Start();
  if (!started.Is(Reason::kCancelled)) done(started);
  co_return OkStatus();
}

void ServerProcess::Begin(std::function<void(Status)> done) {
  starting_.Spawn("sim.start", BeginTask(std::move(done)));
}

rt::Task<Status> ServerProcess::Kill() {
  is_serving_ = false;
  is_leading_ = false;
  if (watched_ != nullptr) watched_->Die();
  CO_TRY_STATUS(co_await starting_.Close());
  CO_TRY_STATUS(co_await requests_.Close());
  CO_TRY_STATUS(co_await standing_.Close());
  CO_TRY_STATUS(co_await second_scope_.Close());
  if (parts_ != nullptr) {
    CO_TRY_STATUS(co_await parts_->StopPlacing());
    CO_TRY_STATUS(co_await parts_->StopSessions());
  }
  if (server_ != nullptr) CO_TRY_STATUS(co_await server_->Stop());
  CO_TRY_STATUS(co_await scope_.Close());
  if (cache_ != nullptr) CO_TRY_STATUS(co_await cache_->Close());
  CO_TRY_STATUS(co_await following_.Close());
  parts_.reset();
  second_.reset();
  server_.reset();
  fleet_.reset();
  binder_.reset();
  broken_binder_.reset();
  compactor_.reset();
  controllers_.reset();
  controllers_client_.reset();
  parts_client_.reset();
  reign_client_.reset();
  reign_registry_.reset();
  fenced_.reset();
  reign_store_.reset();
  candidacy_.reset();
  list_.reset();
  users_client_.reset();
  client_.reset();
  registry_.reset();
  cache_.reset();
  faulty_.reset();
  watched_.reset();
  broken_store_.reset();
  handle_.reset();
  raw_.reset();
  if (memory_ != nullptr) CO_TRY_STATUS(co_await memory_->Close());
  co_return OkStatus();
}

void ServerProcess::StartSecondScheduler() {
  scheduler::SchedulerOptions options;
  options.holder = cluster_.id + "-second";
  options.take_over = client::TakeOver::kAtOnce;
  options.seed = options_.seed + 1;
  options.placer.recheck = kNoRecheck;
  second_ =
      std::make_unique<scheduler::Scheduler>(scheduler::Scheduler::Deps{.loop = deps_.loop,
                                                                        .client = *parts_client_,
                                                                        .binder = *binder_,
                                                                        .fleet = *fleet_,
                                                                        .scheme = deps_.scheme,
                                                                        .metrics = second_metrics_},
                                             std::move(options));
  second_scope_.Spawn("second scheduler", second_->Run());
}

rt::Task<Status> ServerProcess::StopSecondScheduler() {
  // A scope that was closed starts nothing any more, so one life has one second scheduler.
  CO_TRY_STATUS(co_await second_scope_.Close());
  co_return OkStatus();
}

}  // namespace berth::sim
