// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <array>
#include <string_view>
#include <utility>

#include "base/strings.h"
#include "cli/arguments.h"
#include "cli/commands/flags.h"
#include "cli/commands/table.h"
#include "cli/failure.h"
#include "cli/files.h"
#include "cli/objects/failures.h"
#include "cli/objects/fetch.h"
#include "cli/objects/managers.h"
#include "cli/objects/targets.h"
#include "cli/render/output.h"
#include "cli/session/session.h"
#include "meta/json.h"
#include "meta/yaml.h"

namespace berth::cli {
namespace {

using meta::Value;

std::string_view ContentTypeOf(std::string_view type) {
  if (type == "json") return "application/json-patch+json";
  if (type == "merge") return "application/merge-patch+json";
  return "application/strategic-merge-patch+json";
}

// JSON or YAML; what is sent is JSON.
Result<std::string> ReadPatch(const Arguments& arguments) {
  const std::string& inline_text = arguments.Text("patch");
  const std::string& file = arguments.Text("patch-file");
  if (inline_text.empty() == file.empty()) {
    return Advise(BadRequest("exactly one of --patch and --patch-file is needed"),
                  R"(-p '{"spec":{"power":"Off"}}')");
  }
  std::string text = inline_text;
  if (!file.empty()) {
    TRY(text, ReadFile(file));
  }
  const auto value = meta::ParseYaml(text);
  if (!value.ok()) return value.status().Wrap("patch");
  const bool wants_list = arguments.Text("type") == "json";
  if (wants_list ? !value->is_array() : !value->is_object()) {
    return BadRequest(fmt::format("a patch of type {} is {}",
                                  arguments.Text("type"),
                                  wants_list ? "a list of operations" : "an object"));
  }
  return meta::WriteJson(*value);
}

Status PatchTarget(Session& session,
                   const Target& target,
                   const std::string& space,
                   const std::string& patch,
                   const Arguments& arguments) {
  TRY(Api * api, session.GetApi());
  TRY(const Value before, FetchObject(*api, target.resource, space, target.name));
  Api::Query query = {{"fieldManager", arguments.Text("field-manager")}};
  const std::string& mode = arguments.Text("dry-run");
  if (mode != "none") query.emplace_back("dryRun", "All");
  TRY(Value after,
      api->Patch(PathOf(target.resource, space, target.name, arguments.Text("subresource")),
                 ContentTypeOf(arguments.Text("type")),
                 patch,
                 std::move(query)));
  TRY(const OutputFormat format, ParseOutputFormat(arguments.Text("output")));
  if (!format.is_table()) {
    HideManagers(after);
    return PrintValue(session.environment(), format, after);
  }
  const bool changed = before.GetString({"metadata", "resourceVersion"}) !=
                       after.GetString({"metadata", "resourceVersion"});
  session.out() << fmt::format("{} patched{}{}\n",
                               ObjectLabel(after),
                               mode == "none" ? "" : " (server dry run)",
                               changed || mode != "none" ? "" : " (no change)");
  return OkStatus();
}

Status RunPatch(Session& session, const Arguments& arguments) {
  TRY(const std::string patch, ReadPatch(arguments));
  TRY(Discovery * discovery, session.GetDiscovery());
  TRY(const std::vector<Target> targets,
      FindNamedTargets(*discovery, arguments.words(), "berth patch KIND NAME -p PATCH"));
  TRY(const std::string space, session.Namespace());
  Failures failures(session.environment());
  for (const Target& target : targets) {
    failures.Add(PatchTarget(session, target, space, patch, arguments));
  }
  return failures.Outcome();
}

constexpr std::array<std::string_view, 3> kTypes = {"strategic", "merge", "json"};
constexpr std::array<std::string_view, 2> kSubresources = {"status", "scale"};
constexpr std::array kFlags = {
    Flag{.name = "patch",
         .letter = 'p',
         .kind = FlagKind::kText,
         .value_name = "PATCH",
         .help = "The change, as JSON or YAML."},
    Flag{.name = "patch-file",
         .kind = FlagKind::kText,
         .value_name = "FILE",
         .help = "File with the change.",
         .completion = Completion::kFiles},
    Flag{.name = "type",
         .kind = FlagKind::kText,
         .value_name = "TYPE",
         .help = "How the change is written.",
         .fallback = "strategic",
         .values = kTypes},
    Flag{.name = "subresource",
         .kind = FlagKind::kText,
         .value_name = "NAME",
         .help = "Change this part instead.",
         .values = kSubresources},
    flags::kServerDryRun,
    flags::kOutput,
    flags::kFieldManager,
};

}  // namespace

Command PatchCommand() {
  return {.name = "patch",
          .group = "Change",
          .usage = "KIND NAME -p PATCH",
          .summary = "Change some fields of objects",
          .examples =
              "berth patch machine web -p '{\"spec\":{\"power\":\"Off\"}}'\n"
              "berth patch machine web --type=json "
              "-p '[{\"op\":\"remove\",\"path\":\"/metadata/labels/a\"}]'",
          .flags = kFlags,
          .words = Completion::kKindAndNames,
          .run = &RunPatch};
}

}  // namespace berth::cli
