// SPDX-License-Identifier: Apache-2.0
// Moments is how decorators tell the simulation what is just happening, so that something can go
// wrong right there. Every function is called inside an event: what it decides happens after that
// event, before the next one.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "client/binder.h"
#include "fleet/fleet.h"

namespace berth::sim {

enum class BindFault : uint8_t { kNone, kLoseAnswer, kSlow };

class Moments {
 public:
  virtual ~Moments() = default;

  virtual void Offered(const fleet::Offer& offer) = 0;
  // The host has answered; the scheduler hears of it right after this.
  virtual void Answered(const fleet::Offer& offer, const fleet::Answer& answer) = 0;
  virtual BindFault BindBegins(const std::vector<client::BindRequest>& requests) = 0;
  // `slept` is how long a slow one waited before it was carried out.
  virtual void BindEnded(const client::BindRequest& request,
                         const Status& verdict,
                         Duration slept) = 0;
  // The store still has it where it was.
  virtual void UnbindBegins(const client::UnbindRequest& request) = 0;
  virtual void Unbound(const client::UnbindRequest& request, const Status& verdict) = 0;
  // The machine was told to make room for a more important one.
  virtual void Preempting(const std::string& uid) = 0;
  // A move is about to be committed, or was found to be unnecessary.
  virtual void MoveClaimed(const std::string& uid, bool is_claimed) = 0;
};

}  // namespace berth::sim
