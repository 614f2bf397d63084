// SPDX-License-Identifier: Apache-2.0
#include "gateway/rules/ask_book.h"

namespace berth::gateway {

std::optional<AskBook::Done> AskBook::Add(fleet::OfferId id,
                                          uint64_t session,
                                          Time deadline,
                                          Done done) {
  std::optional<Done> before;
  if (auto node = asked_.extract(id); !node.empty()) {
    deadlines_.erase({node.mapped().deadline, id});
    before = std::move(node.mapped().done);
  }
  asked_.emplace(id, Asked{session, deadline, std::move(done)});
  deadlines_.emplace(deadline, id);
  return before;
}

AskBook::Found AskBook::Take(fleet::OfferId id, uint64_t session) {
  const auto found = asked_.find(id);
  if (found == asked_.end()) return {};
  if (found->second.session != session) return {.match = Match::kForeign, .done = {}};
  Found taken{.match = Match::kTaken, .done = std::move(found->second.done)};
  deadlines_.erase({found->second.deadline, id});
  asked_.erase(found);
  return taken;
}

std::vector<AskBook::Ended> AskBook::Expire(Time now) {
  std::vector<Ended> ended;
  while (!deadlines_.empty() && deadlines_.begin()->first <= now) {
    const fleet::OfferId id = deadlines_.begin()->second;
    deadlines_.erase(deadlines_.begin());
    auto node = asked_.extract(id);
    ended.push_back({id, std::move(node.mapped().done)});
  }
  return ended;
}

std::vector<AskBook::Ended> AskBook::DropSession(uint64_t session) {
  std::vector<Ended> ended;
  for (auto at = asked_.begin(); at != asked_.end();) {
    if (at->second.session != session) {
      ++at;
      continue;
    }
    deadlines_.erase({at->second.deadline, at->first});
    ended.push_back({at->first, std::move(at->second.done)});
    at = asked_.erase(at);
  }
  return ended;
}

std::optional<Time> AskBook::next_deadline() const {
  if (deadlines_.empty()) return std::nullopt;
  return deadlines_.begin()->first;
}

}  // namespace berth::gateway
