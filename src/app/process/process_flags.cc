// SPDX-License-Identifier: Apache-2.0
#include "app/process/process_flags.h"

#include <unistd.h>

namespace berth::app {

log::Level LogLevelOf(const cli::Arguments& arguments) {
  const std::string& level = arguments.Text("log-level");
  if (level == "debug") return log::Level::kDebug;
  if (level == "warning") return log::Level::kWarning;
  if (level == "error") return log::Level::kError;
  return log::Level::kInfo;
}

void ConfigureLog(const cli::Arguments& arguments) {
  log::Options options{.level = LogLevelOf(arguments)};
  if (arguments.Text("log-format") == "json") options.format = log::Format::kJson;
  log::Configure(options);
}

std::string DefaultDataDir(const cli::Environment& environment) {
  if (geteuid() == 0) return "/var/lib/berth";
  if (const auto data = environment.Variable("XDG_DATA_HOME"); !data.empty()) {
    return std::string(data) + "/berth";
  }
  return std::string(environment.Variable("HOME")) + "/.local/share/berth";
}

}  // namespace berth::app
