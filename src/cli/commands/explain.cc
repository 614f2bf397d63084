// SPDX-License-Identifier: Apache-2.0
// explain needs no server: the kinds are described in this program.
#include "meta/explain.h"

#include <fmt/core.h>

#include <array>
#include <string>
#include <string_view>

#include "cli/api/known_kinds.h"
#include "cli/arguments.h"
#include "cli/commands/table.h"
#include "cli/failure.h"
#include "cli/session/session.h"
#include "meta/kind.h"
#include "meta/scheme.h"

namespace berth::cli {
namespace {

struct Question {
  const meta::KindInfo* kind = nullptr;
  std::string group;
  std::string path;  // "spec.volumes"
};

// "machine.spec.volumes", with the group in --api-version if the word alone has several meanings.
Result<Question> ReadQuestion(std::string_view word, const std::string& api_version) {
  const size_t dot = word.find('.');
  std::string name(word.substr(0, dot));
  std::string group;
  if (!api_version.empty()) {
    group = KnownKinds().ServedSpelling(meta::SplitApiVersion(api_version).group);
    if (!group.empty()) name += fmt::format(".{}", group);
  }
  const auto found = KnownKinds().FindByWord(name);
  if (!found.ok()) return Advise(found.status(), "berth api-resources lists the kinds");
  return Question{.kind = *found,
                  .group = group.empty() ? KnownKinds().GroupOf(**found) : group,
                  .path = std::string(dot == std::string_view::npos ? "" : word.substr(dot + 1))};
}

Status RunExplain(Session& session, const Arguments& arguments) {
  if (arguments.words().size() != 1) {
    return Advise(BadRequest("one kind or field is needed"), "berth explain machine.spec");
  }
  TRY(const Question question,
      ReadQuestion(arguments.words().front(), arguments.Text("api-version")));
  const auto depth =
      arguments.Switch("recursive") ? meta::ExplainDepth::kRecursive : meta::ExplainDepth::kFields;
  auto text = meta::Explain(*question.kind, question.group, question.path, depth);
  if (!text.ok()) {
    return Advise(text.status(),
                  fmt::format("berth explain {} --recursive", question.kind->singular));
  }
  session.out() << *text;
  return OkStatus();
}

constexpr std::array kFlags = {
    Flag{.name = "recursive", .help = "All fields below, without their descriptions."},
    Flag{.name = "api-version",
         .kind = FlagKind::kText,
         .value_name = "GROUP/VERSION",
         .help = "Which of several kinds of that name."},
};

}  // namespace

Command ExplainCommand() {
  return {.name = "explain",
          .group = "Look",
          .usage = "KIND[.FIELD...]",
          .summary = "Explain kinds and their fields",
          .examples =
              "berth explain machine\n"
              "berth explain machine.spec.volumes\n"
              "berth explain machine --recursive",
          .flags = kFlags,
          .words = Completion::kKinds,
          .run = &RunExplain};
}

}  // namespace berth::cli
