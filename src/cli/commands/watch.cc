// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <array>
#include <optional>
#include <utility>

#include "cli/arguments.h"
#include "cli/commands/flags.h"
#include "cli/commands/table.h"
#include "cli/failure.h"
#include "cli/objects/fetch.h"
#include "cli/objects/targets.h"
#include "cli/objects/watcher.h"
#include "cli/render/output.h"
#include "cli/render/text_table.h"
#include "cli/session/session.h"
#include "meta/json.h"

namespace berth::cli {
namespace {

using meta::Value;

// The state that a person looks for first: the condition Ready, a state, a phase.
std::string StateOf(const Value& object) {
  for (const std::string_view field : {"state", "phase"}) {
    if (const auto text = object.GetString({"status", field}); !text.empty()) {
      return std::string(text);
    }
  }
  const Value* conditions = object.Get({"status", "conditions"});
  if (conditions == nullptr || !conditions->is_array()) return "";
  for (const Value& condition : conditions->items()) {
    if (condition.GetString({"type"}) == "Ready") {
      return fmt::format("Ready={}", condition.GetString({"status"}));
    }
  }
  return "";
}

Result<std::vector<WatchedList>> StartingPoints(Api& api,
                                                const std::vector<Target>& targets,
                                                const ListSelection& selection) {
  std::vector<WatchedList> out;
  for (const Target& target : targets) {
    ListSelection own = selection;
    if (!target.name.empty()) own.field_selector = fmt::format("metadata.name={}", target.name);
    WatchedList list{.path = PathOf(target.resource, own.namespace_), .query = QueryOf(own)};
    Api::Query first = list.query;
    first.emplace_back("limit", "1");
    TRY(const Value page, api.Get(list.path, std::move(first)));
    list.resource_version = page.GetString({"metadata", "resourceVersion"});
    out.push_back(std::move(list));
  }
  return out;
}

// One line of JSON per change, for programs.
void PrintJsonLine(Session& session, const WatchedEvent& event) {
  Value line = Value::Object();
  line.Set("type", event.type);
  line.Set("object", event.object);
  session.out() << ForTerminal(session.environment(), meta::WriteJson(line)) << "\n";
  session.out().flush();
}

Status RunWatch(Session& session, const Arguments& arguments) {
  if (arguments.words().empty()) {
    return Advise(BadRequest("no kind is given"), "berth api-resources lists the kinds");
  }
  TRY(Api * api, session.GetApi());
  TRY(Discovery * discovery, session.GetDiscovery());
  TRY(const std::vector<Target> targets, FindTargets(*discovery, arguments.words()));
  ListSelection selection{.label_selector = arguments.Text("selector"),
                          .field_selector = arguments.Text("field-selector")};
  if (!arguments.Switch("all-namespaces")) {
    TRY(selection.namespace_, session.Namespace());
  }
  TRY(std::vector<WatchedList> lists, StartingPoints(*api, targets, selection));
  TRY(Watcher watcher, Watcher::Start(*api, std::move(lists)));
  // "Event" is as wide as the widest event, which may come long after the header.
  TextTable table({"Time", "Event   ", "Namespace", "Object", "State"});
  while (true) {
    TRY(const WatchedEvent event, watcher.Next(std::nullopt));
    if (arguments.Text("output") == "json") {
      PrintJsonLine(session, event);
      continue;
    }
    const std::string time = FormatRfc3339(session.environment().wall_now());
    table.AddRow({time.substr(11, 8),
                  event.type,
                  std::string(event.object.GetString({"metadata", "namespace"})),
                  ObjectLabel(event.object),
                  StateOf(event.object)});
    session.out() << table.Flush();
    session.out().flush();
  }
}

constexpr std::array<std::string_view, 1> kFormats = {"json"};
constexpr std::array kFlags = {
    flags::kAllNamespaces,
    flags::kSelector,
    flags::kFieldSelector,
    Flag{.name = "output",
         .letter = 'o',
         .kind = FlagKind::kText,
         .value_name = "FORMAT",
         .help = "One object per change.",
         .values = kFormats},
};

}  // namespace

Command WatchCommand() {
  return {.name = "watch",
          .group = "Look",
          .usage = "KIND[,KIND...] [NAME...]",
          .summary = "Follow changes of several kinds as they happen",
          .examples =
              "berth watch machines,volumes\n"
              "berth watch machinepools -o json",
          .flags = kFlags,
          .words = Completion::kKindAndNames,
          .run = &RunWatch};
}

}  // namespace berth::cli
