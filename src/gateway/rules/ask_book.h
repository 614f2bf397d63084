// SPDX-License-Identifier: Apache-2.0
// An AskBook holds the offers that wait for an answer. Each is answered exactly once: by its host,
// by the clock, or by the end of its session.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/time.h"
#include "fleet/fleet.h"

namespace berth::gateway {

class AskBook {
 public:
  using Done = std::function<void(fleet::Answer)>;
  struct Ended {
    fleet::OfferId id;
    Done done;
  };

  // An offer that is in the book already is ended first: two answers cannot be told apart.
  std::optional<Done> Add(fleet::OfferId id, uint64_t session, Time deadline, Done done);

  enum class Match : uint8_t {
    kTaken,    // whoever asked is waiting
    kLate,     // nobody waits any more: to be released (S6)
    kForeign,  // another host was asked: to be ignored
  };
  struct Found {
    Match match = Match::kLate;
    Done done;
  };
  Found Take(fleet::OfferId id, uint64_t session);

  std::vector<Ended> Expire(Time now);
  std::vector<Ended> DropSession(uint64_t session);
  std::optional<Time> next_deadline() const;
  size_t size() const { return asked_.size(); }

 private:
  struct Asked {
    uint64_t session;
    Time deadline;
    Done done;
  };
  std::map<fleet::OfferId, Asked> asked_;
  std::set<std::pair<Time, fleet::OfferId>> deadlines_;
};

}  // namespace berth::gateway
