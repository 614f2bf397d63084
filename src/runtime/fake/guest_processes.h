// SPDX-License-Identifier: Apache-2.0
// GuestProcesses gives the guests of a fake host real processes, which sleep: something that can be
// killed from outside, by a fencer for one. It follows the state: a guest that is alive there has a
// process, and a process that dies is a guest that died.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "iri/host.h"
#include "runtime/fake/fake_host_state.h"

namespace berth::runtime {

class GuestProcesses {
 public:
  enum class Lifetime : uint8_t { kWithUs, kOutliveUs };
  explicit GuestProcesses(Lifetime lifetime) : lifetime_(lifetime) {}
  // Kills them all, unless they outlive us.
  ~GuestProcesses();
  GuestProcesses(const GuestProcesses&) = delete;
  GuestProcesses& operator=(const GuestProcesses&) = delete;

  // Starts, lets run and kills, until every living guest of the state has its process.
  void Match(FakeHostState& state, const FakeClock& clock);
  bool empty() const { return processes_.empty(); }

 private:
  struct Process {
    int64_t pid = 0;
    uint64_t start_ticks = 0;
    int pidfd = -1;
    int gate = -1;  // what it waits for while it is held
  };
  void Reap(FakeHostState& state, const FakeClock& clock);
  void Start(FakeHostState& state, const FakeMachine& machine);
  static Result<Process> Spawn();
  static bool Adopt(const FakeGuest& guest, Process& process);
  static void End(Process& process);

  const Lifetime lifetime_;
  std::map<std::string, Process> processes_;  // by machine id
};

// Field 22 of /proc/PID/stat; 0 if there is no such process.
uint64_t StartTicksOf(int64_t pid);

}  // namespace berth::runtime
