// SPDX-License-Identifier: Apache-2.0
// What the commands about pools have in common: finding them, what is on them,
// and emptying them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "cli/api/api.h"
#include "cli/arguments.h"
#include "cli/objects/patience.h"
#include "cli/objects/targets.h"
#include "cli/session/session.h"
#include "meta/value.h"

namespace berth::cli {

// "alpha", "machinepool/alpha", "volumepool/alpha": a bare name is a
// MachinePool.
Result<std::vector<Target>> FindPools(Session& session, const std::vector<std::string>& words);
// "machinepool.compute.ironcore.dev/alpha".
std::string LabelOf(const Target& pool);

// A merge patch to the pool.
Status PatchPool(Api& api, const Target& pool, const meta::Value& patch);
// Annotations are how an operator's word reaches the server; null takes it back.
Status AnnotatePool(Api& api, const Target& pool, std::string_view annotation, meta::Value value);
// Until the server has taken the annotation away, or the pool is gone. `what` is waited for.
Status AwaitAnnotationGone(Api& api,
                           const Target& pool,
                           std::string_view annotation,
                           const Patience& patience,
                           std::string_view what);

enum class Schedulable : uint8_t { kNo, kYes };
// Whether something changed.
Result<bool> SetSchedulable(Api& api, const Target& pool, Schedulable wanted);
// The same with a word about it.
Status Cordon(Session& session, const Target& pool);

struct Bound {
  Resource resource;
  std::vector<meta::Value> objects;
};
// Everything that is on the pool, which `object` is, kind by kind: what it is for comes first.
Result<std::vector<Bound>> FetchBound(Session& session,
                                      const Target& pool,
                                      const meta::Value& object);

// "shop/web".
std::string NameOf(const meta::Value& object);
// "shop/web, shop/db and 3 more".
std::string FirstOf(const std::vector<std::string>& names);

bool HasLocalDisk(const meta::Value& machine);

// Asks the object to leave its pool, if it is still on the pool that was looked
// at.
Status AskToLeave(Api& api,
                  const Resource& resource,
                  const meta::Value& object,
                  std::string_view why);

// Refuses if machines are on a pool whose poollet would stop nothing: what left would run on there,
// beside its successor.
Status CheckLeavable(Session& session, const Target& pool, const meta::Value& object);

// What becomes of machines whose disks are lost with their place, and of those that fit nowhere
// else because of volumes that only their host reaches.
enum class LocalDisks : uint8_t { kKept, kLost };
enum class TiedMachines : uint8_t { kKept, kStopped };
struct DrainChoice {
  LocalDisks local_disks = LocalDisks::kKept;
  TiedMachines tied_machines = TiedMachines::kKept;
};
// Cordons the pool, asks everything on it to leave, and waits until it is
// empty. Refuses if something is to be kept. A pool whose poollet would stop nothing must have no
// machines.
Status DrainPool(Session& session,
                 const Target& pool,
                 DrainChoice choice,
                 const Patience& patience);

// What a pool says of what its host runs and the server does not know: its condition Orphans.
struct OrphansSaid {
  // kUnknown: the host has more than the server lists, and some of it may be of this pool.
  enum class State : uint8_t { kNone, kSome, kUnknown };
  State state = State::kNone;
  std::string message;
};
OrphansSaid OrphansSaidOf(const meta::Value& pool);

// Ok with --yes, or if the person at the terminal says so; otherwise nothing
// shall be done. `risk` says what may be lost.
Status Confirm(Session& session, const Arguments& arguments, std::string_view risk);

}  // namespace berth::cli
