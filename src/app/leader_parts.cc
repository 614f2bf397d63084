// SPDX-License-Identifier: Apache-2.0
#include "app/leader_parts.h"

#include <utility>

#include "apis/k8s/certificate_signing_request.h"
#include "apiserver/registry/cluster_identity.h"
#include "apiserver/registry/compactor.h"
#include "apiserver/registry/loopback_client.h"
#include "apiserver/registry/store_registry.h"
#include "base/log.h"
#include "client/cache/health_report.h"
#include "client/certificates/signers.h"
#include "controller/builtin/builtin_controllers.h"
#include "controller/certificates/certificate_signer.h"
#include "rt/join_all.h"
#include "rt/scope.h"
#include "rt/sleep.h"
#include "store/fenced/fenced_store.h"

namespace berth::app {
namespace {

// What controllers leave to the first hosts and the first placements after a start.
constexpr Duration kControllersPause = Duration::Millis(300);

}  // namespace

// Members are declared in the order in which they start; Stop() goes backwards.
struct LeaderParts::Parts {
  Parts(Deps the_deps, std::optional<Reign> the_reign)
      : deps(the_deps), reign(std::move(the_reign)), scope(the_deps.loop) {}

  Deps deps;
  const std::optional<Reign> reign;
  std::unique_ptr<store::FencedStore> fenced;              // if there is a reign
  std::unique_ptr<apiserver::StoreRegistry> own_registry;  // on it
  std::unique_ptr<apiserver::LoopbackClient> client;
  std::unique_ptr<controller::BuiltinControllers> controllers;
  std::unique_ptr<controller::CertificateSigner> signer;
  std::unique_ptr<apiserver::Compactor> compactor;
  std::unique_ptr<FleetServer> fleet;
  rt::TaskScope scope;  // controllers

  store::Store& store() { return fenced != nullptr ? *fenced : deps.store; }
  void MakeClient();
  void MakeControllers();
  rt::Task<Status> StartFleet(FleetServerOptions options);
  rt::Task<Status> RunControllers();
  bool MayBootstrap(const apis::k8s::CertificateSigningRequestSpec& request,
                    const client::PoolSubject& pool) const;
  rt::Task<Status> StartAll(FleetServerOptions options);
  rt::Task<Status> StopAll();
};

void LeaderParts::Parts::MakeClient() {
  apiserver::Registry* registry = &deps.registry;
  if (reign) {
    fenced = std::make_unique<store::FencedStore>(deps.store, reign->fence, reign->on_deposed);
    own_registry =
        std::make_unique<apiserver::StoreRegistry>(deps.loop, *fenced, deps.cache, deps.scheme);
    registry = own_registry.get();
  }
  const apiserver::Identity identity{
      .user = "system:berth", .groups = {"system:masters"}, .uid = {}};
  client = std::make_unique<apiserver::LoopbackClient>(*registry, deps.scheme, identity);
}

void LeaderParts::Parts::MakeControllers() {
  controllers = std::make_unique<controller::BuiltinControllers>(deps.loop, *client, deps.scheme);
  signer = std::make_unique<controller::CertificateSigner>(
      deps.loop,
      *client,
      deps.scheme,
      deps.authority,
      [this](const auto& request, const client::PoolSubject& pool) {
        return MayBootstrap(request, pool);
      });
  compactor = std::make_unique<apiserver::Compactor>(deps.store);
  scope.Spawn("compactor", compactor->Run());
}

// They read everything too, which can wait until the first hosts are back.
rt::Task<Status> LeaderParts::Parts::RunControllers() {
  CO_TRY_STATUS(co_await fleet->placing().Wait());
  CO_TRY_STATUS(co_await rt::Sleep(kControllersPause));
  std::vector<rt::Task<Status>> tasks;
  tasks.push_back(controllers->Run());
  tasks.push_back(signer->Run());
  const std::vector<Status> ends = co_await rt::JoinAll(std::move(tasks));
  co_return ends.front();
}

bool LeaderParts::Parts::MayBootstrap(const apis::k8s::CertificateSigningRequestSpec& request,
                                      const client::PoolSubject& pool) const {
  const meta::KindInfo& kind = apis::k8s::kCertificateSigningRequestKind;
  return deps.authorizer.AllowsByRoles({.user = request.username, .groups = request.groups},
                                       {.is_resource = true,
                                        .verb = "create",
                                        .group = std::string(kind.group),
                                        .version = std::string(kind.version),
                                        .resource = std::string(kind.plural),
                                        .subresource = pool.subresource,
                                        .name = pool.pool});
}

rt::Task<Status> LeaderParts::Parts::StartFleet(FleetServerOptions options) {
  CO_TRY(auto cluster, co_await apiserver::CountStart(deps.loop, store()));
  if (reign) options.leads = reign->leads;
  const FleetServer::Deps fleet_deps{.loop = deps.loop,
                                     .client = *client,
                                     .scheme = deps.scheme,
                                     .authority = deps.authority,
                                     .metrics = deps.metrics,
                                     .scheduling = deps.scheduling};
  CO_TRY(fleet, co_await FleetServer::Start(fleet_deps, std::move(cluster), std::move(options)));
  controllers->UseBulk(&fleet->bulk());
  scope.Spawn("controllers", RunControllers());
  co_return OkStatus();
}

rt::Task<Status> LeaderParts::Parts::StartAll(FleetServerOptions options) {
  MakeClient();
  MakeControllers();
  co_return co_await StartFleet(std::move(options));
}

rt::Task<Status> LeaderParts::Parts::StopAll() {
  if (fleet != nullptr) CO_TRY_STATUS(co_await fleet->Stop());
  co_return co_await scope.Close();
}

rt::Task<Result<std::unique_ptr<LeaderParts>>> LeaderParts::Start(Deps deps,
                                                                  FleetServerOptions fleet,
                                                                  std::optional<Reign> reign) {
  auto parts = std::make_unique<Parts>(deps, std::move(reign));
  const Status started = co_await parts->StartAll(std::move(fleet));
  if (!started.ok()) {
    const Status stopped = co_await parts->StopAll();
    if (!stopped.ok()) LOG_WARNING("while stopping: {}", stopped.ToString());
    co_return started;
  }
  co_return std::unique_ptr<LeaderParts>(new LeaderParts(std::move(parts)));
}

LeaderParts::LeaderParts(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
LeaderParts::~LeaderParts() = default;

rt::Task<Status> LeaderParts::Stop() { co_return co_await parts_->StopAll(); }
const std::string& LeaderParts::address() const { return parts_->fleet->address(); }
std::vector<client::HeldCertificate> LeaderParts::Certificates() const {
  return parts_->fleet->Certificates();
}
Status LeaderParts::OnAuthority(const pki::Credentials& credentials) {
  return parts_->fleet->OnAuthority(credentials);
}
void LeaderParts::SetServers(std::vector<std::string> servers) {
  parts_->fleet->SetServers(std::move(servers));
}
void LeaderParts::SetServerAddresses(const std::vector<std::string>& addresses) {
  parts_->fleet->SetServerAddresses(addresses);
}
void LeaderParts::Measure() {
  client::HealthReport report;
  parts_->controllers->Report(report);
  parts_->signer->Report(report);
  parts_->fleet->Report(report);
  client::ShowHealth(report, parts_->deps.metrics);
}
apiserver::Hosts LeaderParts::hosts() {
  return {.advice = &parts_->fleet->advice(),
          .rooms = &parts_->fleet->rooms(),
          .fleet = &parts_->fleet->fleet()};
}

}  // namespace berth::app
