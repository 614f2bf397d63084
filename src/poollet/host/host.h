// SPDX-License-Identifier: Apache-2.0
// A Host is what a poollet knows and decides: its ledger, its record, what is assigned to it and
// what became of that. It speaks through a session (SessionPeer) and acts through a Reconciler.
// It keeps everything alive from its record while there is no session. On-loop only.
//
// An object here is in one of these phases; every change is durable before it is acted on:
//
//   Assign ──► kAssigned ── Delete ──► kRemoving ── runtime: gone ──► kGone ── forget ──► (nothing)
//                  └───────────── refused: nothing of it is here ──────►┘
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "fleet/fleet.h"
#include "iri/runtimes.h"
#include "poollet/disk/disk.h"
#include "poollet/fencer/fencer.h"
#include "poollet/fencer/lease_keeper.h"
#include "poollet/host/outbox.h"
#include "poollet/host/reserved_room.h"
#include "poollet/ledger/ledger.h"
#include "poollet/reconcile/reconciler.h"
#include "poollet/reconcile/runtime_watch.h"
#include "poollet/record/record.h"
#include "poollet/session/session.h"
#include "rt/event.h"
#include "rt/loop.h"
#include "rt/scope.h"

namespace berth::agent::v1 {
class Assign;
class Confirm;
class Delete;
class Gone;
class Known;
class Offer;
class OrphanVerdict;
class PoolAnnounce;
class PoolWelcome;
}  // namespace berth::agent::v1

namespace berth::poollet {

struct PoolSetup {
  std::string kind;  // "MachinePool", "VolumePool", "BucketPool"
  std::string name;
  std::string provider_id;
};

struct HardwareFacts {
  std::string hostname;
  std::string os;
  std::string kernel;
  std::string architecture;
  int64_t cpus = 0;
  int64_t memory_bytes = 0;
  int64_t storage_bytes = 0;
  std::string machine_id;
  std::string boot_id;  // of the machine, not of the process
};

// The runtimes of a host. `*_host` is null where a runtime has no HostRuntime beside it.
struct HostRuntimes {
  iri::MachineRuntime* machine = nullptr;
  iri::HostRuntime* machine_host = nullptr;
  iri::VolumeRuntime* volume = nullptr;
  iri::HostRuntime* volume_host = nullptr;
  iri::BucketRuntime* bucket = nullptr;
  iri::HostRuntime* bucket_host = nullptr;
};
HostRuntimes ToHostRuntimes(const iri::Runtimes& runtimes);

struct HostOptions {
  std::vector<PoolSetup> pools;  // at most one of a kind
  HardwareFacts facts;
  std::vector<std::string> servers;
  std::string version;
  Duration statistics_interval = Duration::Seconds(15);
  enum class MassDeletion : uint8_t { kNeedsApproval, kAllowed };
  MassDeletion mass_deletion = MassDeletion::kNeedsApproval;
  // Told when a machine is "assigned", is about to be made ("create") and is reported "running", as
  // often as that happens, and which one it is. None: nobody traces.
  std::function<void(std::string_view step, std::string_view uid)> trace;
  ReconcileOptions reconcile;
  WatchOptions watch;
};

class Host final : public SessionPeer, private Reconciler::Owner, private RuntimeWatch::Listener {
 public:
  // Everything outlives the host. `fencer` may be null.
  struct Deps {
    rt::Loop* loop = nullptr;
    Disk* disk = nullptr;
    Fencer* fencer = nullptr;
    HostRuntimes runtimes;
    std::function<Duration()> slept;    // since the host was booted; null: it does not sleep
    std::function<void(Urgency)> wake;  // there is something to say
  };

  // Reads the record, asks the runtimes what they are, and goes on with what is assigned.
  static rt::Task<Result<std::unique_ptr<Host>>> Open(Deps deps, HostOptions options);
  ~Host() override;

  // Ends well: what is being written is written.
  rt::Task<Status> Close();
  // Ends like a crash: nothing more is written or called.
  rt::Task<Status> Abandon();

  // SessionPeer.
  std::string Hello() override;
  Status Welcomed(const agent::v1::Welcome& welcome) override;
  std::vector<std::string> Announce() override;
  void Received(const agent::v1::ServerBatch& batch) override;
  void Synced(uint64_t revision, HistoryState history) override;
  void HeartbeatSent(uint64_t number) override;
  void Granted(uint64_t number, Duration ttl) override;
  std::optional<std::string> TakeBatch() override;
  void Ended(const Status& why) override;
  rt::Task<Status> Tunnel(agent::v1::TunnelRequest request, net::MessageStream* stream) override;
  std::vector<std::string> Servers() const override;

  // Set while nothing is assigned to this host or being removed from it.
  rt::Event& drained() { return drained_; }

  // For metrics, tests and simulations.
  const Ledger& ledger() const { return ledger_; }
  const RecordState& record() const { return record_->state(); }
  size_t CountIn(Phase phase) const;
  // As many as it shows to the server.
  size_t orphans() const { return orphans_.size() + quarantined_.size(); }
  bool has_tripped() const { return tripped_; }
  const LeaseKeeper& leases() const { return leases_; }

 private:
  struct Item {
    RecordEntry entry;
    std::shared_ptr<const Desired> desired;
    bool secrets_missing = false;
    bool is_durable = false;  // some version of it is in the record
    // The server has spoken of it on this session. What it has not spoken of is quarantined: it
    // runs on, and is shown as an orphan.
    bool is_confirmed = false;
    // The server has named it on this session, at whatever placement: it takes words about it.
    bool is_named = false;
    uint64_t version = 0;
    // What is said when it is durable.
    struct Refusal {
      std::string reason;
      std::string message;
      Amounts missing;
    };
    std::optional<Refusal> refusal;
    // That it is gone: a refusal is said once it is durable, unless nothing can be made durable.
    bool MayBeSaid() const { return is_durable || !refusal.has_value(); }
  };
  struct Port {
    std::unique_ptr<Driver> driver;
    iri::HostRuntime* host = nullptr;
    std::string runtime_name;
    std::vector<OfferedClass> classes;
    iri::StringMap facts;  // what its host says of itself
    Amounts total;         // the same, of its capacity
    std::string problem = "its runtime has not answered yet";
    bool is_known = false;  // it has answered once: what it has is known
    bool classes_changed = false;
    bool facts_changed = false;
  };
  struct PendingDelete {
    std::string uid;
    Placement placement;
    fleet::ObjectKind kind = fleet::ObjectKind::kMachine;
    bool is_approved = false;
  };

  Host(Deps deps, HostOptions options, std::unique_ptr<Record> record, std::string boot);

  // host.cc: life, runtimes, figures.
  void AddPort(fleet::ObjectKind kind, std::unique_ptr<Driver> driver, iri::HostRuntime* host);
  void RestoreFromRecord();
  void StartWatches();
  rt::Task<Status> RefreshLoop();
  rt::Task<Status> Refresh();
  rt::Task<Status> RefreshPort(fleet::ObjectKind kind);
  void TakeStatistics(const iri::HostCapacity& capacity, std::vector<fleet::Statistics>& out);
  void ApplyBudgets();
  // What a runtime shall keep free: what is reserved on its pools, of what it counts.
  std::vector<iri::Reservation> ReservedAt(const iri::HostRuntime* host) const;
  void ReservationsChanged();
  rt::Task<Status> TellReservations();
  enum class FactsNews : uint8_t { kNone, kFigures, kUrgent };
  // What the server does not know of the host's figures yet.
  FactsNews NewsOfFacts() const;
  void SayFacts();
  void ArmExpiry();
  void ArmEvents();
  void PersistHost();
  rt::Task<Status> WriteHost();
  const PoolSetup* SetupOf(fleet::ObjectKind kind) const;
  const RecordPool* PoolOf(fleet::ObjectKind kind) const;
  std::string PoolUidOf(fleet::ObjectKind kind) const;
  Item* Find(const std::string& uid);
  void CheckDrained();

  // host_objects.cc: what becomes of objects.
  void Save(const std::string& uid, Item& item);
  rt::Task<Status> Persist(std::string uid, uint64_t version);
  void Saved(const std::string& uid, Item& item);
  void Hand(const Item& item);  // to the reconciler
  void MakeGone(const std::string& uid, Item& item);
  void Reported(ObjectReport report) override;
  void Removed(const std::string& uid) override;
  void Refused(const std::string& uid, std::string reason, std::string message) override;
  void BecameAvailable(const std::string& uid) override;
  bool HasLease(const std::string& uid) const override;
  bool IsArmed(const std::string& uid) const override;
  rt::Task<Status> Cover(std::string uid) override;
  const RecordEntry* Kept(const std::string& uid) const;  // on disk; null if it is not there
  rt::Task<Status> CreateBegins(std::string uid) override;
  rt::Task<Status> StartBegins(std::string uid, std::string runtime_id) override;
  void Trace(fleet::ObjectKind kind, std::string_view uid, std::string_view step) const;
  void Changed(fleet::ObjectKind kind, const std::string& uid) override;
  void Scanned(fleet::ObjectKind kind, std::vector<Seen> all) override;
  void Happened(fleet::ObjectKind kind, const std::string& uid, iri::Event event) override;
  void HeardUntil(fleet::ObjectKind kind, WallTime until) override;
  EventFate FateOf(const std::string& uid) const;
  void SayOrphans();
  // Of the record, seen in a runtime, and not spoken of by the server on this session.
  std::set<std::string> Quarantined() const;
  rt::Task<Status> Purge(fleet::ObjectKind kind, std::string id);

  // host_inbox.cc: what the server says.
  void OnOffer(const agent::v1::Offer& offer);
  // In the record, and the server that offers it does not know: it is to be adopted where it is.
  bool IsAdopted(const fleet::OfferItem& item) const;
  fleet::Answer Ask(fleet::Offer offer);
  void OnAssign(const agent::v1::Assign& assign);
  void TakeEarlyAssigns();
  bool IsSettledBefore(const agent::v1::Assign& assign, Item& item);
  void Accept(std::shared_ptr<const Desired> desired, std::string assign);
  void RefuseAssign(const Desired& desired, Item::Refusal refusal);
  void OnConfirm(const agent::v1::Confirm& confirm);
  void Confirmed(const std::string& uid, Item& item);
  void OnDelete(const agent::v1::Delete& message);
  void Execute(const PendingDelete& wanted);
  // The present history is the one that counts from here on.
  void BelieveHistory();
  void DropUnknownReservations();
  void OnForget(const agent::v1::Gone& gone);
  // Forgets one of those that are gone, if they are too many.
  void BoundGone(const std::string& newest);
  rt::Task<Status> Forget(std::vector<std::string> uids);
  void OnPool(const agent::v1::PoolWelcome& welcome);
  void OnVerdict(const agent::v1::OrphanVerdict& verdict);
  void Say(iri::EventType type,
           const std::string& uid,
           fleet::ObjectKind kind,
           std::string reason,
           std::string message);

  // host_tunnel.cc
  rt::Task<Result<std::unique_ptr<iri::AttachStream>>> Attach(agent::v1::TunnelRequest request);

  // host_announce.cc
  void FillKnown(const Item& item, agent::v1::Known& known) const;
  void FillPool(const PoolSetup& setup, agent::v1::PoolAnnounce& pool) const;
  // What is said of its runtime.
  static iri::StringMap FactsOf(const Port& port);

  rt::Loop& loop_;
  const Deps deps_;
  const HostOptions options_;
  std::unique_ptr<Record> record_;
  RecordHost host_;  // what the record's host part shall be
  Ledger ledger_;
  Outbox outbox_;
  ReservedRoom reserved_;
  bool telling_reservations_ = false;
  LeaseKeeper leases_;
  Reconciler reconciler_;
  RuntimeWatch watch_;
  std::map<fleet::ObjectKind, Port> ports_;
  std::map<std::string, Item, std::less<>> items_;
  std::map<std::string, SpokenOrphan> orphans_;  // by runtime id
  std::set<std::string> suspects_;               // runtime ids that one scan has shown
  std::map<std::string, Seen> seen_;             // by uid, of the last scans
  std::set<std::string> quarantined_;            // as it was last said
  std::map<std::string, int64_t> heard_;         // by kind, seconds: see RecordHost::events_told
  std::optional<Time> heard_kept_at_;
  bool watching_ = false;
  bool closed_ = false;
  bool writing_host_ = false;

  // Of the present session.
  bool in_session_ = false;
  bool synced_ = false;
  HistoryState history_ = HistoryState::kSettled;  // of this session
  bool tripped_ = false;
  std::set<std::string> held_deletes_;  // not carried out without an operator's word
  uint64_t incarnation_ = 0;
  uint64_t revision_ = 0;  // of Synced
  OutboxLimits limits_;
  std::vector<PendingDelete> pending_deletes_;
  // Assignments to a runtime that has not said yet what it has, serialized, by uid.
  std::map<std::string, std::string> early_assigns_;

  uint64_t facts_said_ = 0;        // the ledger's counter
  uint64_t corrections_said_ = 0;  // the ledger's
  Time facts_said_at_;
  std::string fence_said_;  // the fencer's problem
  std::optional<rt::TimerId> expiry_timer_;
  std::optional<rt::TimerId> events_timer_;
  struct CpuSample {
    Duration cpu_time;
    Time at;
  };
  std::map<std::string, CpuSample> cpu_samples_;  // by uid
  std::string boot_of_runtime_;
  rt::Event drained_;
  rt::TaskScope scope_;
};

}  // namespace berth::poollet
