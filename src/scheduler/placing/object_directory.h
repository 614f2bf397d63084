// SPDX-License-Identifier: Apache-2.0
// The ObjectDirectory keeps the little that placing needs to know of every machine, volume,
// snapshot, bucket and reservation: who they are, where they are, what they ask for. It settles on
// the board what the store says is placed, and says which objects need a place.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <variant>
#include <vector>

#include "apis/berth/machine_set.h"
#include "apis/compute/machine.h"
#include "apis/compute/machine_class.h"
#include "apis/core/placement.h"
#include "apis/k8s/priority_class.h"
#include "base/text_map.h"
#include "client/cache/twins.h"
#include "client/client.h"
#include "meta/object.h"
#include "scheduler/core/board.h"
#include "scheduler/placing/pool_directory.h"

namespace berth::scheduler {

// What is known of a reservation beyond that.
struct ReservationFacts {
  int32_t count = 1;               // for how many machines
  int32_t left = 1;                // for how many of them it still is
  bool is_for_all = false;         // has a part for each pool instead of a place
  bool is_over = false;            // its time is
  std::vector<std::string> pools;  // names; empty: any
  std::string part_of;             // the name of the one for all pools
  std::vector<std::string> consumers;
  Shape unit;  // room for one machine
};

// What ties a snapshot to its volume, or a volume to the snapshot or volume that it is a copy of.
struct SnapshotFacts {
  const meta::KindInfo* source_kind = nullptr;
  std::string source;      // name of that volume or snapshot
  bool is_ready = false;   // of a snapshot: it was taken
  bool is_failed = false;  // of a snapshot: it cannot be taken any more
  int64_t bytes = 0;  // of a snapshot: how large a volume must be for it; of a volume: its size
};

// What is known of one object. Small: there is one for every object of the cluster.
struct ObjectRecord {
  const meta::KindInfo* kind = nullptr;
  client::ObjectKey key;
  std::string uid;
  int64_t generation = 0;
  int64_t epoch = 0;       // status.placement.epoch
  std::string pool_ref;    // the name in spec
  std::string placed_uid;  // status.placement.poolUID
  std::string class_name;
  Shape shape;  // null while its class is not known
  bool is_deleting = false;
  bool is_pinned = false;  // status.placement.pinned, or a reference without a placement
  bool has_local_state = false;
  bool is_leaving = false;      // status.placement.release says so
  uint16_t priority_class = 0;  // ObjectDirectory::class_rules; 0: none
  int32_t priority = 0;
  uint64_t set = 0;                  // of its MachineSet, as the board wants it; 0: of none
  std::vector<std::string> volumes;  // of a machine: names in its namespace
  std::string claimed_by;            // of a volume: UID of the machine
  bool is_kept = false;              // of a volume: its deletion waits until nobody uses it
  bool is_available = false;         // of a volume: it was made
  bool is_encrypted = false;         // of a volume
  std::string reservation;           // of a machine that is to go into one: its name
  std::shared_ptr<const ReservationFacts> reserves;  // of a reservation
  // Of a snapshot, and of a volume that begins with one or with a copy of another.
  std::shared_ptr<const SnapshotFacts> snapshot;
};

// Why an object cannot be decided on yet: something that it names is not there.
struct NotYet {
  std::string reason;  // "VolumeNotFound"
  std::string message;
};

// An object with everything that goes with it, ready for the board.
struct Ask {
  Request request;
  std::vector<const ObjectRecord*> joint;  // in the order of request.joint
  std::vector<std::string> unmade;         // names of the last of request.joint: no objects yet
  std::vector<const ObjectRecord*> bound;  // volumes, in the order of request.bound_volumes
  std::optional<PoolIndex> left;           // rather not there again: it was asked to move away
};

// What a PriorityClass allows.
struct PriorityRules {
  std::string name;
  int32_t value = 0;            // what becomes the priority of a machine when it is made
  bool is_preemptible = false;  // its machines may be stopped
  bool may_preempt = true;      // for its machines others may be stopped
};

struct Drafts;

class ObjectDirectory {
 public:
  // While it lives, drafts are found where the store has no object of that name. One at a time;
  // the directory and the drafts outlive it.
  class WithDrafts {
   public:
    WithDrafts(ObjectDirectory& objects, const Drafts& drafts) : objects_(objects) {
      objects_.drafts_ = &drafts;
    }
    ~WithDrafts() { objects_.drafts_ = nullptr; }
    WithDrafts(const WithDrafts&) = delete;
    WithDrafts& operator=(const WithDrafts&) = delete;

   private:
    ObjectDirectory& objects_;
  };

  // Everything outlives the directory.
  ObjectDirectory(Board& board, const PoolDirectory& pools) : board_(board), pools_(pools) {}

  // What a change means for the queue.
  // A host did not keep what it had accepted.
  struct GivenBack {
    std::string uid;  // of the object
    PoolIndex pool{};
  };
  struct Effects {
    std::set<std::string> wanting;  // UIDs of objects that need a place and may have changed
    std::set<std::string> settled;  // UIDs of objects that need none (any more)
    std::vector<GivenBack> given_back;
  };
  // REQUIRES: it does not pass over it, and no other UID is known by its name.
  Effects OnObject(const meta::Object& now);
  Effects OnGone(std::string_view uid);
  // Whether it counts for nothing, because another object has its UID or it has none: said in the
  // log. It is read again when the other one is gone.
  bool PassesOver(const meta::Object& now);
  // Whether it was passed over; it is gone.
  bool ForgetTwin(const meta::KindInfo& kind, const client::ObjectKey& key) {
    return twins_.Remove(kind, key);
  }
  // Who has waited for the class, in order: they have to be read again.
  using Waiting = std::vector<std::pair<const meta::KindInfo*, client::ObjectKey>>;
  // The one that has waited for this UID.
  Waiting TakeTwin(std::string_view uid);
  Waiting OnMachineClass(const apis::compute::MachineClass& size);
  void OnMachineClassGone(const std::string& name);
  // Null: it is gone. What is placed counts by the new rules from here on, and who may now stop
  // others is to be tried again.
  Effects OnPriorityClass(const std::string& name, const apis::k8s::PriorityClass* now);
  // How many machines of a set may be without a place; absent: any number.
  void OnMachineSet(const std::string& uid, const apis::berth_dev::MachineSet* now);
  // The pool came to the board: what is placed there is settled, what waits for it may go on.
  Effects OnPoolAdded(const PoolEntry& pool);
  // Pools are within reach of others than before.
  Effects OnReachChanged() const;

  const ObjectRecord* Find(std::string_view uid) const;
  const ObjectRecord* FindByKey(const meta::KindInfo& kind, const client::ObjectKey& key) const;
  bool NeedsPlace(const ObjectRecord& record) const;
  // The machine with which a volume without a place waits for one; null if it is not so.
  const ObjectRecord* WaitsWith(const ObjectRecord& record) const;
  // What would be known of an object of that content; the directory does not change.
  ObjectRecord Sketch(const meta::Object& object) { return Read(object); }
  // Where the store says the object is; null: nowhere, or its pool is gone.
  const PoolEntry* PlaceOf(const ObjectRecord& record) const;
  // The request for the board, or what it waits for.
  std::variant<Ask, NotYet> Prepare(const ObjectRecord& record) const;
  // What a reservation whose unit is known keeps on that pool: one request for each machine.
  static std::vector<Request> CopiesOf(const ObjectRecord& reservation, PoolIndex pool);

  // What a machine that is not in the store yet would ask for; null while its class is not known.
  Shape ShapeOf(const apis::compute::Machine& machine);
  // Whether others may be stopped for it: it is a machine of some importance, and somebody less
  // important is preemptible.
  bool MayPreempt(const ObjectRecord& record) const;
  // How many more of each set with a budget may be stopped now.
  std::map<uint64_t, int64_t> BudgetsNow() const;
  // The objects on that pool with these keys of the board, in the order of the keys; null for those
  // that are not there.
  std::vector<const ObjectRecord*> FindPlaced(PoolIndex pool,
                                              std::span<const ObjectKey> keys) const;
  // The reservation of which this key of the board is a part; null: of none.
  const ObjectRecord* ReservationAt(ObjectKey copy) const;
  // Of a draft: what its priority will be once it is made.
  int32_t PriorityOf(const ObjectRecord& draft) const {
    const int32_t value = priority_rules_[draft.priority_class].value;
    return draft.priority_class == 0 ? draft.priority : value;
  }
  // Of one for all pools those for single pools that exist, else itself.
  std::vector<const ObjectRecord*> PartsOf(const ObjectRecord& reservation) const;
  // Where room is being made for it, by its status.
  const apis::core::Nomination* NominationOf(std::string_view uid) const;

  // UIDs of all objects of a kind, also of those that are passed over.
  std::map<client::ObjectKey, std::string> UidsOf(const meta::KindInfo& kind) const;
  size_t size() const { return records_.size(); }

 private:
  // Why an object lost its last pool, until it is placed again. Few have one.
  struct Loss {
    std::string pool_uid;
    std::string reason;
  };
  // How a record is found by kind and name, without making one.
  struct Name {
    Name(const ObjectRecord* record)  // NOLINT(google-explicit-constructor): a record has a name
        : Name(record->kind, record->key) {}
    Name(const meta::KindInfo* kind, const client::ObjectKey& key);
    bool operator==(const Name& other) const;

    const meta::KindInfo* kind;
    const client::ObjectKey* key;
    uint64_t hash;
  };
  struct NameHash {
    using is_transparent = void;
    size_t operator()(const Name& name) const { return name.hash; }
  };
  struct NameEqual {
    using is_transparent = void;
    bool operator()(const Name& a, const Name& b) const { return a == b; }
  };

  const apis::compute::MachineClass* FindClass(std::string_view name) const;
  ObjectRecord Read(const meta::Object& object);
  void ReadMachine(const meta::Object& object, ObjectRecord& record);
  void ReadReservation(const meta::Object& object, ObjectRecord& record);
  void ReadSnapshot(const meta::Object& object, ObjectRecord& record);
  void ReadSource(const meta::Object& volume, ObjectRecord& record) const;
  // A snapshot takes the room of its volume, whose class and size it has.
  void ShapeSnapshot(ObjectRecord& record, Resources otherwise);
  void ReshapeSnapshotsOf(const ObjectRecord& volume);
  void NoteNomination(const ObjectRecord& record, const meta::Object& now);
  uint16_t PriorityClassNamed(const std::string& name);
  // Whether something of it is on its host only: its own disks, or a volume of the host.
  bool IsTiedToHost(const ObjectRecord& record) const;
  void CountPreemptible(const ObjectRecord& record, int sign);
  void NoteLoss(const ObjectRecord& before, const meta::Object& now, Effects& effects);
  void Settle(const ObjectRecord& record);
  void SettleReservation(const ObjectRecord& record);
  std::optional<NotYet> AddVolumes(const ObjectRecord& machine, Ask& ask) const;
  // The pools within reach of the machine that has a place already and names this volume.
  std::optional<NotYet> AddReach(const ObjectRecord& volume, Ask& ask) const;
  // The parts of the reservation that the machine may go into.
  std::optional<NotYet> AddReservation(const ObjectRecord& machine, Ask& ask) const;
  // The pool of a snapshot's volume, or of what a volume begins with.
  std::optional<NotYet> AddSource(const ObjectRecord& record, Ask& ask) const;
  std::optional<NotYet> AddSourceVolume(const ObjectRecord& snapshot, Ask& ask) const;
  std::optional<NotYet> AddSourceSnapshot(const ObjectRecord& volume, Ask& ask) const;
  std::optional<NotYet> AddCopiedVolume(const ObjectRecord& copy, Ask& ask) const;
  const PoolEntry* SourcePoolOf(const ObjectRecord& snapshot) const;
  // The pools that a reservation names.
  std::optional<NotYet> AddPools(const ObjectRecord& reservation, Ask& ask) const;
  using ByVolume = std::unordered_map<uint64_t, std::unordered_set<const ObjectRecord*>>;
  // Machines of the index that name this volume, in no order.
  static std::vector<const ObjectRecord*> NamedBy(const ByVolume& index,
                                                  const ObjectRecord& volume);
  // Those without a place.
  std::vector<const ObjectRecord*> NamedBy(const ObjectRecord& volume) const {
    return NamedBy(named_by_, volume);
  }
  void Index(const ObjectRecord& record);
  void Unindex(const ObjectRecord& record);
  void Judge(const ObjectRecord& record, Effects& effects) const;
  // The objects that a change of this one may help: volumes and the machines that name them.
  void JudgeRelated(const ObjectRecord& record, Effects& effects) const;
  // Volumes that go where the machine is that names them.
  void JudgeAwaited(Effects& effects) const;

  Board& board_;
  const PoolDirectory& pools_;
  const Drafts* drafts_ = nullptr;  // null: there are none
  TextMap<ObjectRecord> records_;   // by UID
  client::Twins<Waiting::value_type> twins_{"scheduler"};
  // The same records by kind and name: what is one pointer here would be hundreds of bytes.
  std::unordered_set<const ObjectRecord*, NameHash, NameEqual> by_key_;
  std::map<std::string, Loss, std::less<>> losses_;                         // by UID
  std::map<std::string, apis::core::Nomination, std::less<>> nominations_;  // by UID; few
  // Priority classes are few and never forgotten; the first one stands for none.
  std::vector<PriorityRules> priority_rules_{1};
  std::map<std::string, uint16_t, std::less<>> priority_classes_;
  std::map<int32_t, size_t> preemptible_;  // placed machines that may be stopped, by priority
  std::map<uint64_t, int32_t> budgets_;    // by set
  // Machines without a place, by a hash of the names of their volumes: whoever looks compares.
  // Thousands may name one volume, and each is found alone when it goes.
  ByVolume named_by_;
  // The same of machines with a place, for volumes that had none when the machine was read. Few.
  ByVolume awaited_by_;
  // Machines that are to go into a reservation, and reservations that are parts of one, by its
  // name and in the order of their own UIDs. Few.
  using ByName = std::map<std::pair<client::ObjectKey, std::string>, const ObjectRecord*>;
  ByName into_;
  ByName parts_;
  ByName snapshots_;  // by the name of their volume
  ByName restores_;   // volumes, by the name of the snapshot that they begin with
  ByName clones_;     // volumes, by the name of the volume that they are copies of
  // The one of these three that the record belongs into.
  ByName& TiedTo(const ObjectRecord& record);
  std::map<ObjectKey, std::string> copies_;  // UID of the reservation, by key on the board
  std::map<std::string, apis::compute::MachineClass, std::less<>> classes_;
  // Machines and reservations whose class is not known, by its name.
  std::map<std::string, std::unordered_set<const ObjectRecord*>, std::less<>> without_class_;
};

PoolKind PoolKindOf(const meta::KindInfo& kind);

}  // namespace berth::scheduler
