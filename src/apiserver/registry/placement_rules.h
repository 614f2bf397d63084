// SPDX-License-Identifier: Apache-2.0
// What binding and unbinding make of an object, as pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "apis/placement.h"
#include "base/status.h"
#include "base/time.h"
#include "client/binder.h"
#include "client/rewound.h"
#include "meta/object.h"
#include "store/store.h"

namespace berth::apiserver {

// Conflict unless the object is the one that was decided on: generation, placement, not deleting,
// not bound, not meant for another pool (S3a).
Status CheckBindable(const meta::Object& object, const client::BindItem& item);
// REQUIRES: CheckBindable(object, item) is ok. `mode` is the pool's.
void BecomeBound(meta::Object& object,
                 const client::BindItem& item,
                 std::string_view mode,
                 WallTime now);

// Of a new object that a host has already: its numbers begin above every one that this UID can have
// had, since each of those cost a commit of its own. Once bound it is as free to move as any.
void BecomeAdopted(meta::Object& object, store::Revision revision);

// Conflict unless the object has the placement that was decided on.
Status CheckAdoptable(const meta::Object& object, const client::Adoption& adoption);
// REQUIRES: CheckAdoptable(...) is ok. Bound to where it runs, whatever it was bound or pinned to.
// A reservation keeps no more than `unit` for each machine that it is still for, whatever its host
// says; nullopt: that is not known.
void BecomeRehomed(meta::Object& object,
                   const client::Adoption& adoption,
                   const std::optional<apis::Amounts>& unit,
                   std::string_view mode,
                   WallTime now);

// The machine's volume is the machine's alone. Conflict if another one has claimed it or nobody
// may.
Status CheckClaimable(const meta::Object& volume, const meta::Object& machine);
// False if the machine has it already.
bool Claim(meta::Object& volume, const meta::Object& machine);

// Conflict if the object is not bound with this placement, Forbidden if the proof does not do.
// `mode` is the pool's, "" if the pool is gone.
Status CheckUnbindable(const meta::Object& object,
                       const client::UnbindRequest& request,
                       std::string_view mode);
// REQUIRES: CheckUnbindable(...) is ok.
void BecomeUnbound(meta::Object& object, const client::UnbindRequest& request, WallTime now);

// Room for one machine of a reservation that is bound: an equal part of what it still keeps.
apis::Amounts RoomOfOne(const meta::Object& reservation);
// Whether the machine, which the item binds, may use one part of the reservation: it names it, goes
// to the same pool, something is left, and it needs not more than `room`. Conflict if not.
Status CheckConsumable(const meta::Object& reservation,
                       const meta::Object& machine,
                       const client::BindItem& item,
                       const apis::Amounts& room);
// REQUIRES: CheckConsumable(...) is ok. The part is the machine's; what it does not use is free.
void Consume(meta::Object& reservation, const meta::Object& machine, const apis::Amounts& room);

// Whatever keeps the object until its host has said that it is gone.
void RemovePoolletFinalizers(meta::Object& object);

}  // namespace berth::apiserver
