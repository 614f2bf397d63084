// SPDX-License-Identifier: Apache-2.0
#include "sim/leader_checkers.h"

#include <fmt/format.h>

#include <algorithm>

#include "app/leading/candidacy.h"

namespace berth::sim {
namespace {

constexpr Duration kFailoverWithin = Duration::Seconds(3);

}  // namespace

void OneLeaderChecker::OnChange(const Truth::Change& change) {
  if (change.key == app::kLeaderGuard) raised_.push_back(change.revision);
}

void OneLeaderChecker::LeaderWrote(store::Revision reign, store::Revision revision) {
  const auto later = std::ranges::upper_bound(raised_, revision);
  if (later != raised_.begin() && *std::prev(later) == reign) return;
  Fail(fmt::format("the leader since revision {} wrote at {}, when the one since {} led",
                   reign.value,
                   revision.value,
                   later == raised_.begin() ? 0 : std::prev(later)->value));
}

void FailoverChecker::OnChange(const Truth::Change& change) {
  if (!lost_) return;
  if (change.key == app::kLeaderGuard) lost_->is_followed = true;
  const bool is_placed = change.now && !change.now->pool_uid.empty() &&
                         (!change.before || change.before->pool_uid.empty());
  if (!is_placed || !lost_->is_followed) return;
  const Duration took = sight_.now() - lost_->at;
  lost_.reset();
  ++failovers_;
  longest_ = std::max(longest_, took);
  if (took > kFailoverWithin) {
    Fail(fmt::format("the first placement came {:.3f}s after the leader was lost",
                     took.to_seconds()));
  }
}

void FailoverChecker::OnTick() {
  if (!lost_ || sight_.now() - lost_->at <= kFailoverWithin) return;
  Fail(fmt::format("nothing was placed within {:.3f}s after the leader was lost; {}",
                   (sight_.now() - lost_->at).to_seconds(),
                   lost_->is_followed ? "another server leads" : "no other server leads"));
}

}  // namespace berth::sim
