// SPDX-License-Identifier: Apache-2.0
// The checkers of a simulation. Each is always on and says at the very step at which something is
// wrong that it is. Every one has a broken variant in broken.h that it has to notice.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "client/client.h"
#include "meta/kind.h"
#include "rt/task.h"
#include "sim/sight.h"
#include "sim/watched_store.h"

namespace berth::sim {

class Checker {
 public:
  explicit Checker(Sight& sight) : sight_(sight) {}
  virtual ~Checker() = default;
  virtual std::string_view name() const = 0;

  // A server was started and has read the store.
  virtual void OnLoaded(const store::RangeResult&) {}
  virtual void OnChange(const Truth::Change&) {}
  // A call has changed something in this host's runtime, or time did.
  virtual void OnHost(HostProcess&) {}
  virtual void OnTick() {}  // every virtual second
  // The store is that of an old backup from here on.
  virtual void OnRestore() {}

 protected:
  void Fail(std::string what) { sight_.Fail(name(), std::move(what)); }
  Sight& sight_;
};

// A host never has more on it than it has room, and the server never promised more. Room that is
// reserved counts, and goes to machines that name the reservation, each into its own part.
class CapacityChecker final : public Checker {
 public:
  using Checker::Checker;
  std::string_view name() const override { return "capacity"; }
  void OnChange(const Truth::Change& change) override;
  void OnHost(HostProcess& host) override;
  void OnTick() override;

 private:
  void CheckUse(const PlacedFact& machine);
};

// One pool per UID and placement number; numbers only grow.
class BoundOnceChecker final : public Checker {
 public:
  using Checker::Checker;
  std::string_view name() const override { return "bound-once"; }
  void OnChange(const Truth::Change& change) override;
  void OnRestore() override { bound_.clear(); }

 private:
  struct Bound {
    int64_t epoch = 0;
    std::string pool_uid;
  };
  std::map<std::string, Bound> bound_;  // by UID
};

// At most one running copy of a UID, asked of the runtimes.
class OneCopyChecker final : public Checker {
 public:
  using Checker::Checker;
  std::string_view name() const override { return "one-copy"; }
  void OnHost(HostProcess& host) override;

 private:
  std::map<std::string, std::map<size_t, int>> running_;  // by UID, by host
  std::map<size_t, std::set<std::string>> on_host_;
};

// What the store acknowledged is there after every crash, and no edit is lost.
class DurableChecker final : public Checker {
 public:
  DurableChecker(Sight& sight, Acknowledged& acknowledged)
      : Checker(sight), acknowledged_(acknowledged) {}
  std::string_view name() const override { return "durable"; }
  void OnLoaded(const store::RangeResult& all) override;
  void OnChange(const Truth::Change& change) override;
  void OnRestore() override { acknowledged_ = {}; }

 private:
  Acknowledged& acknowledged_;
};

// A watch of one kind through the API shows every change exactly once and in order, over errors
// and crashes. A server that shares its store may have been away for so long that it reads the
// state anew: states that were overwritten meanwhile may then be missing.
class WatchChecker final : public Checker {
 public:
  enum class Overwritten : uint8_t { kIsShown, kMayBeMissing };
  WatchChecker(Sight& sight, const meta::KindInfo& kind, Overwritten overwritten);
  // What is watched: objects of users and of hosts, with a namespace and without.
  static std::span<const meta::KindInfo* const> Kinds();

  std::string_view name() const override { return "watch"; }
  void OnChange(const Truth::Change& change) override;
  void OnRestore() override;
  // Watches until it is cancelled; the next life of the server goes on where this one ended.
  rt::Task<Status> Follow(client::Client* client);

 private:
  using Keys = std::set<std::string>;
  rt::Task<Status> ListAll(client::Client* client);
  rt::Task<Status> WatchOn(client::Client* client);
  void OnEvent(const client::WatchEvent& event);
  void Pass(int64_t revision);  // everything before it must have been seen
  bool MayBeMissing(const std::string& key, int64_t revision) const;

  const meta::KindInfo& kind_;
  const std::string prefix_;  // of its keys
  const Overwritten overwritten_;
  int64_t position_ = 0;  // zero: list first
  int64_t listed_ = 0;    // where the last list was
  std::map<int64_t, Keys> expected_;
  std::map<int64_t, Keys> early_;  // seen before the store's own watch told of it
  Keys shown_;                     // of the revision at position_
};

// Whatever waits for a place says why.
class ReasonChecker final : public Checker {
 public:
  using Checker::Checker;
  std::string_view name() const override { return "reason"; }
  void OnTick() override;

 private:
  std::map<std::string, Time> waiting_;  // by UID: since when
};

// Nothing is deleted that nobody asked to delete, in the store or on a host.
class AskedChecker final : public Checker {
 public:
  using Checker::Checker;
  std::string_view name() const override { return "asked"; }
  void OnChange(const Truth::Change& change) override;
  void OnHost(HostProcess& host) override;

 private:
  bool MayGo(const PlacedFact& fact) const;
  bool MayPartGo(const PlacedFact& part) const;
  std::map<size_t, std::map<std::string, int64_t>> here_;  // by host: UID to placement
};

}  // namespace berth::sim
