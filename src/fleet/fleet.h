// SPDX-License-Identifier: Apache-2.0
// Fleet is how the scheduler and the controllers reach hosts: they ask them, learn of them, and
// fence them. The gateway is its body; fleet/fake is the one for tests. What is durable (pools,
// bindings, statuses) does not pass here but through client::Client.
//
// A pool is named by its UID everywhere: a pool that was deleted and made again is another one.
// All functions run on the fleet's loop.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "rt/task.h"

namespace berth::fleet {

// Amounts by name: "cpu" in thousandths, everything else in units (bytes, pieces). "share" is the
// part of a pool that only counts per class, in kShareWhole parts.
using Vector = std::map<std::string, int64_t, std::less<>>;
inline constexpr int64_t kShareWhole = 1'000'000'000'000;

enum class ObjectKind : uint8_t { kMachine, kVolume, kBucket, kReservation, kVolumeSnapshot };
std::string_view NameOf(ObjectKind kind);  // "Machine"

// (T, n): unique for one scheduler's term.
struct OfferId {
  uint64_t term = 0;
  uint64_t number = 0;
  auto operator<=>(const OfferId&) const = default;
};

struct OfferItem {
  std::string pool_uid;
  ObjectKind kind = ObjectKind::kMachine;
  std::string uid;
  uint64_t placement = 0;  // P + 1: the number it would be bound with
  std::string class_name;
  Vector resources;
};

// "Can you take this?" The joint items go to the same host: all or none.
struct Offer {
  OfferId id;
  OfferItem item;
  std::vector<OfferItem> joint;
  Duration hold_ttl;
  std::string reservation_uid;  // what it consumes; "" for nothing
};

// As of when a figure of a host's ledger is true; compares within one boot.
struct LedgerVersion {
  std::string boot;
  uint64_t counter = 0;
};

struct Answer {
  enum class Verdict : uint8_t {
    kAccepted,     // a hold exists on the host
    kRejected,     // with reason and what is missing
    kAlreadyHere,  // the host has this uid, at `placement`
    kNoAnswer,     // timed out, or the session ended: the hold may exist, and ends by itself
  };
  OfferId id;
  Verdict verdict = Verdict::kNoAnswer;
  std::string reason;
  std::string message;
  Vector missing;
  LedgerVersion ledger;
  uint64_t placement = 0;
};

// What a host says of one of its pools.
struct PoolFacts {
  std::string pool_uid;
  LedgerVersion ledger;
  Vector capacity;   // capped by the pool's limits
  Vector allocated;  // allocations, reservations and orphans
  Vector held;
  enum class Fence : uint8_t { kNotReady, kReady } fence = Fence::kNotReady;
};

struct FleetEvent {
  enum class Type : uint8_t {
    kJoined,    // a session announced this pool and is synchronised: it can be asked
    kLeft,      // the session ended, whatever the reason: it cannot be asked
    kFacts,     // new figures
    kRefused,   // it refused an assignment that it had held or was trusted with (G2): avoid it
    kOverflow,  // the reader fell behind: ask Pools() anew
  };
  Type type = Type::kFacts;
  std::string pool_uid;
  std::string reason;  // kLeft: "Goodbye", "Lost", "Superseded", "Revoked", …; kRefused: why
  PoolFacts facts;     // kJoined, kFacts
};

// Every event after the watch began, in order, through a bounded buffer.
class FleetWatch {
 public:
  virtual ~FleetWatch() = default;
  virtual rt::Task<Result<std::vector<FleetEvent>>> Next() = 0;
};

// How a pool looks to whoever decides about it.
struct PoolHealth {
  enum class Contact : uint8_t { kConnected, kAway, kSilent };
  std::string pool_uid;
  Contact contact = Contact::kSilent;
  Time silent_since;   // of kAway and kSilent: when the last word came
  Time planned_until;  // of kAway: goodbye with keep
  Time last_grant;     // g(last); the server's start if it is not known
  Duration lease;      // L as announced to the host
};

// How the commit after ClaimMove ended.
enum class MoveOutcome : uint8_t {
  kCommitted,  // the placement is over: it is never confirmed again
  kAbandoned,  // nothing was written: the host may have it back
};

// One end of a tunnel to a host: console, exec, logs, port-forward.
struct TunnelFrame {
  enum class Channel : uint32_t { kIn = 0, kOut = 1, kErrors = 2, kEnd = 3, kResize = 4 };
  Channel channel = Channel::kOut;
  std::string data;
};
class Tunnel {
 public:
  virtual ~Tunnel() = default;
  virtual rt::Task<Result<std::optional<TunnelFrame>>> Read() = 0;
  virtual rt::Task<Status> Write(TunnelFrame frame) = 0;
  virtual void Close() = 0;
};

struct Statistics {
  std::string uid;  // "" for the host
  double cpu_cores = 0;
  int64_t memory_bytes = 0;
  int64_t disk_bytes = 0;
  int64_t network_receive_bytes = 0;
  int64_t network_send_bytes = 0;
  double load = 0;
  WallTime time;
};

// What a host runs, with this cluster's mark, and the server does not know (PROTOCOL 4.3).
struct Orphan {
  std::string kind;  // "Machine"
  std::string uid;
  std::string namespace_;
  std::string name;
  std::string state;
};

class Fleet {
 public:
  virtual ~Fleet() = default;

  // Sends an offer with the next message to its host and calls `done` exactly once, in a later
  // turn: with the host's answer, or with kNoAnswer once `answer_limit` has passed or the session
  // has ended. A late answer is met with a release by the fleet itself (S6).
  virtual void Ask(Offer offer, Duration answer_limit, std::function<void(Answer)> done) = 0;
  // Gives a hold back. No answer; lost if the session ends, then the hold ends by its time.
  virtual void Release(const std::string& pool_uid, OfferId offer) = 0;

  // The pools that can be asked now.
  virtual std::vector<PoolFacts> Pools() const = 0;
  virtual std::unique_ptr<FleetWatch> Watch() = 0;

  // Every session pool that this server knows of.
  virtual std::vector<PoolHealth> Health() const = 0;
  // No more grants for the pool's session from here on; its health as of now. The first step of
  // moving anything away (PROTOCOL 3.3).
  virtual PoolHealth Fence(const std::string& pool_uid) = 0;
  // Before the unbind commit of a move (sequence 18): false if the host has confirmed this uid at
  // this placement on its present session, which is then not moved. After a true no session
  // confirms or is assigned the uid at this placement until EndMove says how the commit ended. A
  // commit whose outcome is unknown is read back first (S4).
  virtual bool ClaimMove(const std::string& uid, uint64_t placement) = 0;
  virtual void EndMove(const std::string& uid, uint64_t placement, MoveOutcome outcome) = 0;
  // Ends the host's session now, with this reason.
  virtual void Cut(const std::string& host, const std::string& reason) = 0;

  // NotFound if the pool has no session.
  virtual rt::Task<Result<std::unique_ptr<Tunnel>>> OpenTunnel(
      std::string pool_uid,
      std::string uid,
      uint64_t placement,
      std::string what,
      std::map<std::string, std::string> options) = 0;

  // The newest figures of the host (uid "") and of everything on it; empty without a session.
  virtual std::vector<Statistics> StatisticsOf(const std::string& pool_uid) const = 0;
  // What the pool's host has quarantined; empty without a session.
  virtual std::vector<Orphan> OrphansOf(const std::string& pool_uid) const = 0;
};

}  // namespace berth::fleet
