// SPDX-License-Identifier: Apache-2.0
// A Session is one host's connection as long as it lives: what the host has, what is queued for it,
// and what it has used up of its limits. Everything that one turn of the loop has to say to the
// host leaves in one message.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "client/tombstones.h"
#include "gateway/identity/bucket.h"
#include "gateway/identity/host_identity.h"
#include "gateway/identity/refusal.h"
#include "gateway/rules/limits.h"
#include "gateway/rules/pool_plan.h"
#include "gateway/rules/words.h"
#include "meta/object.h"
#include "net/rpc.h"
#include "rt/child_context.h"
#include "rt/event.h"
#include "rt/loop.h"
#include "rt/scope.h"

namespace berth::gateway {

class Session {
 public:
  // What the host has of one object, as far as this session knows.
  struct Item {
    uint64_t placement = 0;
    std::string hash;
    bool is_confirmed = false;  // on this session: a grant extends it
    bool is_deleting = false;   // it was told to remove it
  };
  struct Pool {
    PoolFace face;
    agent::Facts said;            // as the host said it
    fleet::PoolFacts facts;       // the same, capped by the pool's limits
    bool is_unpublished = false;  // the pool's status does not show them yet
    std::string problem;          // why it can take nothing now; "" if it can
  };
  enum class Phase : uint8_t { kAnnouncing, kAdmitting, kSyncing, kSynced };

  // The stream and the loop outlive the session. `number` is unique in this process.
  Session(rt::Loop& loop, net::MessageStream& stream, HostIdentity identity, uint64_t number);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  const HostIdentity& identity() const { return identity_; }
  const std::string& host() const { return identity_.host; }
  uint64_t number() const { return number_; }

  // Sends a message now. A host that takes nothing loses its session.
  void Send(const agent::ServerMessage& message) { SendBytes(message.SerializeAsString()); }
  // Goes with this turn's message.
  agent::ServerBatch& Queue();
  // Goes with the next message to the host, at the latest kGrantPause from now.
  void QueueGrant(agent::Grant grant);
  void Flush();
  // The same for an encoded agent::Assign.
  void QueueAssign(std::string_view assign);
  size_t outbox_bytes() const { return stream_.outbox_bytes(); }
  net::MessageStream& stream() { return stream_; }

  // The session is over: the host hears why, and Serve's read ends. The first reason wins.
  void End(Refusal refusal);
  // The same without a word to the host.
  void Conclude(Refusal refusal);
  bool ended() const { return ended_.has_value(); }
  const Refusal& reason() const { return *ended_; }
  // Reading stops when this is cancelled. Set while the session is served.
  void SetReader(rt::ChildContext* reader) { reader_ = reader; }

  // Whether one more message of this size is within the limits; too many that are not end the
  // session.
  bool Admit(size_t bytes, Time now);
  // Whether one more word of a kind is.
  bool AdmitAck(Time now) { return acks_.Take(now); }
  bool AdmitRefusal(Time now) { return refusals_.Take(now); }
  bool AdmitStatus(Time now) { return statuses_.Take(now); }
  bool AdmitGone(Time now) { return gone_.Take(now); }
  bool AdmitFacts(Time now) { return facts_.Take(now); }
  bool AdmitStatistics(Time now) { return statistics_.Take(now); }
  bool AdmitEvent(Time now) { return events_.Take(now); }
  bool AdmitOrphans(Time now) { return orphan_lists_.Take(now); }
  // Something that a poollet of ours does not say: counted, and the session ended if it goes on.
  void Strike(std::string_view what);

  // To be assigned or looked at again. Holds the object itself for a few of them.
  void MarkDirty(const std::string& uid, const meta::Object* object);
  std::map<std::string, std::optional<meta::Object>>& dirty() { return dirty_; }

  // Plain state, owned by the gateway's verbs.
  Phase phase = Phase::kAnnouncing;
  Announcer announcer;
  const Time began;
  agent::Announce announce;                             // collected until its last chunk
  size_t announce_bytes = 0;                            // of it, as it was said
  std::map<std::string, Pool> pools;                    // by UID
  std::map<std::string, Item> items;                    // by UID
  std::map<std::string, client::Tombstone> tombstones;  // by UID
  Duration lease_left;
  std::map<std::string, fleet::Statistics> statistics;
  std::vector<agent::Orphan> orphans;
  uint64_t offers_open = 0;  // asked on this session and not answered, in time or late
  // Said and not yet acted upon, the newest of each: it came faster than the limits allow.
  std::map<std::string, agent::PoolFacts> late_facts;  // by pool UID
  std::optional<std::vector<agent::Orphan>> late_orphans;
  bool is_catching_up = false;  // a task waits until they may be
  client::HostCertificate
      certificate;  // the host's newest; the session may have begun with another
  bool is_draining = false;
  bool is_listed = false;   // in the table
  bool is_pumping = false;  // a task works off what is dirty
  // UIDs of what cannot be assigned as long as something of it cannot be read (ADR 0038). A task
  // looks at them again while there are any.
  std::set<std::string> unread;
  bool looks_again = false;
  bool said_goodbye = false;
  Time last_word;
  rt::Event* challenge = nullptr;  // somebody waits for a word
  rt::TaskScope scope;

 private:
  void PostFlush();
  void SendBytes(std::string message);

  // Decoded objects that wait for their assignment: 32 * 3.5 KB.
  static constexpr size_t kObjectsKept = 32;
  // A host that says it is there while it answers an offer hears of the binding within this.
  static constexpr Duration kGrantPause = Duration::Millis(50);

  rt::Loop& loop_;
  net::MessageStream& stream_;
  const HostIdentity identity_;
  const uint64_t number_;
  agent::ServerMessage queued_;
  bool flush_posted_ = false;
  bool grant_timed_ = false;
  std::string assigns_;  // encoded agent::ServerMessages, which merge into the queued one
  std::optional<Refusal> ended_;
  rt::ChildContext* reader_ = nullptr;
  Bucket messages_{kMessagesPerSecond * 2, kMessagesPerSecond};
  Bucket bytes_{kBytesPerSecond * 2, kBytesPerSecond};
  Bucket acks_{kAcksPerSecond * 2, kAcksPerSecond};
  Bucket refusals_{kRefusalsPerSecond * 2, kRefusalsPerSecond};
  Bucket statuses_{kStatusesPerSecond * 2, kStatusesPerSecond};
  Bucket gone_{kGonePerSecond * 2, kGonePerSecond};
  Bucket facts_{kFactsPerSecond * 2, kFactsPerSecond};
  Bucket statistics_{kStatisticsBurst, kStatisticsPerSecond};
  Bucket events_{kEventsPerSecond * 2, kEventsPerSecond};
  Bucket orphan_lists_{kOrphanListsPerSecond * 2, kOrphanListsPerSecond};
  Bucket strikes_{kStrikesMax, kStrikesPerSecond};
  std::map<std::string, std::optional<meta::Object>> dirty_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace berth::gateway
