// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/arguments.h"
#include "cli/commands/apply_patch.h"
#include "cli/commands/chosen.h"
#include "cli/commands/flags.h"
#include "cli/commands/last_applied.h"
#include "cli/commands/placement.h"
#include "cli/commands/table.h"
#include "cli/exit_status.h"
#include "cli/failure.h"
#include "cli/objects/failures.h"
#include "cli/objects/fetch.h"
#include "cli/objects/managers.h"
#include "cli/render/line_diff.h"
#include "cli/session/program.h"
#include "cli/session/session.h"
#include "meta/json.h"
#include "meta/yaml.h"

namespace berth::cli {
namespace {

using meta::Value;

constexpr uint8_t kDiffers = 1;
constexpr uint8_t kFailed = 2;  // a failure must not look like a difference

// An object as it is and as apply would make it. Absent: it is not there, or nothing changes.
struct Change {
  std::optional<Value> before;
  std::optional<Value> after;
};

Result<Change> Try(Session& session, const Arguments& arguments, const Placement& placement) {
  TRY(Api * api, session.GetApi());
  const Api::Query query = {{"fieldManager", arguments.Text("field-manager")},
                            {"dryRun", "All"},
                            {"fieldValidation", FieldValidationOf(arguments)}};
  const std::string path = PathOf(placement.resource, placement.namespace_, placement.name);
  Result<Value> current = api->Get(path);
  if (!current.ok() && !current.status().Is(Reason::kNotFound)) return current.status();
  Change out;
  if (!current.ok()) {
    TRY(out.after,
        api->Post(PathOf(placement.resource, placement.namespace_), placement.object, query));
    return out;
  }
  const ApplyPatch plan = PlanApplyPatch(placement.resource, placement.object, *current);
  out.before = *std::move(current);
  if (plan.patch.members().empty()) return out;
  TRY(out.after, api->Patch(path, plan.content_type, meta::WriteJson(plan.patch), query));
  return out;
}

// Values of Secrets are not shown: only that they are there, and whether they differ.
void MaskSecrets(Change& change) {
  const auto mask =
      [](std::optional<Value>& object, const std::optional<Value>& other, std::string_view when) {
        Value* data =
            object && object->GetString({"kind"}) == "Secret" ? object->Find("data") : nullptr;
        if (data == nullptr || !data->is_object()) return;
        const Value* others = other ? other->Find("data") : nullptr;
        for (auto& [key, value] : data->members()) {
          const Value* counterpart = others == nullptr ? nullptr : others->Find(key);
          const bool same = counterpart != nullptr && *counterpart == value;
          value = Value(same ? std::string("***") : fmt::format("*** ({})", when));
        }
      };
  const std::optional<Value> before = change.before;
  mask(change.before, change.after, "before");
  mask(change.after, before, "after");
}

// Without what changes with every write.
std::string Shown(const std::optional<Value>& object) {
  if (!object) return "";
  Value shown = *object;
  HideManagers(shown);
  ForgetLastApplied(shown);
  if (Value* metadata = shown.Find("metadata")) {
    for (const std::string_view field :
         {"creationTimestamp", "generation", "resourceVersion", "uid"}) {
      metadata->Remove(field);
    }
  }
  return meta::WriteYaml(shown);
}

// Prints what would change; whether anything would.
Result<bool> DiffOne(Session& session, const Arguments& arguments, const Manifest& manifest) {
  TRY(Placement placement, PlaceManifest(session, manifest));
  TRY_STATUS(CheckNamed(placement));
  placement.object = WithLastApplied(placement.object);
  TRY(Change change, Try(session, arguments, placement));
  if (!change.after) return false;
  MaskSecrets(change);
  const std::string text = UnifiedDiff(Shown(change.before), Shown(change.after));
  if (text.empty()) return false;
  const std::string label = ObjectLabel(*change.after);
  session.out() << fmt::format("--- {} ({})\n+++ {} (after apply)\n{}",
                               label,
                               change.before ? "as it is" : "does not exist",
                               label,
                               text);
  return true;
}

Status RunDiff(Session& session, const Arguments& arguments) {
  if (arguments.List("filename").empty()) {
    return Advise(BadRequest("no manifest is given"), "berth diff -f FILE");
  }
  TRY(const std::vector<Manifest> manifests, ManifestsOf(session, arguments));
  Failures failures(session.environment());
  bool any = false;
  for (const Manifest& manifest : manifests) {
    const Result<bool> differs = DiffOne(session, arguments, manifest);
    if (differs.status().Is(Reason::kUnavailable)) return differs.status();
    failures.Add(differs.status().Wrap(manifest.source));
    any = any || (differs.ok() && *differs);
  }
  const Status failed = failures.Outcome();
  if (failed.ok()) return any ? EndWith(kDiffers) : OkStatus();
  if (ExitCodeOf(failed) != ExitCode::kFailed) return failed;
  session.out().flush();
  ReportFailure(failed, session.environment());
  return EndWith(kFailed);
}

constexpr std::array kFlags = {
    flags::kFilename,
    flags::kRecursive,
    flags::kValidate,
    flags::kFieldManager,
};

}  // namespace

Command DiffCommand() {
  return {
      .name = "diff",
      .group = "Look",
      .usage = "-f FILE...",
      .summary = "Show what apply would change",
      .details =
          "The server tries the change and keeps nothing. Ends with 0 if nothing would change,\n"
          "with 1 if something would, and with 2 or more if it cannot be told.",
      .examples =
          "berth diff -f web.yaml\n"
          "berth diff -f manifests/ -R",
      .flags = kFlags,
      .run = &RunDiff};
}

}  // namespace berth::cli
