// SPDX-License-Identifier: Apache-2.0
// The SimFabric is what is between the nodes: connections with their frames in flight, listeners,
// and faults. It belongs to the world, not to a loop: all loops of a world run on one thread.
// Frames are handed over on the receiving node's loop.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "base/random.h"
#include "base/result.h"
#include "base/time.h"
#include "net/sim/sim_end.h"
#include "net/sim/sim_frame.h"
#include "net/sim/sim_network.h"
#include "rt/loop.h"

namespace berth::net {

class SimFabric {
 public:
  // A listener answers a client's hello: with the server's end of the connection, or why not.
  struct Hello {
    std::string address;  // of the client
    std::string certificate_pem;
    SimEnd::Send send;
  };
  using Listener = std::function<Result<std::shared_ptr<SimEnd>>(Hello hello)>;

  SimFabric(uint64_t seed, SimNetworkOptions options);

  void AddNode(const std::string& name, rt::Loop& loop);
  rt::Loop& loop_of(const std::string& node) const;
  const SimNetworkOptions& options() const { return options_; }

  // Frames travel as long as somebody shares the fabric; `self` is that share.
  static std::shared_ptr<SimEnd> Connect(const std::shared_ptr<SimFabric>& self,
                                         const std::string& from,
                                         const std::string& address,
                                         const std::string& certificate_pem);
  Status Listen(const std::string& address, Listener listener);
  void Unlisten(const std::string& address) { listeners_.erase(address); }

  static void SetBlocked(const std::shared_ptr<SimFabric>& self,
                         const std::string& from,
                         const std::string& to,
                         bool blocked);
  static void SetIsolated(const std::shared_ptr<SimFabric>& self,
                          const std::string& node,
                          bool isolated);
  static void SetPaused(const std::shared_ptr<SimFabric>& self,
                        const std::string& node,
                        bool paused);
  static void HealAll(const std::shared_ptr<SimFabric>& self);
  static void Crash(const std::shared_ptr<SimFabric>& self,
                    const std::string& node,
                    CrashStyle style);
  static void Restart(const std::shared_ptr<SimFabric>& self, const std::string& node);
  void SetDelay(const std::string& from, const std::string& to, Duration extra);
  static void Reset(const std::shared_ptr<SimFabric>& self,
                    const std::string& a,
                    const std::string& b);

  size_t connections() const { return connections_.size(); }
  uint64_t frames_delivered() const { return frames_delivered_; }

 private:
  static constexpr size_t kClient = 0;
  static constexpr size_t kServer = 1;

  struct Node {
    rt::Loop* loop = nullptr;
    bool isolated = false;
    bool paused = false;
    bool crashed = false;
    CrashStyle crash_style = CrashStyle::kReset;
  };
  struct InFlight {
    Time due;
    SimFrame frame;
  };
  struct Connection {
    std::array<std::string, 2> nodes;
    std::string address;  // that was dialled
    std::array<std::shared_ptr<SimEnd>, 2> ends;
    std::array<std::deque<InFlight>, 2> to;  // in flight to the client, to the server
    std::array<Time, 2> last_due;
    bool is_held_up = false;
    uint64_t held_up_times = 0;
  };
  using Self = std::shared_ptr<SimFabric>;

  static SimEnd::Send Sender(const Self& self, uint64_t id, size_t from);
  static void Send(const Self& self, uint64_t id, size_t from, SimFrame frame);
  static void Put(const Self& self, uint64_t id, size_t to, Duration latency, SimFrame frame);
  static void PutReset(const Self& self, uint64_t id, size_t to);
  static void ArriveAfter(const Self& self, uint64_t id, size_t to, Duration delay);
  static void Arrive(const Self& self, uint64_t id, size_t to);
  static void Accept(const Self& self, uint64_t id, SimFrame hello);
  // After a change of faults: what is held up now, what is not any more.
  static void Review(const Self& self);
  static void Resume(const Self& self, uint64_t id);
  static void GiveUpLater(const Self& self, uint64_t id, size_t side);
  static void LoseEnd(const Self& self, uint64_t id, size_t side, const Status& why);

  bool IsBlocked(const std::string& from, const std::string& to) const;
  bool IsHeldUp(const Connection& connection) const;
  Connection* Find(uint64_t id);
  void ForgetIfGone(uint64_t id);
  Duration Latency(const std::string& from, const std::string& to);

  const SimNetworkOptions options_;
  Random random_;
  std::map<std::string, Node> nodes_;
  std::map<std::string, Listener> listeners_;
  std::map<uint64_t, Connection> connections_;
  uint64_t last_connection_ = 0;
  std::set<std::pair<std::string, std::string>> blocked_;
  std::map<std::pair<std::string, std::string>, Duration> delays_;
  uint64_t frames_delivered_ = 0;
};

}  // namespace berth::net
