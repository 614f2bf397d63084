// SPDX-License-Identifier: Apache-2.0
// What only one server of a store may have: hosts, scheduler, controllers, signer. With the
// embedded store that is every server; with a store that others use too, the one that leads, and
// all that these parts write is conditioned on that.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apiserver/authz/authorizer.h"
#include "apiserver/cache/watch_cache.h"
#include "apiserver/http/hosts.h"
#include "apiserver/registry.h"
#include "apiserver/scheduling/scheduling_service.h"
#include "app/fleet_server.h"
#include "base/metrics.h"
#include "base/result.h"
#include "meta/scheme.h"
#include "pki/certificate_authority.h"
#include "rt/asio/asio_loop.h"
#include "rt/task.h"
#include "store/store.h"

namespace berth::app {

// How a server leads a store that others use too.
struct Reign {
  store::Condition fence;            // of every commit
  std::function<bool()> leads;       // at this moment
  std::function<void()> on_deposed;  // a commit has found the fence changed
};

class LeaderParts {
 public:
  // Everything outlives the parts.
  struct Deps {
    rt::AsioLoop& loop;
    store::Store& store;
    apiserver::WatchCache& cache;
    apiserver::Registry& registry;  // for what others ask for; it is not fenced
    const meta::Scheme& scheme;
    const apiserver::Authorizer& authorizer;
    apiserver::SchedulingService& scheduling;
    const pki::CertificateAuthority& authority;
    metrics::Registry& metrics;
  };
  // nullopt: the store is this server's alone.
  static rt::Task<Result<std::unique_ptr<LeaderParts>>> Start(Deps deps,
                                                              FleetServerOptions fleet,
                                                              std::optional<Reign> reign);
  // REQUIRES: Stop() was awaited.
  ~LeaderParts();
  rt::Task<Status> Stop();

  apiserver::Hosts hosts();
  const std::string& address() const;  // "host:port" where poollets connect
  // As FleetServer's.
  std::vector<client::HeldCertificate> Certificates() const;
  Status OnAuthority(const pki::Credentials& credentials);
  // Hosts that join or connect are told from now on.
  void SetServers(std::vector<std::string> servers);
  // As Gateway's.
  void SetServerAddresses(const std::vector<std::string>& addresses);
  // Brings the metrics of controllers up to date.
  void Measure();

 private:
  struct Parts;
  explicit LeaderParts(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace berth::app
