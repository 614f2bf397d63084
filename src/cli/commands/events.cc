// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <utility>

#include "base/strings.h"
#include "cli/arguments.h"
#include "cli/commands/flags.h"
#include "cli/commands/table.h"
#include "cli/objects/fetch.h"
#include "cli/objects/targets.h"
#include "cli/objects/watcher.h"
#include "cli/render/describe.h"
#include "cli/render/output.h"
#include "cli/render/text_table.h"
#include "cli/session/session.h"

namespace berth::cli {
namespace {

using meta::Value;

Resource EventResource() {
  return {.group = "",
          .version = "v1",
          .plural = "events",
          .singular = "event",
          .kind = "Event",
          .namespaced = true};
}

Result<ListSelection> ReadSelection(Session& session, const Arguments& arguments) {
  ListSelection out;
  if (!arguments.Switch("all-namespaces")) {
    TRY(out.namespace_, session.Namespace());
  }
  std::vector<std::string> fields;
  if (const std::string& about = arguments.Text("for"); !about.empty()) {
    TRY(Discovery * discovery, session.GetDiscovery());
    TRY(const std::vector<Target> targets,
        FindNamedTargets(*discovery, {about}, "write the object as KIND/NAME"));
    fields.push_back(fmt::format("involvedObject.kind={}", targets.front().resource.kind));
    fields.push_back(fmt::format("involvedObject.name={}", targets.front().name));
    if (!targets.front().resource.namespaced && !out.namespace_.empty()) {
      out.namespace_ = "default";
    }
  }
  if (const auto& types = arguments.List("types"); types.size() == 1) {
    fields.push_back(fmt::format("type={}", types.front()));
  }
  out.field_selector = Join(fields, ",");
  return out;
}

class EventPrinter {
 public:
  EventPrinter(Session& session, const Arguments& arguments)
      : session_(session),
        with_namespace_(arguments.Switch("all-namespaces")),
        types_(arguments.List("types")),
        table_(Headers(with_namespace_),
               arguments.Switch("no-headers") ? TableHeader::kHidden : TableHeader::kShown) {}

  bool Wants(const Value& event) const {
    return types_.empty() || std::ranges::any_of(types_, [&event](const std::string& type) {
             return EqualsIgnoreCase(type, event.GetString({"type"}));
           });
  }

  void Add(const Value& event) {
    const EventLine line = EventLineOf(event, session_.environment().wall_now());
    std::vector<std::string> cells;
    if (with_namespace_) cells.emplace_back(event.GetString({"metadata", "namespace"}));
    for (const std::string* cell :
         {&line.last_seen, &line.type, &line.reason, &line.object, &line.message}) {
      cells.push_back(*cell);
    }
    table_.AddRow(std::move(cells));
  }

  void Flush() {
    session_.out() << table_.Flush();
    session_.out().flush();
  }
  bool empty() const { return table_.empty(); }

 private:
  static std::vector<std::string> Headers(bool with_namespace) {
    std::vector<std::string> out = {"Last seen", "Type", "Reason", "Object", "Message"};
    if (with_namespace) out.insert(out.begin(), "Namespace");
    return out;
  }

  Session& session_;
  bool with_namespace_;
  std::vector<std::string> types_;
  TextTable table_;
};

Status Follow(Api& api,
              const ListSelection& selection,
              const std::string& revision,
              EventPrinter& printer) {
  WatchedList list{.path = PathOf(EventResource(), selection.namespace_),
                   .query = QueryOf(selection),
                   .resource_version = revision};
  TRY(Watcher watcher, Watcher::Start(api, {std::move(list)}));
  while (true) {
    TRY(const WatchedEvent event, watcher.Next(std::nullopt));
    if (event.type == "DELETED" || !printer.Wants(event.object)) continue;
    printer.Add(event.object);
    printer.Flush();
  }
}

Status RunEvents(Session& session, const Arguments& arguments) {
  TRY(const OutputFormat format, ParseOutputFormat(arguments.Text("output")));
  TRY(const ListSelection selection, ReadSelection(session, arguments));
  TRY(Api * api, session.GetApi());
  TRY(FetchedList list, FetchList(*api, EventResource(), selection));
  EventPrinter printer(session, arguments);
  std::erase_if(list.items, [&printer](const Value& event) { return !printer.Wants(event); });
  const WallTime now = session.environment().wall_now();
  std::multimap<WallTime, Value> by_time;  // equal times stay in order
  for (Value& event : list.items) {
    const WallTime time = EventLineOf(event, now).time;
    by_time.emplace(time, std::move(event));
  }
  list.items.clear();
  for (auto& [time, event] : by_time) list.items.push_back(std::move(event));
  if (!format.is_table()) {
    return PrintValue(session.environment(), format, ListOf(std::move(list.items)));
  }
  for (const Value& event : list.items) printer.Add(event);
  if (printer.empty() && !arguments.Switch("watch")) {
    session.err() << (selection.namespace_.empty()
                          ? std::string("No events found.\n")
                          : fmt::format("No events found in {} namespace.\n",
                                        Printable(selection.namespace_)));
  }
  printer.Flush();
  if (!arguments.Switch("watch")) return OkStatus();
  return Follow(*api, selection, list.resource_version, printer);
}

constexpr std::array<std::string_view, 2> kTypes = {"Normal", "Warning"};
constexpr std::array kFlags = {
    flags::kAllNamespaces,
    Flag{.name = "for",
         .kind = FlagKind::kText,
         .value_name = "KIND/NAME",
         .help = "Only events about this object.",
         .completion = Completion::kKindAndNames},
    Flag{.name = "types",
         .kind = FlagKind::kCommaList,
         .value_name = "TYPE",
         .help = "Only events of these types.",
         .values = kTypes},
    Flag{.name = "watch", .letter = 'w', .help = "Print what there is, then every new event."},
    flags::kOutput,
    flags::kNoHeaders,
};

}  // namespace

Command EventsCommand() {
  return {.name = "events",
          .group = "Look",
          .summary = "Show what happened, oldest first",
          .examples =
              "berth events\n"
              "berth events --for machine/web --watch\n"
              "berth events -A --types=Warning",
          .flags = kFlags,
          .run = &RunEvents};
}

}  // namespace berth::cli
