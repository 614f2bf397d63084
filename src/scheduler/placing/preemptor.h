// SPDX-License-Identifier: Apache-2.0
// The Preemptor makes room for what is important (PROTOCOL 8.4): it stops machines whose class
// allows it, and keeps their room for whom it was made.
//
//   plan ──► nomination in the status ──► victims are asked to leave ──► their hosts say Gone ──►
//   the next attempt finds the room
//
// Rules
//   1. Nobody is asked to leave before the nomination is durable: a new leader goes on where the
//      last one stopped (sequence 22).
//   2. The room is taken on the board from the plan on, by a stand-in: nothing else goes there
//      until the nomination ends, at the latest at `until`.
//   3. Victims are released by their hosts, as in a drain; nothing is deleted or unbound here.
//   4. Where room was made and the host did not take the object all the same, nobody is stopped for
//      it again for a while: else the victims would come back and be stopped in turn, for ever.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "apis/core/placement.h"
#include "base/metrics.h"
#include "base/result.h"
#include "base/time.h"
#include "client/client.h"
#include "client/events/event_recorder.h"
#include "rt/loop.h"
#include "rt/scope.h"
#include "rt/task.h"
#include "scheduler/core/board.h"
#include "scheduler/placing/object_directory.h"
#include "scheduler/placing/pool_directory.h"

namespace berth::scheduler {

class Preemptor {
 public:
  struct Deps {
    rt::Loop& loop;
    rt::TaskScope& scope;  // of writes under way
    Board& board;
    const PoolDirectory& pools;
    const ObjectDirectory& objects;
    client::Client& client;
    client::EventRecorder& events;
    metrics::Registry& metrics;
    // The object that waited for its room is to be tried again: there will be none.
    std::function<void(const std::string& uid)> try_again;
  };
  // How long room is kept for whom it was made.
  static constexpr Duration kKeptFor = Duration::Minutes(2);
  // Objects for which room is made at a time.
  static constexpr size_t kNominationsMax = 256;
  // Who found nobody to stop looks again after this, and those like it do not look before.
  static constexpr Duration kLookAgain = Duration::Seconds(15);
  static constexpr Duration kHopelessFor = Duration::Seconds(1);
  static constexpr size_t kHopelessMax = 1024;
  // How long nobody is stopped for an object where it was in vain.
  static constexpr Duration kVainFor = Duration::Minutes(30);
  static constexpr size_t kVainMax = 1024;

  explicit Preemptor(Deps deps);
  Preemptor(const Preemptor&) = delete;
  Preemptor& operator=(const Preemptor&) = delete;

  // Before an attempt for the object: its own room is free for it. Takes over what its status says
  // if that is not known yet, and ends what is too old.
  void Lift(const ObjectRecord& record, const Request& request);
  // The same again, for the next round of the attempt.
  void Lend(const std::string& uid);
  // The attempt asks this pool: if its room is on another one, that is kept meanwhile.
  void Asks(const std::string& uid, PoolIndex pool);
  // After an attempt that did not end well: its room is kept again.
  void Restore(const std::string& uid);
  // The request has no place. Whether room is being made for it, and until when it may wait.
  std::optional<Time> MakeRoom(const ObjectRecord& record, const Request& request);
  // It has a place, or needs none.
  void End(const std::string& uid);
  void EndAll();

  // Those for whom there may be room now.
  std::vector<std::string> Ready(const std::vector<Change>& changes) const;
  // Name of the pool where room is being made; "" without.
  std::string PoolFor(const std::string& uid) const;
  // Whether that is one of these.
  bool KeepsOneOf(const std::string& uid, std::span<const PoolIndex> pools) const;
  size_t nominations() const { return nominations_.size(); }

 private:
  struct Nomination {
    Request stand_in;
    PoolIndex pool{};
    Time until;
  };
  struct Victim {
    client::ObjectKey key;
    std::string uid;
    int64_t placement = 0;
  };

  bool Plan(const ObjectRecord& record, Request request, std::optional<PoolIndex> pool);
  // Whether a search for the same shape and priority found nobody just now: thousands of equal
  // machines must not search every pool each.
  bool IsHopeless(const Request& request);
  void Keep(const std::string& uid, const Request& request, PoolIndex pool, Time until);
  // Whether nothing but room speaks against the pool.
  bool WaitsForRoom(Request request, PoolIndex pool);
  // The time of a nomination is over. Remembers the pool if there was room and it was not to be
  // had.
  void Expire(const std::string& uid, Request request);
  // Leaves out the pools where it was in vain.
  void LeaveOutVain(const std::string& uid, Request& request);
  rt::Task<Status> Carry(client::ObjectKey key,
                         std::string uid,
                         apis::core::Nomination nomination,
                         std::vector<Victim> victims,
                         int32_t priority);
  rt::Task<Status> Nominate(client::ObjectKey key,
                            std::string uid,
                            apis::core::Nomination nomination,
                            size_t victims);

  rt::Loop& loop_;
  rt::TaskScope& scope_;
  Board& board_;
  const PoolDirectory& pools_;
  const ObjectDirectory& objects_;
  client::Client& client_;
  client::EventRecorder& events_;
  const std::function<void(const std::string& uid)> try_again_;
  metrics::Counter& plans_;
  metrics::Counter& victims_;
  std::map<std::string, Nomination> nominations_;           // by UID of the object
  std::map<std::pair<Shape, int32_t>, Time> hopeless_;      // until then
  std::map<std::pair<std::string, PoolIndex>, Time> vain_;  // by UID of the object; until then
};

// What the object says while it waits.
std::string PreemptingText(const std::string& pool);

}  // namespace berth::scheduler
