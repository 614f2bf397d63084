// SPDX-License-Identifier: Apache-2.0
// What one host offers.
#pragma once

#include "iri/bucket.h"
#include "iri/host.h"
#include "iri/machine.h"
#include "iri/volume.h"

namespace berth::iri {

// Null: the host has none. All outlive whoever uses them and belong to the same loop. `host` is
// null for a foreign runtime, whose create is not idempotent.
struct Runtimes {
  MachineRuntime* machine = nullptr;
  VolumeRuntime* volume = nullptr;
  BucketRuntime* bucket = nullptr;
  HostRuntime* host = nullptr;
};

}  // namespace berth::iri
