// SPDX-License-Identifier: Apache-2.0
// start, stop and restart: the power switch of machines.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/strings.h"
#include "cli/arguments.h"
#include "cli/commands/first_words.h"
#include "cli/commands/start_progress.h"
#include "cli/commands/table.h"
#include "cli/failure.h"
#include "cli/objects/failures.h"
#include "cli/objects/fetch.h"
#include "cli/objects/patience.h"
#include "cli/objects/targets.h"
#include "cli/session/session.h"
#include "meta/json.h"

namespace berth::cli {
namespace {

using meta::Value;

constexpr std::string_view kOn = "On";
constexpr std::string_view kOff = "Off";

int64_t IntAt(const Value& object, std::initializer_list<std::string_view> path) {
  const Value* value = object.Get(path);
  return value != nullptr && value->type() == Value::Type::kInt ? value->as_int() : 0;
}

bool IsOn(const Value& machine) { return machine.GetString({"spec", "power"}) != kOff; }
bool IsPlaced(const Value& machine) {
  return !machine.GetString({"status", "placement", "poolUID"}).empty();
}
// Its guest lives and stands still, for instance because the host's disk is full: it runs on when
// there is room, and would lose what it has in memory if it were switched off. Its state alone does
// not tell it from one that has ended.
bool IsPaused(const Value& machine) {
  const Value* const conditions = machine.Get({"status", "conditions"});
  if (conditions == nullptr || !conditions->is_array()) return false;
  return std::ranges::any_of(conditions->items(), [](const Value& condition) {
    return condition.GetString({"type"}) == "Ready" && condition.GetString({"reason"}) == "Paused";
  });
}
// Its guest has ended, whoever ended it.
bool IsDown(const Value& machine) {
  if (IsPaused(machine)) return false;
  const std::string_view state = machine.GetString({"status", "state"});
  return state == "Shutdown" || state == "Terminated";
}
// Whether the state is one after the switch, not before it.
bool IsAboutNow(const Value& machine) {
  return IntAt(machine, {"status", "observedGeneration"}) >=
         IntAt(machine, {"metadata", "generation"});
}

// One machine and its switch.
class PowerSwitch {
 public:
  PowerSwitch(Session& session, Api& api, ObjectAddress address, const Patience& patience)
      : session_(session), api_(api), address_(std::move(address)), patience_(patience) {}

  enum class Waiting : bool { kNo, kYes };
  // Whoever waits for a start waits for this line of its console, too.
  void ListenFor(std::string beginning) { console_.emplace(api_, address_, std::move(beginning)); }

  Status Start(Waiting waiting) {
    TRY(const Value now, Look());
    // What a guest that is off has said, it said before.
    if (console_.has_value() && (IsDown(now) || !IsOn(now))) console_->NoteBefore();
    // One that ended by itself is still switched on: only switching it off and on starts it.
    const bool has_ended = IsOn(now) && IsDown(now);
    if (has_ended) TRY_STATUS(TurnOff());
    if (has_ended || !IsOn(now)) TRY_STATUS(Turn(kOn));
    if (waiting == Waiting::kYes) return AwaitRunning();
    Say(has_ended || !IsOn(now) ? "starts"
        : IsPaused(now)         ? "is on already, and paused: its condition Ready says why"
                                : "is on already");
    return OkStatus();
  }

  Status Stop(Waiting waiting) {
    TRY(const Value now, Look());
    if (IsOn(now)) TRY_STATUS(Turn(kOff));
    if (waiting == Waiting::kNo) {
      Say(IsOn(now) ? "stops" : "is off already");
      return OkStatus();
    }
    TRY_STATUS(AwaitDown());
    Say("is off");
    return OkStatus();
  }

  Status Restart(Waiting waiting) {
    TRY(const Value now, Look());
    if (!IsOn(now)) {
      return Advise(BadRequest(label() + " is switched off"), "berth start " + address_.name);
    }
    if (!IsPlaced(now)) {
      return Advise(BadRequest(label() + " is on no pool yet"),
                    "berth why machine/" + address_.name);
    }
    TRY_STATUS(TurnOff());
    if (console_.has_value()) console_->NoteBefore();
    TRY_STATUS(Turn(kOn));
    if (waiting == Waiting::kYes) return AwaitRunning();
    Say("restarts");
    return OkStatus();
  }

 private:
  std::string label() const {
    return ObjectLabel(address_.resource.ApiVersion(), address_.resource.kind, address_.name);
  }
  void Say(std::string_view what) {
    session_.out() << label() << ' ' << what << '\n' << std::flush;
  }

  Result<Value> Look() {
    return FetchObject(api_, address_.resource, address_.namespace_, address_.name);
  }

  Status Turn(std::string_view power) {
    Value spec = Value::Object();
    spec.Set("power", std::string(power));
    Value patch = Value::Object();
    patch.Set("spec", std::move(spec));
    return api_
        .Patch(PathOf(address_.resource, address_.namespace_, address_.name),
               kMergePatch,
               meta::WriteJson(patch),
               {{"fieldManager", "berth"}})
        .status();
  }

  // Half of a restart. What stops here leaves the machine off, and says so.
  Status TurnOff() {
    TRY_STATUS(Turn(kOff));
    const Status down = AwaitDown();
    if (down.ok()) return down;
    // What to do about the wait itself matters less.
    const std::string why = FailureOf(down).message;
    return Advise(Status(down.reason(), label() + " is switched off and not on again: " + why),
                  "berth start " + address_.name);
  }

  // What has no pool runs nowhere.
  Status AwaitDown() {
    return Await("the end", [](const Value& machine) {
      return !IsPlaced(machine) || (IsAboutNow(machine) && IsDown(machine));
    });
  }

  Status AwaitRunning() {
    using Lines = StartProgress::Lines;
    StartProgress progress(
        session_.environment(), label(), console_.has_value() ? Lines::kSteps : Lines::kImage);
    const Status awaited = Await("the start", [&progress](const Value& machine) {
      progress.Show(machine);
      return IsAboutNow(machine) && machine.GetString({"status", "state"}) == "Running";
    });
    Result<std::string> line = std::string();
    if (awaited.ok() && console_.has_value()) line = console_->Await(patience_);
    progress.End();
    TRY_STATUS(awaited);
    if (!line.ok()) return line.status();
    Say("runs");
    if (console_.has_value()) session_.out() << "console       " << *line << '\n' << std::flush;
    return OkStatus();
  }

  Status Await(std::string_view what, const std::function<bool(const Value&)>& is_met) {
    const auto test = [&](const Value* machine) -> Result<bool> {
      if (machine == nullptr) return NotFound(label() + " was deleted");
      return is_met(*machine);
    };
    return AwaitObject(api_, address_, test, patience_, what);
  }

  Session& session_;
  Api& api_;
  const ObjectAddress address_;
  const Patience& patience_;
  std::optional<FirstWords> console_;
};

Status ForEachMachine(Session& session,
                      const Arguments& arguments,
                      Status (PowerSwitch::*turn)(PowerSwitch::Waiting)) {
  TRY(Discovery * discovery, session.GetDiscovery());
  TRY(const std::vector<Target> machines, FindMachines(*discovery, arguments.words()));
  TRY(const std::string space, session.Namespace());
  TRY(Api * api, session.GetApi());
  const Patience patience(session.environment(), arguments.Span("timeout"));
  const auto waiting =
      arguments.Switch("wait") ? PowerSwitch::Waiting::kYes : PowerSwitch::Waiting::kNo;
  const bool listens = arguments.Declares("console") && arguments.Given("console");
  if (listens && waiting == PowerSwitch::Waiting::kNo) {
    return Advise(BadRequest("--console is about what is waited for"), "add --wait");
  }
  Failures failures(session.environment());
  for (const Target& machine : machines) {
    ObjectAddress address{.resource = machine.resource, .namespace_ = space, .name = machine.name};
    PowerSwitch power(session, *api, std::move(address), patience);
    if (listens) power.ListenFor(arguments.Text("console"));
    failures.Add((power.*turn)(waiting));
  }
  return failures.Outcome();
}

Status RunStart(Session& session, const Arguments& arguments) {
  return ForEachMachine(session, arguments, &PowerSwitch::Start);
}
Status RunStop(Session& session, const Arguments& arguments) {
  return ForEachMachine(session, arguments, &PowerSwitch::Stop);
}
Status RunRestart(Session& session, const Arguments& arguments) {
  return ForEachMachine(session, arguments, &PowerSwitch::Restart);
}

constexpr std::array kFlags = {
    Flag{.name = "wait", .help = "Return when the machine runs, or when it is off."},
    Flag{.name = "timeout",
         .kind = FlagKind::kDuration,
         .value_name = "TIME",
         .help = "How long to wait for all of them; 0 means as long as it takes.",
         .fallback = "2m"},
};

constexpr std::array kStartFlags = {
    kFlags[0],
    kFlags[1],
    Flag{.name = "console",
         .kind = FlagKind::kText,
         .value_name = "TEXT",
         .help = "With --wait: return when a line of the guest's console begins with this, and "
                 "show the line; \"\" is any line. Needs the right to get machines/log."},
};

constexpr std::string_view kUsage = "MACHINE...";

}  // namespace

Command StartCommand() {
  return {.name = "start",
          .group = "Change",
          .usage = kUsage,
          .summary = "Switch machines on",
          .details =
              "Sets spec.power to On. A machine whose guest has ended by itself is switched off "
              "first, which is what makes its host start it again.",
          .examples =
              "berth start web\nberth start web db -n shop --wait --timeout=5m\n"
              "berth start web --wait --console 'Welcome to'",
          .flags = kStartFlags,
          .words = Completion::kKindAndNames,
          .run = &RunStart};
}

Command StopCommand() {
  return {.name = "stop",
          .group = "Change",
          .usage = kUsage,
          .summary = "Switch machines off",
          .details =
              "Sets spec.power to Off. The host presses the power button, and pulls the plug of "
              "a guest that does not listen. Machine, place and disks stay.",
          .examples = "berth stop web\nberth stop machine/web --wait",
          .flags = kFlags,
          .words = Completion::kKindAndNames,
          .run = &RunStop};
}

Command RestartCommand() {
  return {.name = "restart",
          .group = "Change",
          .usage = kUsage,
          .summary = "Switch machines off and on again",
          .details =
              "Sets spec.power to Off, waits until the guest has ended, and sets it to On. "
              "--timeout counts for the end, too. Interrupted in between the machine stays off, "
              "and berth start goes on.",
          .examples = "berth restart web\nberth restart web db --wait",
          .flags = kStartFlags,
          .words = Completion::kKindAndNames,
          .run = &RunRestart};
}

}  // namespace berth::cli
