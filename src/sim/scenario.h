// SPDX-License-Identifier: Apache-2.0
// A Scenario says how large a simulated world is, what its users do and what goes wrong in it.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace berth::sim {

// All figures are doubles, so that one table describes them; whole ones are checked to be whole.
struct Scenario {
  // The world.
  double servers = 1;  // several share a store, and one of them leads
  double pools = 60;
  double foreign_pools = 3;  // of those: runtimes without leases and idempotent creates
  double bucket_pools = 3;   // hosts that have buckets, too
  double cpus = 16;          // of every host
  double machines = 600;     // that users want, those of sets included
  double sets = 6;           // sets, which make half of the machines
  double volumes = 40;       // machines with a volume
  double minutes = 20;       // virtual: with faults
  // Virtual: then without faults, until everything is as wanted. Longer than a host may be away as
  // announced, which is 5 minutes; the scheduler's recheck, as long as that, is put off for longer
  // than a run takes (server_process.cc).
  double converge_minutes = 6;
  double move_share = 0.4;       // of the machines without a set: onPoolLoss Move
  double binpack_share = 0.3;    // of them: packed densely
  double hopeless_share = 0.01;  // of them, and of the buckets: no pool will do
  double tied_share = 0.05;      // of them: with a disk of their host, which they cannot leave
  double tolerant_share = 0.1;   // of them: tolerate the taints that come and go
  double clock_skew = 1;         // percent: clock rates are off by up to this

  // Users, per virtual minute.
  double creations = 20;  // after the first ones, as many as are deleted
  double deletions = 16;
  double forced_deletions = 0.5;
  double edits = 10;
  double cordons = 1;
  double drains = 0.3;
  double moves = 2;
  double scalings = 2;
  double groups = 0.5;  // machines that are placed together or not at all
  double urgent = 0.5;  // machines for which others are stopped
  double reservations = 0.5;
  double buckets = 0.5;
  double taints = 0.3;       // of pools, for a while
  double host_drains = 0.2;  // poollets that are stopped with --on-stop=drain and come back
  double host_stops = 0.2;   // the same with --on-stop=keep

  // What happens at any time, per virtual minute.
  double server_crash = 0.3;
  double poollet_crash = 2;
  double poollet_gone = 0.1;  // for good, its guests run on
  double gone_max = 3;        // poollets
  double power_cut = 0.3;
  double pause_poollet = 1;
  double pause_server = 0.15;
  double cut_server = 0;  // of several: the leader from the store, from the hosts, or from both
  double partition = 1.5;
  double slow_link = 1;
  double drop_connection = 2;
  double runtime_crash = 1;
  double runtime_lies = 0.5;  // lists leave out, states are wrong, creates are not idempotent
  double disk_fails = 0.3;    // a host cannot write for a while
  double second_leader = 0.3;
  double restore_backup = 0.05;
  double pool_reborn = 0.1;  // a pool is removed, and another host announces one of its name

  // What happens at a certain moment, as the chance that it does.
  double crash_after_offer = 0.0005;
  double crash_after_accept = 0.0005;
  double crash_in_bind = 0.001;
  double crash_after_bind = 0.001;
  double bind_answer_lost = 0.005;
  double bind_slow = 0.002;
  double edit_before_bind = 0.01;
  double cordon_before_bind = 0.003;
  double partition_after_bind = 0.003;
  double poollet_dies_after_accept = 0.002;
  double poollet_dies_in_write = 0.001;
  double poollet_dies_after_write = 0.001;
  double poollet_dies_in_create = 0.004;
  double runtime_dies_in_create = 0.004;
  double crash_in_group = 0.02;       // a host has said yes to one of a group
  double crash_in_preemption = 0.05;  // a machine was told to make room

  // What runtimes and the store do wrong, as chances per call.
  double runtime_call_fails = 0.005;
  double create_fails = 0.01;
  double create_answer_lost = 0.01;
  double answer_lost = 0.005;
  double boot_fails = 0.005;
  double delete_sticks = 0.01;
  double store_refuses = 0.0005;
  double store_answer_lost = 0.0005;
  double store_slow = 0.01;
  double store_watch_lost = 0.0002;
};

// One figure of a scenario: where it stands in a file and what it may be.
struct ScenarioField {
  std::string_view section;  // "" for the top
  std::string_view name;
  double Scenario::* value;
  double min = 0;
  double max = 0;
  enum class Shape : uint8_t { kWhole, kAny } shape = Shape::kAny;
};
std::span<const ScenarioField> ScenarioFields();

// YAML; what a file does not name is as above. Errors name the field, its value and the limit.
Result<Scenario> ParseScenario(std::string_view yaml);

}  // namespace berth::sim
