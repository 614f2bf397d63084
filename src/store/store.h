// SPDX-License-Identifier: Apache-2.0
// A Store is a revisioned key-value store: compare-and-set transactions, range reads at a revision,
// watches from a revision, compaction and leases. It is modelled on etcd's v3 API, so that memory,
// rocks and etcd pass one contract suite (store/conformance). Nothing here assumes that a handle is
// the only writer.
//
// Invariants:
//  (1) Every committed transaction that changes something has its own revision; revisions only
//  grow. (2) A commit that was acknowledged survives any crash of this process (except in
//  `memory`). (3) A read sees only what is durable. A read at revision R sees exactly the effects
//  of revisions <= R. (4) A watch from R delivers every change with revision >= R exactly once, in
//  order, never half a transaction. (5) After Compact(C), reads and watches that need history
//  before C fail with Expired.
//  (6) An empty store is at revision 1; the first change is revision 2. So a revision that a read
//  returned is never zero.
//
// All functions are called on the loop that the handle was opened with.
#pragma once

#include <compare>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "base/time.h"
#include "rt/task.h"

namespace berth::store {

// A position in the store's history. Zero means "none" or "now", as each function says.
struct Revision {
  int64_t value = 0;
  constexpr auto operator<=>(const Revision&) const = default;
  constexpr Revision Next() const { return {value + 1}; }
};

struct LeaseId {
  int64_t value = 0;  // zero: no lease
  constexpr auto operator<=>(const LeaseId&) const = default;
};

// Limits that every body enforces alike, so that `rocks` does not accept what `etcd` refuses.
constexpr size_t kMaxValueBytes =
    1024 * 1024 + 64 * 1024;  // 1 MiB object plus the header of the object at rest
constexpr size_t kMaxKeyBytes = 1024;
constexpr size_t kMaxTxnKeys = 128;  // conditions and operations together (etcd's --max-txn-ops)
constexpr size_t kMaxTxnBytes = 1536 * 1024;             // etcd's --max-request-bytes
constexpr Duration kMinLeaseTtl = Duration::Seconds(1);  // etcd counts seconds
constexpr Duration kMaxLeaseTtl = Duration::Hours(24 * 366);

struct KeyValue {
  std::string key;
  Bytes value;
  Revision create_revision;
  Revision mod_revision;
  int64_t version = 0;  // 1 for a new key, +1 per change
  LeaseId lease;
};

// A condition on one key, checked inside the commit.
struct Condition {
  std::string key;
  // Zero: the key must be absent. Otherwise its mod_revision must be exactly this.
  Revision mod_revision;

  static Condition Absent(std::string key) { return {.key = std::move(key), .mod_revision = {}}; }
  static Condition Unchanged(std::string key, Revision at) {
    return {.key = std::move(key), .mod_revision = at};
  }
};

struct Op {
  enum class Type : uint8_t { kPut, kDelete };
  Type type = Type::kPut;
  std::string key;
  Bytes value;    // kPut
  LeaseId lease;  // kPut: the key is deleted when the lease ends

  static Op Put(std::string key, Bytes value, LeaseId lease = {}) {
    return {.type = Type::kPut, .key = std::move(key), .value = std::move(value), .lease = lease};
  }
  // Deleting an absent key is no change.
  static Op Delete(std::string key) {
    return {.type = Type::kDelete, .key = std::move(key), .value = {}, .lease = {}};
  }
};

// All conditions hold -> all operations happen at one revision; otherwise none. A key occurs in at
// most one operation.
struct Txn {
  std::vector<Condition> conditions;
  std::vector<Op> ops;
};

struct TxnResult {
  bool committed = false;
  Revision revision;  // of this commit; if not committed or nothing changed, the store's revision
  // If not committed: the present state of the keys whose conditions failed (absent ones have
  // mod_revision zero).
  std::vector<KeyValue> conflicts;
};

struct RangeRequest {
  std::string start;       // first key
  std::string end;         // first key not in the range; empty: just the key `start`; kNoEnd: all
  Revision revision;       // zero: now
  size_t limit = 0;        // zero: all
  bool keys_only = false;  // values are left empty
};
// The `end` of a range without one, as in etcd: one zero byte (no key sorts before it).
constexpr std::string_view kNoEnd("\0", 1);
// The end of the range of all keys with this prefix.
std::string PrefixEnd(std::string_view prefix);

struct RangeResult {
  std::vector<KeyValue> items;  // sorted by key
  Revision revision;  // what the read saw; pass it on to read the next page of the same state
  bool more = false;  // `limit` cut the range; go on at the last key + '\0'
  size_t count = 0;   // keys in the range, regardless of limit
};

struct Event {
  enum class Type : uint8_t { kPut, kDelete };
  Type type = Type::kPut;
  KeyValue kv;  // kDelete: key and mod_revision only
  std::optional<KeyValue>
      previous;  // the state before; absent for a new key, or if that state was compacted
};

struct WatchRequest {
  std::string start;
  std::string end;  // as in RangeRequest
  Revision from;    // first revision to deliver; zero: the next one
};

struct WatchBatch {
  std::vector<Event> events;  // whole transactions, in order; may be empty (progress only)
  Revision revision;          // everything up to here has been delivered
};

// One watch. Destroying it ends it.
class Watch {
 public:
  virtual ~Watch() = default;
  // The next batch; waits while there is none. Errors are final: Expired when the position was
  // compacted away or the reader fell too far behind (the buffer is bounded), Unavailable when the
  // store closed.
  virtual rt::Task<Result<WatchBatch>> Next() = 0;
};

class Store {
 public:
  virtual ~Store() = default;

  // Idempotent through its conditions: a caller that lost the answer reads back before it tries
  // again. Errors: BadRequest (limits), NotFound (unknown lease), TooManyRequests (too much is
  // waiting for the disk; carries retry_after), Unavailable (disk full or broken: the store is
  // read-only; whether this commit happened is unknown until a read tells).
  virtual rt::Task<Result<TxnResult>> Commit(Txn txn) = 0;
  // Errors: Expired (`revision` is before the compacted one), BadRequest (it is in the future).
  virtual rt::Task<Result<RangeResult>> Range(RangeRequest request) = 0;
  // Expired if `from` is not after the compacted revision. A `from` in the future waits for it.
  // TooManyRequests if there are too many watches.
  virtual rt::Task<Result<std::unique_ptr<Watch>>> StartWatch(WatchRequest request) = 0;

  // Forgets history before `revision`; the state at `revision` stays readable. Idempotent.
  // BadRequest for a revision in the future. Answers when the mark is durable; the space is
  // reclaimed afterwards.
  virtual rt::Task<Status> Compact(Revision revision) = 0;
  virtual rt::Task<Result<Revision>> CurrentRevision() = 0;
  virtual rt::Task<Result<Revision>> CompactedRevision() = 0;

  // A lease ends when it is not renewed for `ttl`, or is revoked; its keys go in one commit (in
  // several if over kMaxTxnKeys). After a restart leases have their whole ttl again; unknown and
  // ended ones are NotFound. Only embedded stores limit their number: an etcd holds them itself.
  virtual rt::Task<Result<LeaseId>> GrantLease(Duration ttl) = 0;
  virtual rt::Task<Status> RenewLease(LeaseId lease) = 0;
  virtual rt::Task<Status> RevokeLease(LeaseId lease) = 0;
};

}  // namespace berth::store
