// SPDX-License-Identifier: Apache-2.0
// A Reconciler brings the runtimes to what is desired, object by object: observe, decide the next
// step, carry it out, observe again. It keeps nothing that it could not observe anew, so it may die
// between any two steps. On-loop only.
//
// Invariants: 1. One object is worked on by one task at a time. 2. Nothing is decided without an
// observation made after the last step. 3. Only what is marked as removing is ever deleted, and
// surplus objects that never ran.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "base/time.h"
#include "poollet/reconcile/driver.h"
#include "rt/backoff.h"
#include "rt/gate.h"
#include "rt/loop.h"
#include "rt/scope.h"

namespace berth::poollet {

struct ReconcileOptions {
  Duration call_limit = kCallLimit;
  // How long a create whose answer was lost may still show, from when it was sent.
  Duration create_settle = kCallLimit + Duration::Seconds(5);
  Duration relist = Duration::Millis(500);  // while something is known to be under way
  Duration stuck_recheck = Duration::Seconds(30);
  Duration restart_first = Duration::Seconds(10);  // after the second failure; doubles
  Duration restart_max = Duration::Minutes(5);
  size_t concurrency = 32;  // objects that are worked on at once
  int create_attempts = 3;  // definite refusals of the runtime before the host gives it back
};

// One object that this host shall have, or shall not have any more.
struct Target {
  std::shared_ptr<const Desired> desired;
  Phase phase = Phase::kAssigned;
  bool secrets_missing = false;
  bool was_available = false;
  bool create_begun = false;
  std::string runtime_id;  // of the object that was started in a former life; "" if not known
  int64_t storage_allowed = 0;
};

class Reconciler {
 public:
  // Who says what is desired, and hears what became of it. Calls come on the loop.
  class Owner {
   public:
    virtual ~Owner() = default;
    virtual void Reported(ObjectReport report) = 0;
    // Nothing of it is left in the runtime.
    virtual void Removed(const std::string& uid) = 0;
    // The runtime will not have it, and has nothing of it.
    virtual void Refused(const std::string& uid, std::string reason, std::string message) = 0;
    virtual void BecameAvailable(const std::string& uid) = 0;
    // P7: whether a live lease of this session covers the uid.
    virtual bool HasLease(const std::string& uid) const = 0;
    // The same, and whoever kills it at the lease's end knows of it.
    virtual bool IsArmed(const std::string& uid) const = 0;
    // Puts the guest under the lease before it starts.
    virtual rt::Task<Status> Cover(std::string uid) = 0;
    // Durable on return: from here on a create may be under way.
    virtual rt::Task<Status> CreateBegins(std::string uid) = 0;
    // The same: from here on this object of a foreign runtime may run.
    virtual rt::Task<Status> StartBegins(std::string uid, std::string runtime_id) = 0;
  };
  // A runtime and whether its creates are idempotent.
  struct Port {
    Driver* driver = nullptr;
    iri::HostRuntime* host = nullptr;  // null for a foreign runtime
    bool is_idempotent = true;
    std::string runtime_name;
  };

  // `owner` and the drivers outlive the reconciler.
  Reconciler(rt::Loop& loop, Owner& owner, ReconcileOptions options);
  ~Reconciler();

  void SetPort(fleet::ObjectKind kind, Port port);
  void SetClusterId(std::string cluster_id) { cluster_id_ = std::move(cluster_id); }

  // Begins or goes on with new wishes. REQUIRES: the target is durable in the record (P4).
  void Put(Target target);
  // Forgets it without touching the runtime.
  void Drop(const std::string& uid);
  // Something may have changed: look again soon. Unknown uids are ignored.
  void Kick(const std::string& uid);
  void KickAll();
  // Says again what was last said of the object.
  void ReportAgain(const std::string& uid);
  // Forgets what was said of the object: the next look reports it, whether it changed or not.
  void ReportAnew(const std::string& uid);
  bool Has(const std::string& uid) const { return items_.contains(uid); }

  // Cancels what is in progress and waits for it. The runtimes keep what they have.
  rt::Task<Status> Close();

 private:
  // An object that the runtime had once.
  struct Known {
    RuntimeObject object;
    int misses = 0;  // lists without it since
  };
  struct Item {
    Target target;
    bool dirty = false;  // look again when the task that works on it is done
    std::optional<rt::TimerId> timer;
    rt::Backoff backoff;
    std::string error;
    std::map<std::string, Known> known;  // by id
    int nameless = 0;          // creates that may have made something whose id is not known
    int nameless_misses = 0;   // lists since without anything new
    bool create_sent = false;  // one that may have made something, in this life or a former one
    std::optional<Time> create_unknown_until;
    int create_refusals = 0;
    Time restart_at;  // not before
    Duration restart_pause;
    std::optional<ObjectReport> reported;
    uint64_t version = 0;  // grows with every Put
  };
  // What a pass over one object ended with.
  enum class Pass : uint8_t { kAgain, kDone };

  Item* Find(const std::string& uid);
  const Port* PortOf(fleet::ObjectKind kind) const;
  Situation SituationOf(const Item& item, const Port& port) const;
  void Start(const std::string& uid, Item& item);
  void Later(const std::string& uid, Item& item, Duration delay);
  void RetryLater(const std::string& uid, Item& item, const Status& status);
  void Report(Item& item, const Port& port, const Observation& observed, Step step);

  rt::Task<Status> Work(std::string uid);
  rt::Task<Pass> Look(std::string uid);
  // Gives the runtime what it needs at registries; ok if that is nothing.
  rt::Task<Status> GivePullSecret(std::string uid, std::shared_ptr<const Observation> observed);
  rt::Task<Pass> Act(std::string uid, Step step, std::shared_ptr<const Observation> observed);
  rt::Task<Status> Prepare(std::string uid, Step step);
  rt::Task<Pass> Finish(std::string uid);
  static void NoteListed(Item& item, const std::vector<RuntimeObject>& objects);
  static bool MayBeHidden(const Item& item);
  // Asks for what is missing from the lists by its id. True if all of it is gone.
  rt::Task<bool> IsGone(std::string uid);
  Pass AwaitHidden(const std::string& uid, const Observation& observed);
  Pass Idle(const std::string& uid, Item& item, const Step& step);
  rt::Task<Status> Carry(std::string uid, Step step, std::shared_ptr<const Observation> observed);
  Pass Judge(const std::string& uid, const Step& step, const Status& status);
  void NoteRestart(Item& item, const Step& step, const Observation& observed);

  rt::Loop& loop_;
  Owner& owner_;
  const ReconcileOptions options_;
  std::string cluster_id_;
  std::map<fleet::ObjectKind, Port> ports_;
  std::map<std::string, Item, std::less<>> items_;
  std::set<std::string> working_;  // uids that a task works on (1)
  rt::Gate gate_;
  rt::TaskScope scope_;
};

}  // namespace berth::poollet
