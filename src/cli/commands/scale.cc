// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "cli/api/known_kinds.h"
#include "cli/arguments.h"
#include "cli/commands/chosen.h"
#include "cli/commands/flags.h"
#include "cli/commands/placement.h"
#include "cli/commands/table.h"
#include "cli/failure.h"
#include "cli/objects/failures.h"
#include "cli/objects/fetch.h"
#include "cli/session/session.h"
#include "meta/json.h"
#include "meta/kind.h"

namespace berth::cli {
namespace {

using meta::Value;

Status CheckCount(const Arguments& arguments, std::string_view flag) {
  const int64_t count = arguments.Number(flag);
  if (count >= 0 && count <= INT32_MAX) return OkStatus();
  return BadRequest(fmt::format("--{} {}: expected 0 to {}", flag, count, INT32_MAX));
}

int64_t ReplicasOf(const Value& scale) {
  const Value* spec = scale.Find("spec");
  const Value* replicas = spec == nullptr ? nullptr : spec->Find("replicas");
  return replicas != nullptr && replicas->is_int() ? replicas->as_int() : 0;
}

Status ScaleOne(Session& session, const ObjectAddress& address, const Arguments& arguments) {
  const meta::KindInfo* kind = FindKnownKind(address.resource);
  if (kind != nullptr && kind->scale == nullptr) {
    return Advise(BadRequest(fmt::format("a {} has no replicas", address.resource.kind)),
                  "berth scale machineset NAME --replicas N");
  }
  TRY(Api * api, session.GetApi());
  const std::string label =
      ObjectLabel(address.resource.ApiVersion(), address.resource.kind, address.name);
  const std::string path = PathOf(address.resource, address.namespace_, address.name, "scale");
  Value change = Value::Object();
  if (arguments.Given("current-replicas")) {
    TRY(const Value scale, api->Get(path));
    const int64_t expected = arguments.Number("current-replicas");
    if (ReplicasOf(scale) != expected) {
      return Conflict(fmt::format("{} has {} replicas, not the {} of --current-replicas",
                                  label,
                                  ReplicasOf(scale),
                                  expected));
    }
    Value metadata = Value::Object();
    metadata.Set("resourceVersion", scale.GetString({"metadata", "resourceVersion"}));
    change.Set("metadata", std::move(metadata));
  }
  Value spec = Value::Object();
  spec.Set("replicas", arguments.Number("replicas"));
  change.Set("spec", std::move(spec));
  TRY_STATUS(api->Patch(path, kMergePatch, meta::WriteJson(change), WriteQuery(arguments)));
  session.out() << fmt::format(
      "{} scaled{}\n", label, arguments.Text("dry-run") == "none" ? "" : " (server dry run)");
  return OkStatus();
}

Status RunScale(Session& session, const Arguments& arguments) {
  if (!arguments.Given("replicas")) {
    return Advise(BadRequest("--replicas says how many and is missing"),
                  "berth scale machineset NAME --replicas N");
  }
  TRY_STATUS(CheckCount(arguments, "replicas"));
  if (arguments.Given("current-replicas")) TRY_STATUS(CheckCount(arguments, "current-replicas"));
  TRY(const std::vector<ObjectAddress> chosen, ChosenByWords(session, arguments));
  Failures failures(session.environment());
  for (const ObjectAddress& address : chosen) {
    failures.Add(ScaleOne(session, address, arguments));
  }
  return failures.Outcome();
}

constexpr std::array kFlags = {
    Flag{.name = "replicas",
         .kind = FlagKind::kNumber,
         .value_name = "N",
         .help = "How many there are to be."},
    Flag{.name = "current-replicas",
         .kind = FlagKind::kNumber,
         .value_name = "N",
         .help = "Only if so many are wanted now."},
    flags::kSelector,
    flags::kFieldSelector,
    flags::kAll,
    flags::kAllNamespaces,
    flags::kServerDryRun,
    flags::kFieldManager,
};

}  // namespace

Command ScaleCommand() {
  return {.name = "scale",
          .group = "Change",
          .usage = "KIND NAME... --replicas N",
          .summary = "Change how many machines a set has",
          .examples =
              "berth scale machineset shop --replicas 5\n"
              "berth scale machineset shop --current-replicas 3 --replicas 5\n"
              "berth scale machinesets -l app=shop --replicas 0",
          .flags = kFlags,
          .words = Completion::kKindAndNames,
          .run = &RunScale};
}

}  // namespace berth::cli
