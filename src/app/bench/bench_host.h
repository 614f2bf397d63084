// SPDX-License-Identifier: Apache-2.0
// A BenchHost is one of the many hosts of a bench: the session and the ledger of a real poollet,
// its own key and certificate, and no runtime. What is assigned to it "boots" in a time that the
// bench chooses. On-loop only.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "fleet/fleet.h"
#include "net/h2/h2_dialer.h"
#include "poollet/ledger/ledger.h"
#include "poollet/session/session.h"
#include "rt/asio/asio_loop.h"
#include "rt/task.h"

namespace berth::agent::v1 {
class Assign;
class Delete;
class Facts;
class HostBatch;
class HostMessage;
class Offer;
}  // namespace berth::agent::v1

namespace berth::app {

// What hosts tell their bench, and it them; in memory that both processes see.
struct HostBoard {
  std::atomic<int32_t> synced{0};  // hosts in contact now
  std::atomic<int64_t> syncs{0};   // sessions that were synchronised, ever
  std::atomic<int64_t> assigned{0};
  // Whether what is assigned is reported as running, at once. Otherwise it is acknowledged, as a
  // host does whose machines take long to boot.
  std::atomic<bool> reports_running{false};
  // How often the bench has asked what hosts hold, and the last question that is answered: by a
  // file (HostPlan::holdings).
  std::atomic<int64_t> asked{0};
  std::atomic<int64_t> answered{0};
  // Whether packets to hosts are to be dropped, and whether they are.
  std::atomic<bool> wants_loss{false};
  std::atomic<bool> has_loss{false};
};

// The class of all machines of benches, and how many of them one host holds.
inline constexpr char kBenchClass[] = "bench";
inline constexpr int64_t kBenchCpuMillis = 1'000;
inline constexpr int64_t kBenchMemory = int64_t{1} << 30;
inline constexpr int64_t kBenchMachinesPerHost = 256;

class BenchHost final : public poollet::SessionPeer {
 public:
  struct Options {
    std::string name;                  // of the host and of its pool
    std::vector<std::string> servers;  // "host:port"
    net::RpcCredentials credentials;
  };
  // Loop and board outlive the host.
  BenchHost(rt::AsioLoop& loop, HostBoard& board, Options options);
  ~BenchHost() override;

  void Start() { session_.Start(); }
  rt::Task<Status> Close() { return session_.Close(); }
  // Says what the ledger has, if that changed: once a second, as poollets do.
  void Tick();
  bool is_synced() const { return session_.is_synced(); }
  const std::string& last_error() const { return session_.last_error(); }
  const std::string& name() const { return options_.name; }
  // The UIDs of what was assigned to it and not taken away again.
  std::vector<std::string> held() const;

  // SessionPeer.
  std::string Hello() override;
  Status Welcomed(const agent::v1::Welcome& welcome) override;
  std::vector<std::string> Announce() override;
  void Received(const agent::v1::ServerBatch& batch) override;
  void Synced(uint64_t revision, poollet::HistoryState history) override;
  void HeartbeatSent(uint64_t /*number*/) override {}
  void Granted(uint64_t /*number*/, Duration /*ttl*/) override {}
  std::optional<std::string> TakeBatch() override;
  void Ended(const Status& why) override;
  rt::Task<Status> Tunnel(agent::v1::TunnelRequest request, net::MessageStream* stream) override;
  std::vector<std::string> Servers() const override { return options_.servers; }

 private:
  struct Known {
    uint64_t incarnation = 0;
    uint64_t placement = 0;
    std::string hash;
  };

  void OnOffer(const agent::v1::Offer& offer);
  void OnAssign(const agent::v1::Assign& assign);
  void OnDelete(const agent::v1::Delete& message);
  void Report(const std::string& uid, const Known& known);
  agent::v1::HostBatch& Batch();
  void FillFacts(agent::v1::Facts& facts) const;

  rt::AsioLoop& loop_;
  HostBoard& board_;
  const Options options_;
  net::H2Dialer dialer_;  // keeps this host's TLS context
  poollet::FixedCredentials credentials_;
  poollet::Ledger ledger_;
  std::string pool_uid_;
  uint64_t incarnation_ = 0;
  uint64_t term_ = 0;
  uint64_t facts_said_ = 0;  // the ledger's counter
  bool is_counted_ = false;  // in HostBoard::synced
  std::map<std::string, Known> known_;
  std::unique_ptr<agent::v1::HostMessage> outgoing_;
  poollet::Session session_;
};

}  // namespace berth::app
