// SPDX-License-Identifier: Apache-2.0
#include "cli/session/program.h"

#include <ostream>

#include "cli/arguments.h"
#include "cli/help.h"
#include "cli/session/session.h"

namespace berth::cli {
namespace {

// `berth help get` is `berth get --help`; what a shell wants completed is not read as our own
// flags.
std::vector<std::string> Rewritten(const std::vector<std::string>& line) {
  if (!line.empty() && line.front() == "__complete") {
    std::vector<std::string> out = line;
    out.insert(out.begin() + 1, "--");
    return out;
  }
  if (line.empty() || line.front() != "help") return line;
  std::vector<std::string> out(line.begin() + 1, line.end());
  out.emplace_back("--help");
  return out;
}

}  // namespace

void ReportFailure(const Status& status, Environment& environment) {
  if (status.ok() || IsQuiet(status)) return;
  const Failure failure = FailureOf(status);
  std::ostream& err = *environment.err;
  err << "error: " << FullMessage(status) << "\n";
  if (!failure.next_step.empty()) err << "next: " << failure.next_step << "\n";
}

ExitCode RunProgram(const Command& root,
                    const std::vector<std::string>& line,
                    Environment& environment) {
  const auto parsed = ParseArguments(root, GlobalFlags(), Rewritten(line), environment.variables);
  if (!parsed.ok()) {
    ReportFailure(parsed.status(), environment);
    return ExitCodeOf(parsed.status());
  }
  if (parsed->asked == Asked::kHelp || parsed->command().run == nullptr) {
    *environment.out << HelpText(parsed->path, GlobalFlags());
    return ExitCode::kOk;
  }
  Session session(environment, root, parsed->arguments);
  const Status status = parsed->command().run(session, parsed->arguments);
  environment.out->flush();
  ReportFailure(status, environment);
  return ExitCodeOf(status);
}

}  // namespace berth::cli
