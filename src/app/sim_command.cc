// SPDX-License-Identifier: Apache-2.0
#include "app/sim_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <fstream>
#include <ostream>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "app/process/crash_line.h"
#include "app/process/process_flags.h"
#include "base/log.h"
#include "base/strings.h"
#include "cli/arguments.h"
#include "cli/failure.h"
#include "cli/session/session.h"
#include "meta/json.h"
#include "sim/simulation.h"

namespace berth::app {
namespace {

using cli::Arguments;
using cli::Flag;
using cli::FlagKind;
using cli::Session;

constexpr size_t kEventsOfAFailure = 40;
constexpr std::array<std::string_view, 2> kFormats = {"text", "json"};
constexpr std::array kFlags = {
    Flag{.name = "seed",
         .kind = FlagKind::kNumber,
         .value_name = "N",
         .help = "Which run: the same seed and scenario give the same one.",
         .fallback = "1"},
    Flag{.name = "seeds",
         .kind = FlagKind::kText,
         .value_name = "N..M",
         .help = "All runs from N to M instead of one."},
    Flag{.name = "scenario",
         .kind = FlagKind::kText,
         .value_name = "FILE",
         .help = "How large the world is and what goes wrong in it; test/scenarios has some.",
         .completion = cli::Completion::kFiles},
    Flag{.name = "twice", .help = "Run every seed twice and compare the hashes."},
    Flag{.name = "all-branches",
         .help = "Fail if a named branch was reached by none of the seeds."},
    Flag{.name = "broken",
         .kind = FlagKind::kText,
         .value_name = "NAME",
         .help = "Put a deliberately broken part in: capacity, over-promise, oversize, rebind, "
                 "kept-number, lost-number, leases, lost-write, lost-edit, watch-gap, watch-hole, "
                 "watch-echo, silence, rogue, purge, used-disk, no-boot, ties, lingers, "
                 "spoilt-record, cut-record, kept-room, named-room, early-farewell, no-replace; "
                 "with several servers: fence, sluggish. A checker has to notice."},
    Flag{.name = "events",
         .kind = FlagKind::kNumber,
         .value_name = "N",
         .help = "Show this many of the last events, 20000 at most; a failure shows 40 at least.",
         .fallback = "0"},
    Flag{.name = "log-level",
         .kind = FlagKind::kText,
         .value_name = "LEVEL",
         .help = "What the simulated parts log of themselves; faults make them complain a lot.",
         .fallback = "error",
         .values = kLogLevels},
    Flag{.name = "output",
         .letter = 'o',
         .kind = FlagKind::kText,
         .value_name = "FORMAT",
         .help = "Text for people, or one JSON object per run.",
         .fallback = "text",
         .values = kFormats},
};

struct Plan {
  uint64_t first = 1;
  uint64_t last = 1;
  sim::Scenario scenario;
  size_t events = 0;  // to be shown
  bool twice = false;
  std::string scenario_file;
  sim::Broken broken = sim::Broken::kNothing;
  std::string broken_name;
};

Result<uint64_t> ParseSeed(std::string_view text) {
  uint64_t value = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size()) {
    return BadRequest("--seeds: " + Quote(text) + ": expected a whole number, as in 1..200");
  }
  return value;
}

Result<sim::Scenario> ReadScenario(const std::string& path) {
  if (path.empty()) return sim::Scenario();
  std::ifstream file(path);
  if (!file) return BadRequest("--scenario " + path + ": cannot be read");
  std::stringstream text;
  text << file.rdbuf();
  auto scenario = sim::ParseScenario(text.str());
  if (!scenario.ok()) return scenario.status().Wrap("--scenario " + path);
  return scenario;
}

Result<sim::Broken> BrokenOf(const Plan& plan) {
  if (plan.broken_name.empty()) return sim::Broken::kNothing;
  const auto names = sim::BrokenNames();
  const auto found = std::ranges::find(names, plan.broken_name, &sim::BrokenName::name);
  if (found == names.end()) {
    return BadRequest("--broken " + Quote(plan.broken_name) + ": see --help for names");
  }
  if (found->servers == sim::BrokenServers::kSeveral && plan.scenario.servers < 2) {
    return BadRequest(fmt::format(
        "--broken {}: shows with several servers only, and the scenario has servers {}: try "
        "--scenario test/scenarios/servers.yaml",
        plan.broken_name,
        plan.scenario.servers));
  }
  return found->broken;
}

Result<Plan> MakePlan(const Arguments& arguments) {
  Plan plan;
  if (arguments.Number("seed") < 0) {
    return BadRequest(fmt::format("--seed {}: expected 0 or more", arguments.Number("seed")));
  }
  plan.first = plan.last = static_cast<uint64_t>(arguments.Number("seed"));
  if (const std::string& seeds = arguments.Text("seeds"); !seeds.empty()) {
    const size_t dots = seeds.find("..");
    if (dots == std::string::npos) {
      return BadRequest("--seeds " + Quote(seeds) + ": expected N..M, as in 1..200");
    }
    TRY(plan.first, ParseSeed(std::string_view(seeds).substr(0, dots)));
    TRY(plan.last, ParseSeed(std::string_view(seeds).substr(dots + 2)));
    if (plan.last < plan.first) {
      return BadRequest("--seeds " + Quote(seeds) + ": the last is less than the first");
    }
  }
  if (arguments.Number("events") < 0) {
    return BadRequest(fmt::format("--events {}: expected 0 or more", arguments.Number("events")));
  }
  plan.events = static_cast<size_t>(arguments.Number("events"));
  plan.twice = arguments.Switch("twice");
  plan.scenario_file = arguments.Text("scenario");
  TRY(plan.scenario, ReadScenario(plan.scenario_file));
  plan.broken_name = arguments.Text("broken");
  TRY(plan.broken, BrokenOf(plan));
  return plan;
}

std::string ReplayCommand(const Plan& plan, uint64_t seed) {
  std::string command = fmt::format("berth sim --seed {}", seed);
  if (!plan.scenario_file.empty()) command += " --scenario " + plan.scenario_file;
  if (!plan.broken_name.empty()) command += " --broken " + plan.broken_name;
  if (plan.twice) command += " --twice";
  return command;
}

std::string ReplayLine(const Plan& plan, uint64_t seed) {
  return "replay: " + ReplayCommand(plan, seed);
}

void PrintEvents(std::ostream& out, size_t count, const sim::Outcome& outcome) {
  const size_t skipped = outcome.trace.size() - std::min(count, outcome.trace.size());
  for (size_t i = skipped; i < outcome.trace.size(); ++i) out << outcome.trace[i] << "\n";
}

void PrintFailure(std::ostream& out, const Plan& plan, const sim::Outcome& outcome) {
  out << "VIOLATED " << outcome.violation->checker << " at "
      << sim::FormatVirtual(outcome.violation->at) << ": " << outcome.violation->what << "\n";
  out << "the last events:\n";
  PrintEvents(out, std::max(plan.events, kEventsOfAFailure), outcome);
  out << ReplayLine(plan, outcome.seed) << "\n";
}

void PrintJson(std::ostream& out, const Plan& plan, const sim::Outcome& outcome) {
  meta::Value line = meta::Value::Object();
  line.Set("seed", static_cast<int64_t>(outcome.seed));
  line.Set("pools", static_cast<int64_t>(outcome.pools));
  line.Set("machines", static_cast<int64_t>(outcome.machines));
  line.Set("faults", static_cast<int64_t>(outcome.faults));
  line.Set("events", static_cast<int64_t>(outcome.events));
  line.Set("convergedAfterSeconds", outcome.converged_after.to_seconds());
  line.Set("losses", static_cast<int64_t>(outcome.losses));
  line.Set("failovers", static_cast<int64_t>(outcome.failovers));
  line.Set("failoverMaxSeconds", outcome.failover_max.to_seconds());
  line.Set("hash", fmt::format("{:016x}", outcome.hash));
  meta::Value reached = meta::Value::Array();
  for (const sim::Branch branch : outcome.reached) reached.Append(sim::NameOf(branch));
  line.Set("reached", std::move(reached));
  if (outcome.violation) {
    meta::Value violation = meta::Value::Object();
    violation.Set("checker", outcome.violation->checker);
    violation.Set("what", outcome.violation->what);
    violation.Set("atSeconds", (outcome.violation->at - Time()).to_seconds());
    violation.Set("replay", ReplayCommand(plan, outcome.seed));
    line.Set("violation", std::move(violation));
  }
  out << meta::WriteJson(line) << std::endl;
}

// The sum of several runs, in the words of one.
struct Summary {
  size_t pools = 0;
  size_t machines = 0;
  uint64_t faults = 0;
  uint64_t hash = 0;
  size_t failures = 0;
  std::set<sim::Branch> reached;

  void Add(const sim::Outcome& outcome) {
    pools = outcome.pools;
    machines += outcome.machines;
    faults += outcome.faults;
    hash = (hash * 31) ^ outcome.hash;
    failures += outcome.violation ? 1 : 0;
    reached.insert(outcome.reached.begin(), outcome.reached.end());
  }
};

Status CheckBranches(Session& session, const Summary& summary) {
  size_t missing = 0;
  for (size_t i = 0; i < sim::kBranches; ++i) {
    const auto branch = static_cast<sim::Branch>(i);
    if (summary.reached.contains(branch)) continue;
    session.err() << "never reached: " << sim::NameOf(branch) << "\n";
    ++missing;
  }
  if (missing > 0) return Internal(fmt::format("{} branches were never reached", missing));
  return OkStatus();
}

Status RunSim(Session& session, const Arguments& arguments) {
  TRY(const Plan plan, MakePlan(arguments));
  log::Configure({.level = LogLevelOf(arguments)});
  const bool is_json = arguments.Text("output") == "json";
  Summary summary;
  std::string last;
  CrashLine crash;
  for (uint64_t seed = plan.first; seed <= plan.last; ++seed) {
    crash.Set(ReplayLine(plan, seed));
    const sim::Outcome outcome = plan.twice ? sim::RunTwice(plan.scenario, seed, plan.broken)
                                            : sim::RunSimulation(plan.scenario, seed, plan.broken);
    summary.Add(outcome);
    last = sim::FormatOutcome(outcome);
    if (is_json) PrintJson(session.out(), plan, outcome);
    if (!outcome.violation && !is_json) PrintEvents(session.out(), plan.events, outcome);
    if (outcome.violation && !is_json) PrintFailure(session.out(), plan, outcome);
    if (!is_json && plan.last > plan.first) session.out() << last << std::endl;
  }
  Status verdict;
  if (arguments.Switch("all-branches")) verdict = CheckBranches(session, summary);
  // What went wrong was said in full.
  if (summary.failures > 0) verdict = cli::FailQuietly(Reason::kInternal);
  if (plan.last > plan.first) {
    last = fmt::format("pools={} machines={} faults={} reached={} seed={}..{} hash={:016x}",
                       summary.pools,
                       summary.machines,
                       summary.faults,
                       summary.reached.size(),
                       plan.first,
                       plan.last,
                       summary.hash);
  }
  if (!is_json) session.out() << last << std::endl;
  return verdict;
}

}  // namespace

cli::Command SimCommand() {
  return {.name = "sim",
          .group = "Server",
          .summary = "Run a whole cluster in a deterministic simulation with faults",
          .details =
              "The real server and real poollets run on one simulated loop, with fake runtimes\n"
              "and a network, disks, processes and clocks that fail. Checkers watch every step;\n"
              "then the faults end and everything has to become as it is wanted. Exit status 0\n"
              "if nothing was violated, else 1, with the command that replays it; also after\n"
              "a crash.",
          .examples =
              "berth sim --seed 7\n"
              "berth sim --seeds 1..200 --scenario test/scenarios/small.yaml --twice\n"
              "berth sim --seed 1 --scenario test/scenarios/broken.yaml --broken leases",
          .flags = kFlags,
          .run = &RunSim};
}

}  // namespace berth::app
