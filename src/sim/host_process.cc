// SPDX-License-Identifier: Apache-2.0
#include "sim/host_process.h"

#include <utility>

#include "base/check.h"
#include "client/records/host_record.h"
#include "gateway/identity/host_identity.h"

namespace berth::sim {
namespace {

// Of --drain-timeout: short enough for some drains to be given up.
constexpr Duration kDrainLimit = Duration::Seconds(40);

net::RpcCredentials Issue(const pki::CertificateAuthority& authority,
                          const std::string& host,
                          WallTime now) {
  const pki::ClientSubject subject{.user = std::string(client::kHostUserPrefix) + host,
                                   .groups = {std::string(client::kHostGroup)},
                                   .lifetime = gateway::kHostCertificateLifetime};
  auto issued = authority.IssueClient(subject, now);
  CHECK(issued.ok()) << issued.status();
  net::RpcCredentials credentials;
  credentials.certificate_pem = std::move(issued->certificate_pem);
  credentials.key_pem = std::move(issued->key_pem);
  return credentials;
}

}  // namespace

HostProcess::HostProcess(rt::SimLoop& world,
                         net::SimNetwork& network,
                         const pki::CertificateAuthority& authority,
                         Options options,
                         Hooks hooks)
    : options_(std::move(options)),
      loop_(world, options_.name, options_.clock_parts_per_million),
      fake_(loop_, std::make_shared<runtime::FakeHostState>(options_.fake, options_.seed)),
      disk_(options_.seed),
      credentials_(Issue(authority, options_.name, world.WallNow())) {
  if (options_.broken != Broken::kNothing) {
    broken_machines_ = std::make_unique<BrokenMachines>(*fake_.runtimes().machine, options_.broken);
  }
  if (options_.broken == Broken::kLeases && !options_.shape.is_foreign) {
    broken_fencer_ = std::make_unique<BrokenFencer>(*fake_.runtimes().host);
  }
  if (options_.broken == Broken::kOverPromise && !options_.shape.is_foreign) {
    broken_runtime_ = std::make_unique<BrokenHostRuntime>(*fake_.runtimes().host);
  }
  if (options_.broken == Broken::kCutRecord) broken_disk_ = std::make_unique<BrokenDisk>(disk_);
  network.AddNode(options_.name, loop_);
  dialer_ = network.NewDialer(options_.name);
  fake_.state().on_touch = std::move(hooks.touched);
  disk_.OnBegin(std::move(hooks.write_begins));
  disk_.OnWrite(std::move(hooks.written));
}

HostProcess::~HostProcess() { CHECK(poollet_ == nullptr) << options_.name; }

rt::Task<Status> HostProcess::Start() {
  poollet::Poollet::Deps deps;
  deps.loop = &loop_;
  deps.dialer = dialer_.get();
  deps.credentials = &credentials_;
  deps.disk = &disk_;
  if (broken_disk_ != nullptr) deps.disk = broken_disk_.get();
  iri::Runtimes runtimes = fake_.runtimes();
  if (broken_runtime_ != nullptr) runtimes.host = broken_runtime_.get();
  deps.runtimes = poollet::ToHostRuntimes(runtimes);
  if (broken_machines_ != nullptr) deps.runtimes.machine = broken_machines_.get();
  deps.fencer = broken_fencer_.get();
  poollet::Poollet::Options poollet_options;
  std::vector<std::string> kinds = {"MachinePool", "VolumePool"};
  if (options_.shape.has_buckets) kinds.emplace_back("BucketPool");
  for (const std::string& kind : kinds) {
    poollet_options.host.pools.push_back(
        {.kind = kind, .name = options_.pools, .provider_id = "fake://" + options_.name});
  }
  poollet_options.session.drain_limit = kDrainLimit;
  poollet_options.host.servers = options_.servers;
  poollet_options.host.version = "sim";
  CO_TRY(poollet_, co_await poollet::Poollet::Start(deps, std::move(poollet_options)));
  co_return OkStatus();
}

void HostProcess::Leave(poollet::LeaveMode mode, std::function<void()> done) {
  CHECK(poollet_ != nullptr && leaving_ == nullptr) << options_.name;
  leaving_ = std::make_unique<rt::TaskScope>(loop_);
  leaving_->Spawn("sim.leave", Stop(mode, std::move(done)));
}

rt::Task<Status> HostProcess::Stop(poollet::LeaveMode mode, std::function<void()> done) {
  const Status stopped = co_await poollet_->Stop(mode);
  if (stopped.Is(Reason::kCancelled)) co_return stopped;
  left_ = stopped;
  done();
  co_return OkStatus();
}

rt::Task<Status> HostProcess::Kill() {
  if (leaving_ != nullptr) {
    CO_TRY_STATUS(co_await leaving_->Close());
    leaving_.reset();
  }
  const bool has_ended = left_ && left_->ok();
  left_.reset();
  if (!has_ended) {
    disk_.Crash();
    CO_TRY_STATUS(co_await poollet_->Abandon());
  }
  poollet_.reset();
  co_return OkStatus();
}

}  // namespace berth::sim
