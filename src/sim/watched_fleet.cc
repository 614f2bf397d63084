// SPDX-License-Identifier: Apache-2.0
#include "sim/watched_fleet.h"

#include <utility>

namespace berth::sim {

void WatchedFleet::Ask(fleet::Offer offer,
                       Duration answer_limit,
                       std::function<void(fleet::Answer)> done) {
  asking_->insert(offer.id);
  const fleet::Offer asked = offer;
  inner_.Ask(std::move(offer),
             answer_limit,
             [asking = asking_, moments = &moments_, asked, done = std::move(done)](
                 const fleet::Answer& answer) {
               asking->erase(asked.id);
               moments->Answered(asked, answer);
               done(answer);
             });
  moments_.Offered(asked);
}

bool WatchedFleet::ClaimMove(const std::string& uid, uint64_t placement) {
  const bool is_claimed = inner_.ClaimMove(uid, placement);
  moments_.MoveClaimed(uid, is_claimed);
  return is_claimed;
}

}  // namespace berth::sim
