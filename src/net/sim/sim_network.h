// SPDX-License-Identifier: Apache-2.0
// SimNetwork is the network of a simulated world: named nodes that dial and serve through
// net/rpc.h, and faults between them. The same seed gives the same run.
//
// A connection delivers in order, each frame after a latency from the seed. It loses nothing while
// it lives: what a partition or a pause holds up arrives when that ends, as TCP would send it
// again. A connection that is held up for the silence timeout is given up by both ends, as HTTP/2's
// pings would make them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"
#include "base/time.h"
#include "net/rpc.h"
#include "net/tls.h"
#include "rt/loop.h"
#include "rt/sim/sim_loop.h"

namespace berth::net {

class SimFabric;

struct SimNetworkOptions {
  Duration latency_min = Duration::Micros(100);
  Duration latency_max = Duration::Millis(2);
  // Some frames take that much longer: a queue somewhere, a retransmission.
  double spike_chance = 0;
  Duration spike_max = Duration::Millis(200);
  // How long after the end of a partition until held frames are sent again.
  Duration retransmit_max = Duration::Seconds(1);
  Duration silence_timeout = Duration::Seconds(30);
  uint32_t window_bytes = 64 * 1024;  // as H2Limits
  size_t received_bytes_max = 16 * 1024 * 1024;
  size_t queued_bytes_max = 16 * 1024 * 1024;
};

struct SimServerOptions {
  uint16_t port = 7443;
  // "": clients need not trust it. Else leaf first, with the CA behind it for those who pin it.
  std::string certificate_pem;
  ClientCertificates client_certificates = ClientCertificates::kOptional;
  // "": every certificate is handed to the handlers as it is.
  std::string client_ca_pem;
  ExpiredCertificates expired_client_certificates = ExpiredCertificates::kRefuse;
  size_t connections_max = 10'000;
  size_t streams_max = 100;
  Duration drain_timeout = Duration::Seconds(5);
};

// How the peers of a crashed node hear of it.
enum class CrashStyle : uint8_t {
  kReset,   // at once: the process died, its kernel lives
  kSilent,  // by the silence timeout: the power is gone
};

class SimNetwork {
 public:
  explicit SimNetwork(rt::SimLoop& world, SimNetworkOptions options = {});
  ~SimNetwork();
  SimNetwork(const SimNetwork&) = delete;
  SimNetwork& operator=(const SimNetwork&) = delete;

  // A place in the network; `loop` is the world's or one of its views. Naming a node again replaces
  // its loop, which is how a node comes back after a crash as another process.
  void AddNode(const std::string& name, rt::Loop& loop);

  // A server at "node:port". Unavailable if somebody listens there. On the node's loop.
  Result<std::unique_ptr<RpcServer>> Serve(const std::string& node,
                                           SimServerOptions options,
                                           RpcRoutes routes);
  // Dials from that node. Servers and dialers may outlive the network object.
  std::unique_ptr<RpcDialer> NewDialer(const std::string& node);

  // Faults. They hold for connections of now and later; all are idempotent.

  // Nothing that `from` sends reaches `to`.
  void Block(const std::string& from, const std::string& to);
  void Unblock(const std::string& from, const std::string& to);
  // Both ways.
  void Partition(const std::string& a, const std::string& b);
  void Heal(const std::string& a, const std::string& b);
  // A node and everybody else, both ways.
  void Isolate(const std::string& node);
  void Rejoin(const std::string& node);
  // Every block, isolation, delay and pause ends; crashed nodes stay.
  void HealAll();
  // Frames from one to the other take that much longer from now on.
  void SetDelay(const std::string& from, const std::string& to, Duration extra);
  // Breaks the connections between two nodes; both ends hear of it.
  void ResetConnections(const std::string& a, const std::string& b);
  // A paused node hears and says nothing; on Resume it gets all that came meanwhile.
  void Pause(const std::string& node);
  void Resume(const std::string& node);
  // Its connections and listeners are gone, on its own side at once. Until Restart nobody reaches
  // it: with kReset a dial is refused, with kSilent it waits in vain. What ran there is the
  // caller's to take down; servers of it can still be stopped.
  void Crash(const std::string& node, CrashStyle style);
  void Restart(const std::string& node);

  size_t connections() const;
  uint64_t frames_delivered() const;

 private:
  std::shared_ptr<SimFabric> fabric_;
};

}  // namespace berth::net
