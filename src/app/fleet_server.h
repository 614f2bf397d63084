// SPDX-License-Identifier: Apache-2.0
// The part of a server that hosts talk to and that places things on them: gateway, scheduler and
// what acts when hosts fall silent. Put together here; each part gets what it needs handed in.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "apiserver/registry/loopback_client.h"
#include "apiserver/scheduling/scheduling_service.h"
#include "base/metrics.h"
#include "base/result.h"
#include "base/time.h"
#include "client/advice/placement_advice.h"
#include "client/advice/pool_rooms.h"
#include "client/bulk_creator.h"
#include "client/cache/health_report.h"
#include "client/cluster.h"
#include "client/records/host_record.h"
#include "fleet/fleet.h"
#include "meta/scheme.h"
#include "net/owned_fd.h"
#include "pki/certificate_authority.h"
#include "rt/asio/asio_loop.h"
#include "rt/event.h"
#include "rt/task.h"

namespace berth::app {

struct FleetServerOptions {
  std::string host = "127.0.0.1";  // numeric
  uint16_t port = 0;               // 0: the kernel chooses
  // Listens already, so that hosts wait instead of knocking again; null: host and port.
  std::shared_ptr<net::OwnedFd> listener;
  std::string certificate_pem;  // of the server; the authority's is added
  std::string key_pem;
  std::vector<std::string> names;  // by which hosts reach the server, the first is shown
  // Of the gateway (gateway/gateway.h).
  std::function<bool()> leads = {};
  Duration heartbeat = Duration::Seconds(2);
};

class FleetServer {
 public:
  // Everything outlives it.
  struct Deps {
    rt::AsioLoop& loop;
    apiserver::LoopbackClient& client;
    const meta::Scheme& scheme;
    const pki::CertificateAuthority& authority;
    metrics::Registry& metrics;
    // Served to controllers on the port of the hosts.
    apiserver::SchedulingService& scheduling;
  };
  // Hosts can connect when it returns, and are let in once the gateway knows what it needs. Nothing
  // is left running if it fails.
  static rt::Task<Result<std::unique_ptr<FleetServer>>> Start(Deps deps,
                                                              client::ClusterIdentity cluster,
                                                              FleetServerOptions options);
  // REQUIRES: Stop() was awaited.
  ~FleetServer();
  rt::Task<Status> Stop();

  // "host:port" where poollets connect.
  const std::string& address() const;
  // Set when hosts are let in and the scheduler leads, or has had enough time to.
  rt::Event& placing();
  fleet::Fleet& fleet();
  // Hosts that join or connect are told from now on.
  void SetServers(std::vector<std::string> servers);
  // As Gateway's.
  void SetServerAddresses(const std::vector<std::string>& addresses);
  // Which certificates the hosts have that are connected.
  std::vector<client::HeldCertificate> Certificates() const;
  // The authority has changed, and the server's own certificate may have: for connections from now
  // on. Sessions of hosts go on, but those whose certificates nobody trusts any more.
  Status OnAuthority(const pki::Credentials& credentials);
  // Creates copies bound. Valid until this is destroyed, of use until Stop().
  client::BulkCreator& bulk();
  client::PlacementAdvice& advice();
  const client::PoolRooms& rooms() const;
  // How well each part keeps up.
  void Report(client::HealthReport& report) const;

 private:
  struct Parts;
  explicit FleetServer(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace berth::app
