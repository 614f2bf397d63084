// SPDX-License-Identifier: Apache-2.0
// The commands of `berth iri`.
#pragma once

#include "base/status.h"
#include "cli/arguments.h"
#include "cli/session/session.h"

namespace berth::cli {

// Looking.
Status RunMachines(Session& session, const Arguments& arguments);
Status RunVolumes(Session& session, const Arguments& arguments);
Status RunSnapshots(Session& session, const Arguments& arguments);
Status RunBuckets(Session& session, const Arguments& arguments);
Status RunRuntimeEvents(Session& session, const Arguments& arguments);
Status RunRuntimeVersion(Session& session, const Arguments& arguments);
Status RunRuntimeStatus(Session& session, const Arguments& arguments);
Status RunCapacity(Session& session, const Arguments& arguments);
Status RunRuntimeExec(Session& session, const Arguments& arguments);
Status RunWatchChanges(Session& session, const Arguments& arguments);
Status RunReservations(Session& session, const Arguments& arguments);
Status RunLeases(Session& session, const Arguments& arguments);

// Changing.
Status RunCreateObjects(Session& session, const Arguments& arguments);
Status RunDeleteObjects(Session& session, const Arguments& arguments);
Status RunPower(Session& session, const Arguments& arguments);
Status RunAttach(Session& session, const Arguments& arguments);
Status RunDetach(Session& session, const Arguments& arguments);
Status RunExpand(Session& session, const Arguments& arguments);
Status RunAnnotate(Session& session, const Arguments& arguments);
Status RunReserve(Session& session, const Arguments& arguments);
Status RunUnreserve(Session& session, const Arguments& arguments);
Status RunLease(Session& session, const Arguments& arguments);

}  // namespace berth::cli
