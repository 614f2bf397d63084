// SPDX-License-Identifier: Apache-2.0
// The Gateway is the server side of the poollets' sessions, and the body of Fleet. It terminates
// sessions, brings assignments out of the store to hosts (G1) and their reports back (G3), and
// knows who is alive. Health lives in its memory; only transitions are written.
//
// One session:
//
//   Hello ─► identity, version, duplicate? ─► Welcome ─► Announce… ─► admit pools ─► resync ─►
//   Synced
//              │                                                          │
//              └────────────── Refused, with the reason ◄─────────────────┘ (or at any later time)
//
// Invariants:
//  1. At most one session per host is in the table; a pool is in it only while its session is.
//  2. Every offer asked is answered exactly once (ask_book.h).
//  3. What a host says is acted upon only for objects that the store has placed on a pool of its
//     session, at the same placement and incarnation.
//  4. Confirming an object on a session and moving it away are decided in one turn of the loop:
//     after ClaimMove nothing is confirmed or assigned at that placement.
//  5. After a restore an object of the backup is left as it is until it is known who has it
//     (rules/settlement.h): it is not assigned, removed, moved or offered.
//
// All functions run on the loop. Its parts are one file per verb: gateway_connect.cc,
// gateway_admit.cc, gateway_rewound.cc, gateway_inbox.cc, gateway_assign.cc, gateway_health.cc,
// gateway_fleet.cc.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "client/binder.h"
#include "client/cache/health_report.h"
#include "client/client.h"
#include "client/cluster.h"
#include "client/events/event_recorder.h"
#include "client/rewound.h"
#include "client/tombstones.h"
#include "fleet/fleet.h"
#include "fleet/watch_hub.h"
#include "gateway/desired_index.h"
#include "gateway/identity/enrolment.h"
#include "gateway/identity/host_limiter.h"
#include "gateway/identity/protocol_version.h"
#include "gateway/lease_gate.h"
#include "gateway/pool_feed.h"
#include "gateway/pool_writer.h"
#include "gateway/release_writer.h"
#include "gateway/revocation_feed.h"
#include "gateway/rules/ask_book.h"
#include "gateway/rules/copied_body.h"
#include "gateway/rules/health_book.h"
#include "gateway/rules/limits.h"
#include "gateway/rules/resync.h"
#include "gateway/rules/settlement.h"
#include "gateway/session.h"
#include "gateway/session_table.h"
#include "gateway/status_writer.h"
#include "gateway/tunnels.h"
#include "meta/scheme.h"
#include "net/rpc.h"
#include "pki/certificate_authority.h"
#include "pki/digest.h"
#include "pki/entropy.h"
#include "rt/loop.h"
#include "rt/scope.h"
#include "rt/task.h"

namespace berth::gateway {

struct GatewayOptions {
  std::vector<std::string> servers;  // "host:port" of every gateway, for the hosts to remember
  size_t cores = 2;                  // of this server
  // Hosts with few companions are asked for more: they notice sooner that a server is gone.
  Duration heartbeat = kHeartbeat;
  ProtocolVersions versions = {};
};

class Gateway final : public fleet::Fleet, private DesiredListener {
 public:
  // Everything outlives the gateway.
  struct Deps {
    rt::Loop& loop;
    client::Client& client;
    client::Binder& binder;
    client::Tombstones& tombstones;
    client::Rewound& rewound;
    const meta::Scheme& scheme;
    const pki::CertificateAuthority& authority;
    pki::Entropy& entropy;
    // Whether this server leads at this moment (3.3.6); empty: always. One that does not grants
    // nothing, signs nothing and welcomes nobody: its hosts look for another one.
    std::function<bool()> leads = {};
  };
  // `cluster` counts this start already.
  Gateway(Deps deps, client::ClusterIdentity cluster, GatewayOptions options);
  // REQUIRES: Close() was awaited if Start() was called.
  ~Gateway() override;

  // Begins to follow the store. Sessions are let in once everything was read.
  void Start();
  // Ends every session and waits for everything that is in progress.
  rt::Task<Status> Close();
  // Adds AgentService to what a server serves. The server stops before the gateway is destroyed.
  void AddRoutes(net::RpcRoutes& routes);

  // "host:port" of every gateway, once they are known: hosts that join or connect are told.
  // `others` are those of other servers: hosts are sent there when this gateway closes.
  void SetServers(std::vector<std::string> servers, std::vector<std::string> others = {});
  // Addresses of the other servers, without ports: those of the hosts that they pass on.
  void SetServerAddresses(const std::vector<std::string>& addresses) {
    enrolment_.SetServerAddresses(addresses);
  }

  // Everything that decides about hosts was read once.
  bool synced() const {
    return index_.synced() && pool_feed_.synced() && revocations_.synced() &&
           !settlement_.is_listing();
  }
  // How well it follows what decides about hosts.
  void Report(client::HealthReport& report) const;
  size_t sessions() const { return table_.size(); }
  // Of the hosts that are connected.
  std::vector<client::HeldCertificate> Certificates() const;
  // The authority is another one than before: ends the sessions of hosts whose certificates nobody
  // trusts any more.
  void OnAuthority();

  void Ask(fleet::Offer offer,
           Duration answer_limit,
           std::function<void(fleet::Answer)> done) override;
  void Release(const std::string& pool_uid, fleet::OfferId offer) override;
  std::vector<fleet::PoolFacts> Pools() const override;
  std::unique_ptr<fleet::FleetWatch> Watch() override { return hub_.Watch(); }
  std::vector<fleet::PoolHealth> Health() const override;
  fleet::PoolHealth Fence(const std::string& pool_uid) override;
  bool ClaimMove(const std::string& uid, uint64_t placement) override;
  void EndMove(const std::string& uid, uint64_t placement, fleet::MoveOutcome outcome) override;
  void Cut(const std::string& host, const std::string& reason) override;
  rt::Task<Result<std::unique_ptr<fleet::Tunnel>>> OpenTunnel(
      std::string pool_uid,
      std::string uid,
      uint64_t placement,
      std::string what,
      std::map<std::string, std::string> options) override;
  std::vector<fleet::Statistics> StatisticsOf(const std::string& pool_uid) const override;
  std::vector<fleet::Orphan> OrphansOf(const std::string& pool_uid) const override;

 private:
  using Turn = std::pair<std::string, uint64_t>;  // uid, placement

  bool Leads() const { return !deps_.leads || deps_.leads(); }

  // gateway_connect.cc: from the first byte to the end of a session.
  rt::Task<Status> Connect(net::RpcCall call, net::MessageStream& stream);
  // The session of a host that may have one; it is in the table then and was welcomed.
  rt::Task<Result<std::unique_ptr<Session>>> Greet(net::RpcCall call, net::MessageStream& stream);
  // Why the host has no session now, whatever it says.
  std::optional<Refusal> WhyNotNow(const HostIdentity& identity);
  rt::Task<Status> Tunnel(net::RpcCall call, net::MessageStream& stream);
  rt::Task<Result<agent::Hello>> ReadHello(net::MessageStream& stream);
  rt::Task<Result<client::HostRecord>> Examine(std::string host, agent::Hello hello);
  // Whether the incumbent is dead (5.3); it is not in the table any more then.
  rt::Task<Result<bool>> Challenge(std::string host);
  void Welcome(Session& session, uint32_t version);
  rt::Task<Status> Serve(Session& session);
  rt::Task<Status> ReadAll(Session& session);
  void Leave(Session& session);

  // By UID: the placement at which a host has something that is not its own any more.
  using Strangers = std::map<std::string, uint64_t>;

  // gateway_admit.cc: pools and resynchronisation.
  void OnAnnounce(Session& session, agent::Announce chunk);
  // Of sessions that began kAnnounceLimit ago.
  void EndLateAnnounces();
  rt::Task<Status> Admit(Session& session);
  rt::Task<Status> AdmitPools(Session& session);
  rt::Task<Status> ReadTombstones(Session& session);
  void Resync(Session& session);
  ResyncStep ResyncKnown(Session& session, const agent::Known& known);
  void ResyncTombstones(Session& session, const Strangers& strangers);
  void FinishSync(Session& session, uint64_t revision);
  rt::Task<Result<uint64_t>> StoreRevision();

  // gateway_rewound.cc: what runs where after a restore.
  rt::Task<Status> BeginSettlement();
  rt::Task<Status> ListRewound();
  std::string ProofOf(const std::string& uid,
                      uint64_t incarnation,
                      uint64_t placement,
                      const std::string& pool_uid) const;
  bool IsProven(const agent::Known& known) const;
  std::string PoolFor(const Session& session, const agent::Known& known);
  // As the store has it; what was never placed is known to the settlement alone.
  std::optional<Desired> DesiredOf(const std::string& uid);
  void Claim(Session& session, const agent::Known& known);
  void Adopt(Session& session, const agent::Known& known);
  void KeepLease(Session& session, const agent::Known& known);
  // True: the object is open, and its change means nothing to hosts yet.
  bool HoldsBack(const std::string& uid, const DesiredEntry* now);
  void Hear(const Session& session);
  void TryConclude();
  rt::Task<Status> Conclude();
  rt::Task<Status> AdoptAll(std::vector<std::string> uids);
  // Whether it can have used a reservation of that namespace: a machine there, or nobody knows it.
  bool MayHaveUsed(const std::string& uid, const std::string& name_space);
  std::vector<client::Adoption> PlanAdoptions(const std::vector<std::string>& uids);
  void Adopted(const client::Adoption& adoption);
  // From here on the store's word on it is good: hosts are told.
  void CloseOpen(const std::string& uid);
  void TellClosed(const std::string& uid, const std::vector<HeldCopy>& copies);

  // gateway_unread.cc: what of it cannot be read.
  void NoteUnread(const meta::KindInfo& kind, const client::Unread& unread);
  void WatchUnread();
  rt::Task<Status> LookAtUnread();
  // What the index and the feed could read by now, though the list could not.
  void RevealFollowed();
  // It can be read: from here on it is an object like others, and open.
  void Reveal(const meta::KindInfo& kind, const client::ObjectKey& key, const std::string& uid);
  void RevealPool(const PoolFace& face);
  void RemoveUnread(const Settlement::Unread& gone);
  // A host has what the store does not know: perhaps because it cannot be read.
  void KeepInMind(Session& session, const agent::Known& known);

  // gateway_inbox.cc: what hosts say.
  void OnMessage(Session& session, agent::HostMessage message);
  void OnHeartbeat(Session& session, const agent::Heartbeat& heartbeat);
  void OnGoodbye(Session& session, const agent::Goodbye& goodbye);
  void OnBatch(Session& session, const agent::HostBatch& batch);
  void OnAnswer(Session& session, const agent::Answer& answer);
  void OnAck(Session& session, const agent::AssignAck& ack);
  void OnAssignRefused(Session& session, const agent::AssignRefused& refused);
  void OnStatus(Session& session, const agent::ObjectStatus& status);
  void OnGone(Session& session, const agent::Gone& gone);
  void OnFacts(Session& session, const agent::PoolFacts& facts);
  void OnStatistics(Session& session, const agent::Statistics& statistics);
  void OnHostEvent(Session& session, const agent::HostEvent& event);
  static void EndTooFast(Session& session, std::string_view what, double per_second);
  // Facts and orphans wait for CatchUp, which acts on the newest as fast as the limits allow.
  static void KeepFacts(Session& session, const agent::PoolFacts& facts);
  static void KeepOrphans(Session& session, const agent::HostBatch& batch);
  void CatchUp(Session& session);
  rt::Task<Status> CatchUpLater(Session& session);
  void OnReleased(const client::UnbindRequest& request);
  // The entry if the object is on a pool of this session (invariant 3), else null.
  const DesiredEntry* MineAt(const Session& session,
                             const std::string& uid,
                             uint64_t placement) const;

  // gateway_assign.cc: what hosts are told about objects.
  void OnEntry(const DesiredEntry* before,
               const DesiredEntry* now,
               const meta::Object* object) override;
  void OnReferenced(const DesiredEntry& entry) override;
  // Looks at the object again, soon.
  void MarkDirty(Session& session, const std::string& uid, const meta::Object* object);
  void StartPump(Session& session);
  rt::Task<Status> Pump(Session& session);
  void SetAside(Session& session, const std::string& uid, const Status& why);
  rt::Task<Status> LookAgain(Session& session);
  void Confirm(Session& session, Session::Item& item, const std::string& uid);
  void ConfirmAsItIs(Session& session, const DesiredEntry& entry);
  // False: it needs more than itself, or the host has enough to read.
  bool AssignAtOnce(Session& session, const DesiredEntry& entry, const meta::Object& object);
  rt::Task<Status> AssignOne(Session& session, std::string uid, std::optional<meta::Object> object);
  rt::Task<Result<Parts>> CollectParts(const meta::Object* object);
  rt::Task<Status> ClaimInterfaces(const meta::Object* machine, Parts* parts);
  rt::Task<Status> ClaimVolumes(const Session* session, const meta::Object* machine, Parts* parts);
  rt::Task<Result<bool>> Reaches(const Session* session,
                                 const meta::Object* machine,
                                 std::string volume_pool);
  // What is there already is only confirmed. `assign` may be empty if its hash is known.
  // True if the host knows it now, or will.
  bool SendAssign(Session& session, const DesiredEntry& entry, EncodedAssign assign);
  rt::Task<Status> EndRequest(meta::Object object);
  // Tombstones of the pool that were left since its host was admitted.
  rt::Task<Status> FindTombstones(std::string pool_uid, Strangers strangers);
  void OnTombstone(Session& session, client::Tombstone stone);
  void SendTombstone(Session& session, const client::Tombstone& stone);
  static agent::Delete::Why WhyOf(const DesiredEntry& entry);
  rt::Task<Status> ClearTombstone(std::string host, client::Tombstone tombstone);
  void AckGone(Session& session, const std::string& uid, uint64_t placement);
  void SendDelete(Session& session,
                  const DesiredEntry& entry,
                  uint64_t placement,
                  agent::Delete::Why why);
  bool IsClaimed(const std::string& uid, uint64_t placement) const;
  // Of a host that wants to leave with a drain: now, or when it is known what it has.
  void BeginDrain(Session& session);
  // What a settlement has kept waiting, if nothing does any more.
  void BeginHeldDrain(Session& session);
  void BeginHeldDrains();
  void CheckDrained(Session& session);
  void BidFarewell(Session& session);

  // gateway_approval.cc: an operator's word for deletions that a host holds back.
  void SendApproved(Session& session, const PoolFace& face);
  static bool IsApproved(const Session& session, const std::string& pool_uid);
  // The pool of this session that an object of the kind concerns: the one of this UID, or the one
  // of its kind, since it was bound elsewhere or the pool was made anew; "" if there is none.
  static std::string PoolHere(const Session& session,
                              const meta::KindInfo& kind,
                              const std::string& pool_uid);
  bool HasDeletions(const Session& session, const PoolFace& face) const;
  void SettleApprovals(Session& session);

  // gateway_health.cc: timers and conditions.
  rt::Task<Status> Tick();
  void WriteReady(const HealthBook::Turn& turn);
  // What was granted to the host before this session is over: its pools say so, once.
  void ShortenLeases(Session& session);
  // A pool whose runtime is away is not asked, and says so.
  void SetProblem(Session::Pool& pool, const std::string& problem);
  void PublishFacts(Session& session);
  void WriteOrphans(Session& session);
  void WriteFenceReady(const PoolFace& face, const agent::Facts& facts);
  // What the store says of a pool's host from before this server.
  HealthBook::Past PastOf(const PoolFace& face) const;
  void OnPool(const PoolFace* before, const PoolFace* now);
  void OnRevocations();
  bool ShouldRenew(const Session& session);
  void SendPurges(Session& session, const PoolFace& face);

  // gateway_fleet.cc
  void ExpireAsks();
  void ExpireAsksAt(Time due);
  void FinishAsks(std::vector<AskBook::Ended> ended, const std::string& reason);
  void TellPool(fleet::FleetEvent::Type type, const Session::Pool& pool, const std::string& reason);

  Deps deps_;
  const client::ClusterIdentity cluster_;
  GatewayOptions options_;
  std::vector<std::string> others_;  // gateways of other servers
  uint64_t last_session_ = 0;
  uint64_t last_ping_ = 0;
  bool closing_ = false;
  uint64_t ticks_ = 0;

  SessionTable table_;
  HealthBook health_;
  AskBook asks_;
  rt::TimerId asks_timer_;
  std::optional<Time> asks_due_;  // when the timer comes
  fleet::WatchHub hub_;
  LeaseGate admission_;
  // Moves in progress or committed: not confirmed and not assigned (invariant 4).
  std::set<Turn> claims_;
  CopiedBody copied_;
  Settlement settlement_;
  bool is_concluding_ = false;
  bool concludes_again_ = false;  // something came meanwhile
  bool is_looking_ = false;       // at what cannot be read
  const pki::HmacSha256Key proof_key_;
  std::map<std::string, std::string> releasing_;  // UID to the host that has let go of it

  client::EventRecorder events_;
  RevocationFeed revocations_;
  PoolFeed pool_feed_;
  DesiredIndex index_;
  Enrolment enrolment_;
  StatusWriter statuses_;
  ReleaseWriter releases_;
  PoolWriter pools_;
  Tunnels tunnels_;
  HostLimiter connects_{kConnectBurst, kConnectsPerSecond};
  Time renewals_since_;  // hosts that were told to renew in the second that began then
  int renewals_ = 0;
  rt::TaskScope scope_;
};

}  // namespace berth::gateway
