// SPDX-License-Identifier: Apache-2.0
// The ObjectDirectory keeps the little that placing needs to know of every machine, volume and
// bucket: who they are, where they are, what they ask for. It settles on the board what the store
// says is placed, and says which objects need a place.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "apis/compute/machine.h"
#include "apis/compute/machine_class.h"
#include "client/client.h"
#include "meta/object.h"
#include "scheduler/core/board.h"
#include "scheduler/placing/pool_directory.h"

namespace berth::scheduler {

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
  int32_t priority = 0;
  std::vector<std::string> volumes;  // of a machine: names in its namespace
  std::string claimed_by;            // of a volume: UID of the machine
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
  std::optional<PoolIndex> left;           // rather not there again: it was asked to move away
};

class ObjectDirectory {
 public:
  // Everything outlives the directory.
  ObjectDirectory(Board& board, const PoolDirectory& pools) : board_(board), pools_(pools) {}

  // What a change means for the queue.
  struct Effects {
    std::set<std::string> wanting;   // UIDs of objects that need a place and may have changed
    std::set<std::string> settled;   // UIDs of objects that need none (any more)
    std::vector<PoolIndex> failing;  // pools that gave an object back that they had accepted
  };
  Effects OnObject(const meta::Object& now);
  Effects OnGone(std::string_view uid);
  // The machines that have waited for the class, in order: they have to be read again.
  std::vector<client::ObjectKey> OnMachineClass(const apis::compute::MachineClass& size);
  void OnMachineClassGone(const std::string& name);
  // The pool came to the board: what is placed there is settled, what waits for it may go on.
  Effects OnPoolAdded(const PoolEntry& pool);

  const ObjectRecord* Find(std::string_view uid) const;
  const ObjectRecord* FindByKey(const meta::KindInfo& kind, const client::ObjectKey& key) const;
  bool NeedsPlace(const ObjectRecord& record) const;
  // What would be known of an object of that content; the directory does not change.
  ObjectRecord Sketch(const meta::Object& object) { return Read(object); }
  // Where the store says the object is; null: nowhere, or its pool is gone.
  const PoolEntry* PlaceOf(const ObjectRecord& record) const;
  // Machines without a place that name this volume.
  std::vector<const ObjectRecord*> NamedBy(const ObjectRecord& volume) const;
  // The request for the board, or what it waits for.
  std::variant<Ask, NotYet> Prepare(const ObjectRecord& record) const;

  // What a machine that is not in the store yet would ask for; null while its class is not known.
  Shape ShapeOf(const apis::compute::Machine& machine);

  // UIDs of all objects of a kind.
  std::set<std::string> UidsOf(const meta::KindInfo& kind) const;
  size_t size() const { return records_.size(); }

 private:
  // Why an object lost its last pool, until it is placed again. Few have one.
  struct Loss {
    std::string pool_uid;
    std::string reason;
  };
  struct ByKindAndKey {
    bool operator()(const ObjectRecord* a, const ObjectRecord* b) const {
      return std::tie(a->kind->kind, a->key) < std::tie(b->kind->kind, b->key);
    }
  };

  ObjectRecord Read(const meta::Object& object);
  void ReadMachine(const meta::Object& object, ObjectRecord& record);
  void NoteLoss(const ObjectRecord& before, const meta::Object& now, Effects& effects);
  void Settle(const ObjectRecord& record);
  std::optional<NotYet> AddVolumes(const ObjectRecord& machine, Ask& ask) const;
  void Index(const ObjectRecord& record);
  void Unindex(const ObjectRecord& record);
  void Judge(const ObjectRecord& record, Effects& effects) const;
  // The objects that a change of this one may help: volumes and the machines that name them.
  void JudgeRelated(const ObjectRecord& record, Effects& effects) const;

  Board& board_;
  const PoolDirectory& pools_;
  std::map<std::string, ObjectRecord, std::less<>> records_;
  // The same records by kind and name: what is one pointer here would be hundreds of bytes.
  std::set<const ObjectRecord*, ByKindAndKey> by_key_;
  std::map<std::string, Loss, std::less<>> losses_;  // by UID
  // Machines without a place, by a hash of the names of their volumes: whoever looks compares. A
  // set and not a multimap: thousands may name one volume, and each is found alone when it goes.
  std::set<std::pair<uint64_t, const ObjectRecord*>> named_by_;
  std::map<std::string, apis::compute::MachineClass, std::less<>> classes_;
  // Machines whose class is not known, by its name.
  std::map<std::string, std::set<const ObjectRecord*>, std::less<>> without_class_;
};

PoolKind PoolKindOf(const meta::KindInfo& kind);

}  // namespace berth::scheduler
