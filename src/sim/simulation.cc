// SPDX-License-Identifier: Apache-2.0
#include "sim/simulation.h"

#include <fmt/format.h>

#include "gateway/testing/temp_authority.h"
#include "rt/chaos.h"
#include "sim/convergence.h"
#include "sim/troubles.h"
#include "sim/users.h"

namespace berth::sim {
namespace {

constexpr Duration kLook = Duration::Seconds(2);

// Keys cost more than anything else in a small world, and nothing depends on them.
const pki::CertificateAuthority& Authority() {
  static const gateway::TempAuthority authority{rt::SimLoop(1).WallNow()};
  return authority.get();
}

Duration Minutes(double minutes) { return Duration::Seconds(static_cast<int64_t>(minutes * 60)); }

void Populate(World& world) {
  world.StartServers();
  const auto pools = static_cast<size_t>(world.scenario().pools);
  for (size_t i = 0; i < pools; ++i) {
    const HostShape shape{
        .is_foreign = i < static_cast<size_t>(world.scenario().foreign_pools),
        .has_buckets = i + static_cast<size_t>(world.scenario().bucket_pools) >= pools};
    world.AddHost(fmt::format("host-{}", i), fmt::format("pool-{}", i), shape);
  }
  for (const auto& host : world.hosts()) world.StartHost(*host);
}

// Faults are over: everything becomes as it is wanted, within the time that the scenario gives.
Duration Converge(World& world, const Troubles& troubles) {
  const Time begin = world.now();
  const Duration limit = Minutes(world.scenario().converge_minutes);
  std::string why;
  while (!world.violation()) {
    world.RunUntil(world.now() + kLook);
    why = WhyNotConverged(world, troubles);
    if (why.empty()) break;
    if (world.now() - begin > limit) {
      world.Fail("converges", fmt::format("{} after {}", why, FormatDuration(limit)));
    }
  }
  return world.now() - begin;
}

}  // namespace

Outcome RunSimulation(const Scenario& scenario, uint64_t seed, Broken broken) {
  const rt::ChaosPlan chaos(seed, {.site_chance = 0.25, .hit_chance = 0.002});
  World world(scenario, seed, broken, Authority());
  Users users(world);
  Troubles troubles(world, users);
  world.UseMoments(troubles);
  world.UseHostHooks([&troubles](size_t host) { return troubles.HooksFor(host); });
  Outcome outcome;
  outcome.seed = seed;

  Populate(world);
  users.Begin();
  troubles.Begin();
  world.RunUntil(world.now() + Minutes(scenario.minutes));
  if (!world.violation()) {
    troubles.End();
    users.End();
    outcome.converged_after = Converge(world, troubles);
  }
  outcome.losses = world.losses();
  outcome.failovers = world.failovers().failovers();
  outcome.failover_max = world.failovers().longest();
  if (!world.violation() && world.is_shared()) {
    world.KillServers();
    world.CheckStore();
  }
  outcome.violation = world.violation();
  outcome.pools = world.hosts().size();
  outcome.machines = world.machines_seen();
  outcome.faults = world.faults();
  outcome.reached = world.branches().reached();
  outcome.events = world.loop().events();
  outcome.trace.assign(world.trace().lines().begin(), world.trace().lines().end());
  outcome.hash = world.Hash();
  world.KillEverything();
  return outcome;
}

Outcome RunTwice(const Scenario& scenario, uint64_t seed, Broken broken, const Runner& run) {
  Outcome outcome = run(scenario, seed, broken);
  const Outcome again = run(scenario, seed, broken);
  if (again.hash == outcome.hash || outcome.violation) return outcome;
  outcome.violation =
      Violation{.checker = "same-run",
                .what = fmt::format("hash {:016x} and then {:016x}", outcome.hash, again.hash),
                .at = Time()};
  return outcome;
}

std::string FormatOutcome(const Outcome& outcome) {
  return fmt::format("pools={} machines={} faults={} reached={} seed={} hash={:016x}",
                     outcome.pools,
                     outcome.machines,
                     outcome.faults,
                     outcome.reached.size(),
                     outcome.seed,
                     outcome.hash);
}

}  // namespace berth::sim
