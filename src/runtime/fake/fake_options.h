// SPDX-License-Identifier: Apache-2.0
// What a fake host is, how fast it is, and in which ways it fails and lies.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/time.h"
#include "iri/runtimes.h"

namespace berth::runtime {

enum class FakeFlavor : uint8_t {
  kBerth,    // creates idempotently by uid label, serves HostRuntime
  kForeign,  // neither
};

enum class FakeGuests : uint8_t {
  kSimulated,  // in memory; the host keeps their leases
  // Real processes that sleep; their leases are a fencer's business. See guest_processes.h.
  kProcesses,
  kLastingProcesses,  // the same, and they outlive the runtime
};

struct FakeTimes {
  Duration boot = Duration::Seconds(2);
  Duration shutdown = Duration::Seconds(1);
  Duration volume = Duration::Millis(500);    // until a volume or bucket is available
  Duration snapshot = Duration::Millis(500);  // until it is ready
  Duration stuck = Duration::Minutes(1);      // how long a deletion hangs that hangs
  // Each way of a call takes a time drawn from [call_min, call_max].
  Duration call_min;
  Duration call_max;
  // A create whose caller died meanwhile is done so much later; zero: it was never sent.
  Duration late_create;
};

// What goes wrong, as probabilities. Nothing that is said is untrue.
struct FakeFaults {
  double call_fails = 0;          // Unavailable, nothing was done
  double create_fails = 0;        // Internal, nothing was made
  double create_answer_lost = 0;  // Unavailable, yet it was made
  double answer_lost = 0;         // the same for every other call
  double boot_fails = 0;          // the guest dies at the end of its boot time
  double delete_sticks = 0;       // deletion hangs for FakeTimes::stuck, the guest alive
  double crashes_per_hour = 0;    // of one running guest, on average
};

// What the runtime says that is not so.
struct FakeLies {
  double capacity_factor = 1;       // of the capacity that it reports
  double list_omits = 0;            // probability that a list leaves out an object
  bool reports_running = false;     // every machine with power on is "running"
  bool creates_duplicates = false;  // kBerth, and yet a second create makes a second object
  bool ignores_leases = false;      // no guest is killed, none is refused
  bool accepts_everything = false;  // creates beyond the capacity
};

struct FakeHostOptions {
  std::string name = "fake";  // shows in handles
  FakeFlavor flavor = FakeFlavor::kBerth;
  FakeGuests guests = FakeGuests::kSimulated;
  iri::ResourceVector capacity;  // shared by machines, volumes and snapshots
  std::vector<iri::MachineClass> machine_classes;
  std::vector<iri::VolumeClass> volume_classes;
  std::vector<iri::BucketClass> bucket_classes;
  FakeTimes times;
  FakeFaults faults;
  FakeLies lies;
};

// A host with these classes offered by default: small (1 core, 1 GiB), medium (2, 4), large (4, 8);
// volumes fast and slow; buckets standard.
FakeHostOptions DefaultFakeHost();

}  // namespace berth::runtime
