// SPDX-License-Identifier: Apache-2.0
#include "app/process/process_flags.h"

#include <unistd.h>

#include "base/log.h"

namespace berth::app {

void ConfigureLog(const cli::Arguments& arguments) {
  log::Options options;
  const std::string& level = arguments.Text("log-level");
  if (level == "debug") options.level = log::Level::kDebug;
  if (level == "warning") options.level = log::Level::kWarning;
  if (level == "error") options.level = log::Level::kError;
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
