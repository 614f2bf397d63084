// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "base/strings.h"
#include "cli/arguments.h"
#include "cli/commands/table.h"
#include "cli/objects/targets.h"
#include "cli/session/session.h"

namespace berth::cli {
namespace {

// A guest writes its log: on a terminal it must not move the cursor or change colours.
std::string Shown(const Environment& environment, std::string bytes) {
  if (!environment.terminal.out_is_terminal) return bytes;
  std::string out;
  for (const std::string_view line : Split(bytes, '\n')) {
    if (!out.empty() || line.data() != bytes.data()) out += '\n';
    for (const std::string_view cell : Split(line, '\t')) {
      if (cell.data() != line.data()) out += '\t';
      out += Printable(cell.ends_with('\r') ? cell.substr(0, cell.size() - 1) : cell);
    }
  }
  return out;
}

Result<Request> LogRequest(Session& session, const Arguments& arguments) {
  if (arguments.words().size() != 1) return BadRequest("name one machine");
  TRY(Discovery * discovery, session.GetDiscovery());
  TRY(const auto machines, FindMachines(*discovery, arguments.words()));
  const Target& target = machines.front();
  TRY(const std::string namespace_, session.Namespace());
  Request request;
  request.path = PathOf(target.resource, namespace_, target.name, "log");
  if (arguments.Switch("follow")) request.query.emplace_back("follow", "true");
  const int64_t lines = arguments.Number("tail");
  if (lines >= 0) request.query.emplace_back("tailLines", std::to_string(lines));
  return request;
}

Status RunLogs(Session& session, const Arguments& arguments) {
  TRY(Request request, LogRequest(session, arguments));
  TRY(Api * api, session.GetApi());
  TRY(const auto streams, api->Open({std::move(request)}));
  while (true) {
    TRY(Streams::Chunk chunk, streams->Next(std::nullopt));
    if (chunk.bytes.empty()) return OkStatus();
    session.out() << Shown(session.environment(), std::move(chunk.bytes)) << std::flush;
  }
}

constexpr std::array kFlags = {
    Flag{.name = "follow", .letter = 'f', .help = "Go on with what is written from now on."},
    Flag{.name = "tail",
         .kind = FlagKind::kNumber,
         .value_name = "N",
         .help = "Only the last lines; -1: all that there are.",
         .fallback = "-1"},
};

}  // namespace

Command LogsCommand() {
  return {.name = "logs",
          .group = "Look",
          .usage = "MACHINE",
          .summary = "Show what a machine has written",
          .details =
              "What its runtime keeps of the machine's output. Needs the right to get "
              "machines/log.",
          .examples = "berth logs web\nberth logs machine/web -n shop --tail 20 -f",
          .flags = kFlags,
          .words = Completion::kKindAndNames,
          .run = &RunLogs};
}

}  // namespace berth::cli
