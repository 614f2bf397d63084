// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>
#include <unistd.h>

#include <array>
#include <utility>

#include "base/strings.h"
#include "cli/api/known_kinds.h"
#include "cli/arguments.h"
#include "cli/commands/flags.h"
#include "cli/commands/placement.h"
#include "cli/commands/table.h"
#include "cli/failure.h"
#include "cli/files.h"
#include "cli/objects/failures.h"
#include "cli/objects/fetch.h"
#include "cli/objects/managers.h"
#include "cli/objects/targets.h"
#include "cli/session/session.h"
#include "meta/json.h"
#include "meta/kind.h"
#include "meta/patch/patch.h"
#include "meta/yaml.h"

namespace berth::cli {
namespace {

using meta::Value;

constexpr std::string_view kIntroduction =
    "# Change the object below, save and leave the editor. Lines that begin with # do not count;\n"
    "# an empty file, or one without changes, changes nothing.\n";

// "code --wait" is a program with an argument.
std::vector<std::string> EditorCommand(const Environment& environment) {
  std::string_view chosen;
  for (const std::string_view name : {"BERTH_EDITOR", "KUBE_EDITOR", "VISUAL", "EDITOR"}) {
    if (chosen.empty()) chosen = environment.Variable(name);
  }
  std::vector<std::string> out;
  for (const std::string_view word : Split(chosen.empty() ? "vi" : chosen, ' ')) {
    if (!word.empty()) out.emplace_back(word);
  }
  if (out.empty()) out.emplace_back("vi");
  return out;
}

bool HasContent(std::string_view text) {
  for (const std::string_view line : Split(text, '\n')) {
    const std::string_view trimmed = Trim(line);
    if (!trimmed.empty() && !trimmed.starts_with('#')) return true;
  }
  return false;
}

std::string WithoutComments(std::string_view text) {
  std::string out;
  // Only our own comments stand at the very top; others may be part of a block of text.
  bool top = true;
  for (const std::string_view line : Split(text, '\n')) {
    top = top && line.starts_with('#');
    if (!top) out += fmt::format("{}\n", line);
  }
  while (out.ends_with("\n\n")) out.pop_back();
  return out;
}

std::string Commented(std::string_view message) {
  std::string out = "#\n";
  for (const std::string_view line : Split(message, '\n')) out += fmt::format("# {}\n", line);
  return out + "#\n";
}

// One object in the editor, again and again until it is accepted or given up.
class EditRound {
 public:
  EditRound(Session& session, const Arguments& arguments, const Target& target, std::string space)
      : session_(session), arguments_(arguments), target_(target), space_(std::move(space)) {}

  Status Run() {
    TRY(Api * api, session_.GetApi());
    TRY(Value original, FetchObject(*api, target_.resource, space_, target_.name));
    // Nobody edits the bookkeeping of server-side apply by hand.
    HideManagers(original);
    std::string text = meta::WriteYaml(original);
    std::string problem;
    while (true) {
      TRY(const std::string edited, Edit(text, problem));
      const std::string body = WithoutComments(edited);
      if (!HasContent(edited) || body == WithoutComments(text)) return GiveUp(problem, body);
      text = body;
      const Status status = Send(*api, original, body);
      if (status.ok() || status.Is(Reason::kUnavailable)) return status;
      problem = "error: " + FullMessage(status);
      failed_ = status;
    }
  }

 private:
  Result<std::string> Edit(const std::string& text, const std::string& problem) {
    std::string content(kIntroduction);
    if (!problem.empty()) content += Commented(problem);
    content += text;
    TRY(const std::string path,
        MakePrivateTemporary(session_.environment().Variable("TMPDIR"), ".yaml", content));
    std::vector<std::string> command = EditorCommand(session_.environment());
    command.push_back(path);
    Status ran = session_.environment().run_program(command);
    auto edited = ReadFile(path);
    ::unlink(path.c_str());
    if (!ran.ok()) return Advise(ran, "set EDITOR to an editor that is installed");
    return edited;
  }

  Status GiveUp(const std::string& problem, const std::string& body) {
    if (problem.empty()) {
      session_.out() << "Edit cancelled, no changes made.\n";
      return OkStatus();
    }
    // The work of the user is not thrown away.
    auto kept = MakePrivateTemporary(session_.environment().Variable("TMPDIR"), ".yaml", body);
    if (kept.ok()) session_.err() << fmt::format("A copy of your changes is in {}\n", *kept);
    return failed_;
  }

  Status Send(Api& api, const Value& original, const std::string& body) {
    auto edited = meta::ParseYaml(body);
    if (!edited.ok()) return edited.status();
    for (const std::string_view field : {"apiVersion", "kind"}) {
      if (edited->GetString({field}) != original.GetString({field})) {
        return BadRequest(fmt::format("{} cannot be changed here", field));
      }
    }
    const meta::KindInfo* kind = FindKnownKind(target_.resource);
    const Value patch = kind == nullptr
                            ? meta::ThreeWayJsonMergePatch(original, *edited, original)
                            : meta::ThreeWayMergePatch(original, *edited, original, *kind->type);
    if (patch.members().empty()) {
      session_.out() << "Edit cancelled, no changes made.\n";
      return OkStatus();
    }
    Api::Query query = {{"fieldManager", arguments_.Text("field-manager")},
                        {"fieldValidation", FieldValidationOf(arguments_)}};
    TRY(const Value changed,
        api.Patch(PathOf(target_.resource, space_, target_.name),
                  kind == nullptr ? "application/merge-patch+json"
                                  : "application/strategic-merge-patch+json",
                  meta::WriteJson(patch),
                  std::move(query)));
    session_.out() << fmt::format("{} edited\n", ObjectLabel(changed));
    return OkStatus();
  }

  Session& session_;
  const Arguments& arguments_;
  const Target& target_;
  std::string space_;
  Status failed_;
};

Status RunEdit(Session& session, const Arguments& arguments) {
  TRY(Discovery * discovery, session.GetDiscovery());
  TRY(const std::vector<Target> targets,
      FindNamedTargets(*discovery, arguments.words(), "berth edit KIND NAME"));
  TRY(const std::string space, session.Namespace());
  Failures failures(session.environment());
  for (const Target& target : targets) {
    failures.Add(EditRound(session, arguments, target, space).Run());
  }
  return failures.Outcome();
}

constexpr std::array kFlags = {flags::kValidate, flags::kFieldManager};

}  // namespace

Command EditCommand() {
  return {.name = "edit",
          .group = "Change",
          .usage = "KIND NAME",
          .summary = "Change an object in your editor",
          .details =
              "The editor is $EDITOR (or $BERTH_EDITOR, $KUBE_EDITOR, $VISUAL), else vi. What "
              "the server\nrefuses is opened again with the reason on top.",
          .examples = "berth edit machine web\nEDITOR=nano berth edit volume data",
          .flags = kFlags,
          .words = Completion::kKindAndNames,
          .run = &RunEdit};
}

}  // namespace berth::cli
