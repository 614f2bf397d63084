// SPDX-License-Identifier: Apache-2.0
// A FakeGateway is the server side of sessions for tests: it keeps what is desired, resynchronises
// by (I, P, hash) as the real one does, and notes what it hears. One host at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fleet/fleet.h"
#include "iri/object.h"
#include "net/rpc.h"
#include "net/sim/sim_network.h"
#include "poollet/session/session.h"
#include "rt/sim/sim_loop.h"

namespace berth::agent::v1 {
class Assign;
class Announce;
class HostBatch;
class HostMessage;
class ServerMessage;
class ServerBatch;
}  // namespace berth::agent::v1

namespace berth::poollet {

class FakeGateway {
 public:
  // What a host said last of one uid.
  struct Heard {
    std::string state;
    std::string runtime_id;
    std::map<std::string, std::string> conditions;  // type to "True", or to the reason why not
    uint64_t placement = 0;
    uint64_t incarnation = 0;
  };
  struct Known {
    uint64_t incarnation = 0;
    uint64_t placement = 0;
    std::string hash;
    bool gone = false;
    std::string proof;
    bool leased = false;
  };
  struct Wish {
    std::string kind = "Machine";
    std::string class_name = "small";
    fleet::Vector resources = {{"cpu", 1000}, {"memory", 1LL << 30}};
    uint64_t placement = 1;
    int64_t generation = 1;
    bool power_on = true;
    bool moves = false;
    int64_t storage_bytes = 0;  // volumes
    std::string note;           // of machines: an annotation, which is of no generation; of
                                // snapshots: the handle of their volume
    std::function<void(agent::v1::Assign&)> edit;
  };

  FakeGateway(rt::SimLoop& loop, net::SimNetwork& network, std::string node = "server");
  ~FakeGateway();

  // Starts and stops listening.
  void Up();
  void Down();

  // Sends it now, if there is a session, and at every resynchronisation.
  void Desire(const std::string& uid, Wish wish);
  // Takes it back without a word, as a store that was rewound would.
  void Forget(const std::string& uid) { desired_.erase(uid); }
  // Says Delete until it hears Gone.
  void Remove(const std::string& uid, uint64_t placement, bool is_approved = false);
  void RemoveQuietly(const std::string& uid, uint64_t placement) { deletes_[uid] = {placement}; }
  void Offer(uint64_t term, uint64_t number, const std::string& uid, Wish wish);
  void Release(uint64_t term, uint64_t number);
  void Purge(const std::string& uid, const std::string& runtime_id);
  // Sends an assignment whatever is desired.
  void SendAssign(const std::string& uid, const Wish& wish, uint64_t incarnation);
  void CloseSession();
  void Settle();
  void OpenTunnel(const std::string& ticket,
                  const std::string& uid,
                  uint64_t placement,
                  const std::string& what);
  void Redirect(const std::string& server);

  // Behaviour.
  uint64_t incarnation = 1;
  uint64_t revision = 100;
  Duration lease = Duration::Seconds(8);
  bool grants = true;
  bool confirms = true;
  bool is_open = false;  // who has what of earlier incarnations is not known yet; Settle() ends it
  bool acknowledges_gone = true;
  // Said in the welcome; more than twice as many at once are left out, as the real one does.
  uint32_t events_per_second = 10;
  std::string refuses;  // the reason of a Refused instead of a Welcome
  // What comes of a Goodbye with DRAIN: everything is taken away, a farewell although everything
  // stays, or nothing.
  enum class OnDrain : uint8_t { kRemoveAll, kKeepAll, kSilent } on_drain = OnDrain::kRemoveAll;
  uint32_t version = 1;
  std::optional<ProtocolVersions> versions;  // that it says it speaks; an older server says none
  std::string cluster_id = "11111111-1111-4111-8111-111111111111";

  // What was heard.
  bool is_synced() const { return synced_; }
  uint64_t sessions = 0;
  std::map<std::string, Heard> heard;
  std::map<std::string, fleet::Answer> answers;  // by "term/number"
  std::map<std::string, uint64_t> acks;
  std::map<std::string, std::string> refused;  // uid to reason
  std::map<std::string, uint64_t> gone;        // uid to placement
  std::map<std::string, Known> known;          // of the last announce
  std::vector<std::string> events;             // "uid reason"
  size_t events_left_out = 0;
  std::map<std::string, std::string> orphans;  // runtime id to uid
  std::map<std::string, fleet::PoolFacts> facts;
  std::map<std::string, iri::StringMap> runtime_facts;  // by kind of pool, as they were said last
  std::map<std::string, std::map<std::string, fleet::Vector>> classes;  // the same: capabilities
  size_t classes_told = 0;  // how often a pool's were said to have changed
  std::map<std::string, fleet::Statistics> statistics;
  size_t statistics_told = 0;
  std::map<std::string, std::string> tunnels;                    // ticket to what came through
  std::map<std::string, std::vector<std::string>> tunnel_input;  // what is said to it at once
  bool reads_tunnels = true;                                     // beyond the first frame
  std::map<std::string, size_t> tunnel_bytes;                    // heard so far
  std::string goodbye;
  bool is_leaving = false;  // as the last Hello said
  uint64_t lease_left_ms = 0;
  size_t announce_chunks = 0;
  size_t batches = 0;
  size_t heartbeats = 0;

  static std::string PoolUid(const std::string& kind) { return "uid-of-" + kind; }

 private:
  struct PendingDelete {
    uint64_t placement = 0;
    bool is_approved = false;
  };
  rt::Task<Status> Serve(net::MessageStream* stream);
  rt::Task<Status> ServeTunnel(net::MessageStream* stream);
  void Hear(const agent::v1::HostMessage& message);
  void HearHeartbeat(const berth::agent::v1::Heartbeat& heartbeat);
  void HearAnnounce(const agent::v1::Announce& announce);
  void HearBatch(const agent::v1::HostBatch& batch);
  bool AdmitEvent();
  void Resync();
  void Send(const agent::v1::ServerMessage& message);
  void FillAssign(const std::string& uid, const Wish& wish, uint64_t in, agent::v1::Assign& out);
  void FillDelete(const std::string& uid, const PendingDelete& wanted, agent::v1::ServerBatch& out);

  rt::SimLoop& loop_;
  net::SimNetwork& network_;
  const std::string node_;
  std::map<std::string, Wish> desired_;
  std::map<std::string, PendingDelete> deletes_;
  std::vector<std::string> pools_;  // kinds announced
  std::unique_ptr<net::RpcServer> server_;
  net::MessageStream* stream_ = nullptr;
  bool synced_ = false;
  double events_room_ = 0;  // of this session
  Time events_at_;
};

}  // namespace berth::poollet
