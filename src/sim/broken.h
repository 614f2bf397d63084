// SPDX-License-Identifier: Apache-2.0
// Deliberately broken parts: each misbehaves in a way that exactly one checker has to notice. They
// stand around the real parts, in a simulation only.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "client/binder.h"
#include "client/passing_client.h"
#include "store/passing_store.h"
#include "store/store.h"

namespace berth::sim {

enum class Broken : uint8_t {
  kNothing,
  kCapacity,       // runtimes say that they have twice what they have, and take it
  kOverPromise,    // poollets take their runtimes for twice as large as these say
  kOversize,       // poollets make machines larger than they are; runtimes refuse nothing
  kRebind,         // the store changes the pool of a binding
  kKeptNumber,     // an unbinding does not count: the placement number stays
  kLostNumber,     // an unbinding forgets how far it was counted
  kLeases,         // poollets give guests more time than the server has granted
  kLostWrite,      // a crash takes writes back that were acknowledged
  kLostEdit,       // who writes a machine does not look whether it has changed meanwhile
  kWatchGap,       // the store's watch leaves out an event now and then
  kWatchHole,      // so does a watch through the API
  kWatchEcho,      // a watch through the API shows an event again now and then
  kSilence,        // what says why an object waits is not written
  kRogue,          // somebody deletes what nobody asked to delete
  kPurge,          // poollets delete machines that they are to keep
  kUsedDisk,       // hosts are told to delete volumes that machines still use
  kNoBoot,         // poollets do not switch machines on
  kTies,           // what ties a machine to its host is not seen
  kLingers,        // nobody is asked to leave for a taint
  kSpoiltRecord,   // a crash damages a poollet's record in the middle
  kCutRecord,      // poollets write a part of a change into their record now and then
  kKeptRoom,       // a reservation is bound without the room that it keeps
  kNamedRoom,      // machines that name a reservation are bound beside it
  kEarlyFarewell,  // whoever is on a host that leaves is taken for tied to it
  kNoReplace,      // what a set is to replace on a lost host is not removed
  // With several servers.
  kFence,     // what a leader writes is not conditioned on its being the leader
  kSluggish,  // a leader takes its time before it begins
};
enum class BrokenServers : uint8_t { kAny, kSeveral };
struct BrokenName {
  Broken broken;
  std::string_view name;     // "lost-write"
  std::string_view checker;  // that has to notice
  std::string_view help;
  BrokenServers servers = BrokenServers::kAny;
  std::string_view scenario = "broken";  // of test/scenarios: where it shows within a few seeds
  std::string_view words;                // of the violation, if its checker looks at several things
};
std::span<const BrokenName> BrokenNames();
std::optional<Broken> BrokenByName(std::string_view name);

// kRebind and kWatchGap; kLostEdit, kKeptNumber and kLostNumber do to what the registry commits
// what a wrong registry would.
class BrokenStore final : public store::PassingStore {
 public:
  BrokenStore(store::Store& inner, Broken broken) : PassingStore(inner), broken_(broken) {}

  rt::Task<Result<store::TxnResult>> Commit(store::Txn txn) override;
  rt::Task<Result<std::unique_ptr<store::Watch>>> StartWatch(store::WatchRequest request) override;

 private:
  void Spoil(store::Txn& txn);
  void Rebind(store::Op& op);
  void Renumber(store::Op& op);

  const Broken broken_;
  std::string other_pool_;                    // whose UID is put into bindings of others
  std::map<std::string, std::string> bound_;  // key of a machine: UID of its pool
};

// kSilence, kTies, kLingers, kEarlyFarewell, kNoReplace, kUsedDisk, kWatchHole and kWatchEcho.
class BrokenClient final : public client::PassingClient {
 public:
  BrokenClient(client::Client& inner, Broken broken) : PassingClient(inner), broken_(broken) {}

  rt::Task<Result<meta::Object>> Get(const meta::KindInfo& kind, client::ObjectKey key) override;
  rt::Task<Result<client::ObjectList>> List(const meta::KindInfo& kind,
                                            client::ListOptions options) override;
  rt::Task<Result<std::unique_ptr<client::ObjectWatch>>> Watch(
      const meta::KindInfo& kind, client::WatchOptions options) override;
  rt::Task<Result<meta::Object>> Update(meta::Object object, client::WriteOptions options) override;
  rt::Task<Status> Delete(const meta::KindInfo& kind,
                          client::ObjectKey key,
                          client::DeleteOptions options) override;

 private:
  const Broken broken_;
};

// kKeptRoom and kNamedRoom.
class BrokenBinder final : public client::Binder {
 public:
  BrokenBinder(client::Binder& inner, Broken broken) : inner_(inner), broken_(broken) {}

  rt::Task<std::vector<Result<std::vector<meta::Object>>>> BindBatch(
      std::vector<client::BindRequest> requests) override;
  rt::Task<std::vector<Status>> CreateBoundBatch(meta::Object model,
                                                 std::vector<client::BindItem> items,
                                                 std::string holder,
                                                 int64_t term) override {
    return inner_.CreateBoundBatch(std::move(model), std::move(items), std::move(holder), term);
  }
  rt::Task<std::vector<Status>> UnbindBatch(std::vector<client::UnbindRequest> requests) override {
    return inner_.UnbindBatch(std::move(requests));
  }

 private:
  client::Binder& inner_;
  const Broken broken_;
};

}  // namespace berth::sim
