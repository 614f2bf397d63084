// SPDX-License-Identifier: Apache-2.0
// What ties a machine to its host, and what that makes of onPoolLoss Move (PROTOCOL 3.2). Pure.
//
// A machine with state that is on its host only is not moved when its host is lost: it would begin
// anew with empty disks. The condition Movable says so, and both ends go by it:
//
//   nothing ties it                     no condition: its host kills it when contact is lost, and
//                                       the server starts it elsewhere
//   something does                      False HostLocalState: neither of them does
//   what tied it went while it runs,    Unknown HostNotTold: its host is told that it may be moved,
//   or its owner asked for Move then    and when it has said so there is no condition any more
//
// The server moves nothing that its host may not know of: such a copy would run twice.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "apis/compute/machine.h"
#include "base/time.h"

namespace berth::apis::compute {

// How far the volume of that name can be used (VolumePoolSpec::reach); "" if it has no place yet.
using VolumeReach = std::function<std::string(const std::string& volume)>;

// Names of the volumes behind the machine's disks; disks of the host have none.
std::vector<std::string> VolumesOf(const Machine& machine);
// Why the machine can be nowhere but on its host, "its disk scratch is on this host only"; "" if
// nothing ties it.
std::string HostTieOf(const Machine& machine, const VolumeReach& reach);

// Whether its host has to kill it when contact is lost: what hosts are told, and what they need a
// fencer for.
bool DiesWithContact(const Machine& machine);
// Whether the server starts it elsewhere once it must have been killed.
bool MovesOnPoolLoss(const Machine& machine);

// The condition Movable as it has to be, given what ties the machine. True if that changed it.
bool SetMovable(Machine& machine, std::string_view tie, WallTime now);
// With the write that makes a bound machine movable: its host has it as one that is kept.
void NoteNewWish(Machine& machine, const Machine& before);
// Its host has said that it kills the machine when contact is lost. True if that ends a wait.
bool HostWasTold(Machine& machine);
bool HasMovableCondition(const Machine& machine);

}  // namespace berth::apis::compute
