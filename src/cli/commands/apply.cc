// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <array>
#include <utility>

#include "cli/arguments.h"
#include "cli/commands/apply_patch.h"
#include "cli/commands/chosen.h"
#include "cli/commands/flags.h"
#include "cli/commands/last_applied.h"
#include "cli/commands/placement.h"
#include "cli/commands/table.h"
#include "cli/failure.h"
#include "cli/objects/failures.h"
#include "cli/objects/fetch.h"
#include "cli/objects/manifest.h"
#include "cli/session/session.h"
#include "meta/json.h"

namespace berth::cli {
namespace {

using meta::Value;

// A patch is made for one state of the object; if the server says that it changed meanwhile, it is
// made again.
constexpr int kAttemptsMax = 5;

class Applier {
 public:
  Applier(Session& session, const Arguments& arguments, Api& api)
      : session_(session), arguments_(arguments), api_(api) {}

  Status Apply(const Manifest& manifest) {
    TRY(Placement placement, PlaceManifest(session_, manifest));
    TRY_STATUS(CheckNamed(placement));
    if (arguments_.Switch("server-side")) return ApplyOnServer(placement);
    placement.object = WithLastApplied(placement.object);
    Status status;
    for (int attempt = 0; attempt < kAttemptsMax; ++attempt) {
      status = Try(placement);
      if (!status.Is(Reason::kConflict)) return status;
    }
    return status;
  }

 private:
  bool only_prints() const { return arguments_.Text("dry-run") == "client"; }
  std::string Path(const Placement& placement) const {
    return PathOf(placement.resource, placement.namespace_, placement.name);
  }
  Api::Query Query() const {
    Api::Query out = WriteQuery(arguments_);
    out.emplace_back("fieldValidation", FieldValidationOf(arguments_));
    return out;
  }

  // The server knows who set which field: it needs no state, and nothing has to be tried again.
  Status ApplyOnServer(const Placement& placement) {
    Api::Query query = Query();
    if (arguments_.Switch("force-conflicts")) query.emplace_back("force", "true");
    const auto applied = api_.Patch(Path(placement),
                                    "application/apply-patch+yaml",
                                    meta::WriteJson(placement.object),
                                    std::move(query));
    if (applied.ok()) return PrintOutcome(session_, arguments_, *applied, "serverside-applied");
    if (!applied.status().Is(Reason::kConflict)) return applied.status();
    return Advise(applied.status(),
                  "--force-conflicts takes these fields over; without them in the manifest they "
                  "stay with who has them");
  }

  Status Try(const Placement& placement) {
    const auto current = api_.Get(Path(placement));
    if (current.ok()) return Change(placement, *current);
    if (!current.status().Is(Reason::kNotFound)) return current.status();
    if (only_prints()) return PrintOutcome(session_, arguments_, placement.object, "created");
    auto created =
        api_.Post(PathOf(placement.resource, placement.namespace_), placement.object, Query());
    // Somebody else was faster: then it is there to be changed.
    if (created.status().Is(Reason::kAlreadyExists)) return Conflict("created meanwhile");
    if (!created.ok()) return created.status();
    return PrintOutcome(session_, arguments_, *created, "created");
  }

  Status Change(const Placement& placement, const Value& current) {
    if (!HasLastApplied(current)) {
      session_.err() << fmt::format(
          "Warning: {} was not made by apply; fields that it has and the manifest lacks stay\n",
          ObjectLabel(current));
    }
    const ApplyPatch plan = PlanApplyPatch(placement.resource, placement.object, current);
    if (plan.patch.members().empty()) {
      return PrintOutcome(session_, arguments_, current, "unchanged");
    }
    if (only_prints()) return PrintOutcome(session_, arguments_, placement.object, "configured");
    TRY(const Value changed,
        api_.Patch(Path(placement), plan.content_type, meta::WriteJson(plan.patch), Query()));
    // "1000" and "1k" are the same to the server: then nothing was written.
    const bool same = current.GetString({"metadata", "resourceVersion"}) ==
                      changed.GetString({"metadata", "resourceVersion"});
    const bool tried = arguments_.Text("dry-run") == "server";
    return PrintOutcome(session_, arguments_, changed, same && !tried ? "unchanged" : "configured");
  }

  Session& session_;
  const Arguments& arguments_;
  Api& api_;
};

Status RunApply(Session& session, const Arguments& arguments) {
  if (arguments.List("filename").empty()) {
    return Advise(BadRequest("no manifest is given"), "berth apply -f FILE");
  }
  if (arguments.Switch("force-conflicts") && !arguments.Switch("server-side")) {
    return BadRequest("--force-conflicts goes with --server-side: only the server knows conflicts");
  }
  if (arguments.Switch("server-side") && arguments.Text("dry-run") == "client") {
    return Advise(BadRequest("--server-side needs the server, --dry-run=client does without"),
                  "--dry-run=server");
  }
  TRY(const std::vector<Manifest> manifests, ManifestsOf(session, arguments));
  TRY(Api * api, session.GetApi());
  Applier applier(session, arguments, *api);
  Failures failures(session.environment());
  for (const Manifest& manifest : manifests) {
    const Status status = applier.Apply(manifest);
    if (status.Is(Reason::kUnavailable)) return status;
    failures.Add(status.Wrap(manifest.source));
  }
  return failures.Outcome();
}

constexpr Flag kServerSide = {
    .name = "server-side",
    .help = "The server merges, and remembers which fields are whose (--field-manager)."};
constexpr Flag kForceConflicts = {
    .name = "force-conflicts",
    .help = "With --server-side: take fields that others own and that are to be different."};

constexpr std::array kFlags = {
    flags::kFilename,
    flags::kRecursive,
    flags::kDryRun,
    flags::kValidate,
    flags::kOutput,
    flags::kFieldManager,
    kServerSide,
    kForceConflicts,
};

}  // namespace

Command ApplyCommand() {
  return {.name = "apply",
          .group = "Change",
          .usage = "-f FILE...",
          .summary = "Make objects as manifests say: create or change them",
          .details =
              "What a manifest no longer says is removed; what others have set stays. The manifest "
              "is\nremembered in the same annotation as kubectl's, so both can be used in turn.\n\n"
              "With --server-side the server remembers instead which fields are whose. Another\n"
              "manager's field that is to be different is a conflict, and nothing is written.",
          .examples =
              "berth apply -f web.yaml\n"
              "berth apply -f manifests/ -R\n"
              "berth apply -f - < web.yaml\n"
              "berth apply -f web.yaml --dry-run=server -o yaml\n"
              "berth apply -f web.yaml --server-side --field-manager deploy",
          .flags = kFlags,
          .run = &RunApply};
}

}  // namespace berth::cli
