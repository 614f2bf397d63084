// SPDX-License-Identifier: Apache-2.0
#include "gateway/gateway.h"

#include "base/log.h"
#include "client/records/cluster_record.h"

namespace berth::gateway {
namespace {

// Hosts whose pools are written at once when many come back: the store commits them together.
constexpr size_t kAdmissionsMax = 64;
constexpr std::string_view kService = "/berth.agent.v1.AgentService/";
constexpr size_t kEnrolmentBytesMax = 64 * 1024;
constexpr size_t kTunnelBytesMax = 256 * 1024;

}  // namespace

Gateway::Gateway(Deps deps, client::ClusterIdentity cluster, GatewayOptions options)
    : deps_(std::move(deps)),
      cluster_(std::move(cluster)),
      options_(std::move(options)),
      health_(deps_.loop.Now(), options_.cores),
      admission_(kAdmissionsMax),
      proof_key_(deps_.authority.DeriveSecret("berth placement proof")),
      events_(deps_.loop, deps_.client, deps_.scheme, "berth-gateway"),
      revocations_(deps_.loop, deps_.client, [this] { OnRevocations(); }),
      pool_feed_(deps_.loop,
                 deps_.client,
                 [this](const PoolFace* before, const PoolFace* now) { OnPool(before, now); }),
      index_(deps_.loop, deps_.client, *this),
      enrolment_({deps_.loop,
                  deps_.client,
                  deps_.authority,
                  events_,
                  revocations_.revocations(),
                  deps_.leads,
                  [this](const std::string& host, const client::HostCertificate& certificate) {
                    Session* session = table_.OfHost(host);
                    if (session != nullptr) session->certificate = certificate;
                  }},
                 cluster_,
                 options_.servers),
      statuses_(deps_.loop, deps_.client, cluster_.incarnation),
      releases_(deps_.binder,
                [this](const client::UnbindRequest& request) { OnReleased(request); }),
      pools_(deps_.loop, deps_.client),
      tunnels_(deps_.entropy),
      scope_(deps_.loop) {}

Gateway::~Gateway() { deps_.loop.CancelTimer(asks_timer_); }

void Gateway::Start() {
  if (cluster_.is_rewound) {
    settlement_.Begin();
    scope_.Spawn("gateway.settlement", BeginSettlement());
  }
  index_.Start(scope_);
  pool_feed_.Start(scope_);
  scope_.Spawn("gateway.revocations", revocations_.Run());
  scope_.Spawn("gateway.events", events_.Run());
  scope_.Spawn("gateway.releases", releases_.Run());
  scope_.Spawn("gateway.tick", Tick());
  scope_.Spawn("gateway.cluster", client::PublishCluster(deps_.client, cluster_));
}

rt::Task<Status> Gateway::Close() {
  closing_ = true;
  std::vector<Session*> sessions;
  for (const auto& [host, session] : table_.hosts()) sessions.push_back(session);
  agent::ServerMessage redirect;
  redirect.mutable_redirect()->set_reason("the server stops or does not lead any more");
  for (const std::string& server : others_) redirect.mutable_redirect()->add_servers(server);
  for (Session* session : sessions) {
    if (!others_.empty()) session->Send(redirect);
    session->End({.reason = std::string(kDraining),
                  .message = "the server stops",
                  .retry_after = Duration::Millis(50)});
  }
  const Status tasks = co_await scope_.Close();
  const Status statuses = co_await statuses_.Close();
  const Status pools = co_await pools_.Close();
  CHECK(tasks.ok() && statuses.ok() && pools.ok());
  co_return OkStatus();
}

void Gateway::SetServers(std::vector<std::string> servers, std::vector<std::string> others) {
  enrolment_.SetServers(servers);
  options_.servers = std::move(servers);
  others_ = std::move(others);
}

void Gateway::AddRoutes(net::RpcRoutes& routes) {
  const std::string service(kService);
  const net::RpcLimits small{.message_bytes_max = kEnrolmentBytesMax,
                             .outbox_bytes_max = kEnrolmentBytesMax};
  routes.unary[service + "Join"] = {.handler =
                                        [this](net::RpcCall call, std::string request) {
                                          return enrolment_.Join(std::move(call),
                                                                 std::move(request));
                                        },
                                    .limits = small};
  routes.unary[service + "Renew"] = {.handler =
                                         [this](net::RpcCall call, std::string request) {
                                           return enrolment_.Renew(std::move(call),
                                                                   std::move(request));
                                         },
                                     .limits = small};
  routes.streams[service + "Connect"] = {
      .handler = [this](net::RpcCall call,
                        net::MessageStream& stream) { return Connect(std::move(call), stream); },
      .limits = {.message_bytes_max = kMessageBytesMax, .outbox_bytes_max = kOutboxBytesMax}};
  routes.streams[service + "Tunnel"] = {
      .handler = [this](net::RpcCall call,
                        net::MessageStream& stream) { return Tunnel(std::move(call), stream); },
      .limits = {.message_bytes_max = kTunnelBytesMax, .outbox_bytes_max = kTunnelBytesMax * 4}};
}

}  // namespace berth::gateway
