// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "base/strings.h"
#include "cli/arguments.h"
#include "cli/commands/chosen.h"
#include "cli/commands/flags.h"
#include "cli/commands/sorting.h"
#include "cli/commands/table.h"
#include "cli/failure.h"
#include "cli/objects/failures.h"
#include "cli/objects/fetch.h"
#include "cli/objects/managers.h"
#include "cli/objects/targets.h"
#include "cli/objects/watcher.h"
#include "cli/render/object_table.h"
#include "cli/render/output.h"
#include "cli/session/session.h"
#include "net/url.h"

namespace berth::cli {
namespace {

using meta::Value;

// As wide as the widest event, which may come long after the header.
constexpr std::string_view kEventHeader = "Event   ";

struct GetOptions {
  OutputFormat format;
  ListSelection selection;
  bool ignore_not_found = false;
  std::string sort_by;
  ObjectTableOptions table;
  bool show_managers = false;

  // Whoever names a field with a path wants to see it.
  bool hides_managers() const {
    return !show_managers && (format.kind == OutputKind::kJson || format.kind == OutputKind::kYaml);
  }
};

// What one command line asks for, per kind: a list, or some names.
struct Wanted {
  Resource resource;
  std::vector<std::pair<std::string, std::string>> names;  // namespace, name; empty: the list
};

Result<GetOptions> ReadOptions(Session& session, const Arguments& arguments) {
  GetOptions out;
  TRY(out.format, ParseOutputFormat(arguments.Text("output")));
  if (!arguments.Switch("all-namespaces")) {
    TRY(out.selection.namespace_, session.Namespace());
  }
  out.selection.label_selector = arguments.Text("selector");
  out.selection.field_selector = arguments.Text("field-selector");
  out.ignore_not_found = arguments.Switch("ignore-not-found");
  out.sort_by = arguments.Text("sort-by");
  out.show_managers = arguments.Switch("show-managed-fields");
  out.table.wide = out.format.kind == OutputKind::kWide;
  out.table.show_labels = arguments.Switch("show-labels");
  out.table.label_columns = arguments.List("label-columns");
  if (arguments.Switch("no-headers")) out.table.header = TableHeader::kHidden;
  return out;
}

void AddWanted(std::vector<Wanted>& out,
               const Resource& resource,
               const std::string& space,
               const std::string& name) {
  const bool same = !out.empty() && out.back().resource.kind == resource.kind &&
                    out.back().resource.group == resource.group;
  if (!same) out.push_back({.resource = resource, .names = {}});
  if (!name.empty()) out.back().names.emplace_back(space, name);
}

Result<std::vector<Wanted>> FindWanted(Session& session,
                                       const Arguments& arguments,
                                       const GetOptions& options) {
  std::vector<Wanted> out;
  if (!arguments.List("filename").empty()) {
    TRY(const std::vector<ObjectAddress> chosen, ChosenByFiles(session, arguments));
    for (const auto& [resource, space, name] : chosen) AddWanted(out, resource, space, name);
    return out;
  }
  if (arguments.words().empty()) {
    return Advise(BadRequest("no kind is given"), "berth api-resources lists the kinds");
  }
  TRY(Discovery * discovery, session.GetDiscovery());
  TRY(const std::vector<Target> targets, FindTargets(*discovery, arguments.words()));
  const bool selects =
      !options.selection.label_selector.empty() || !options.selection.field_selector.empty();
  for (const Target& target : targets) {
    if (!target.name.empty() && selects) {
      return BadRequest("a name and a selector cannot be given together");
    }
    if (!target.name.empty() && target.resource.namespaced &&
        options.selection.namespace_.empty()) {
      return BadRequest("an object of a namespace cannot be named with --all-namespaces");
    }
    AddWanted(out, target.resource, options.selection.namespace_, target.name);
  }
  return out;
}

// Runs `fetch` for every path that `wanted` stands for: its list, or each named object.
Status FetchEach(const Wanted& wanted,
                 const GetOptions& options,
                 Failures& failures,
                 const std::function<Status(const std::string& path, bool is_list)>& fetch) {
  if (wanted.names.empty()) {
    return fetch(PathOf(wanted.resource, options.selection.namespace_), true);
  }
  for (const auto& [space, name] : wanted.names) {
    const Status status = fetch(PathOf(wanted.resource, space, name), false);
    if (status.ok() || (status.Is(Reason::kNotFound) && options.ignore_not_found)) continue;
    if (status.Is(Reason::kUnavailable)) return status;
    failures.Add(status);
  }
  return OkStatus();
}

Result<ServerTable> FetchTable(Session& session,
                               const Wanted& wanted,
                               const GetOptions& options,
                               Failures& failures) {
  TRY(Api * api, session.GetApi());
  const WallTime now = session.environment().wall_now();
  ServerTable out;
  const auto take = [&out, now](Value page) -> Status {
    TRY(ServerTable part, ServerTableFromValue(std::move(page), now));
    if (out.columns.empty()) out.columns = std::move(part.columns);
    out.resource_version = std::move(part.resource_version);
    for (ServerRow& row : part.rows) out.rows.push_back(std::move(row));
    return OkStatus();
  };
  const auto fetch = [&](const std::string& path, bool is_list) -> Status {
    Api::Query query = is_list ? QueryOf(options.selection) : Api::Query{};
    if (!options.sort_by.empty()) query.emplace_back("includeObject", "Object");
    if (is_list) {
      const auto restart = [&out] { out.rows.clear(); };
      return FetchPages(*api, path, query, kAcceptTable, take, restart);
    }
    TRY(Value page, api->Get(path, std::move(query), kAcceptTable));
    return take(std::move(page));
  };
  TRY_STATUS(FetchEach(wanted, options, failures, fetch));
  if (!options.sort_by.empty()) {
    TRY_STATUS(SortByField(out.rows, options.sort_by, &ServerRow::object));
  }
  return out;
}

ObjectTableOptions TableOptionsFor(const Wanted& wanted, const GetOptions& options, bool prefix) {
  ObjectTableOptions out = options.table;
  out.with_namespace = options.selection.namespace_.empty() && wanted.resource.namespaced;
  if (prefix) out.name_prefix = ObjectLabel(wanted.resource.ApiVersion(), wanted.resource.kind, "");
  return out;
}

void SayNothingFound(Session& session,
                     const std::vector<Wanted>& wanted,
                     const GetOptions& options) {
  const bool namespaced =
      std::ranges::any_of(wanted, [](const Wanted& one) { return one.resource.namespaced; });
  session.err() << (namespaced && !options.selection.namespace_.empty()
                        ? fmt::format("No resources found in {} namespace.\n",
                                      Printable(options.selection.namespace_))
                        : "No resources found\n");
}

Status PrintTables(Session& session,
                   const std::vector<Wanted>& wanted,
                   const GetOptions& options,
                   Failures& failures) {
  bool any = false;
  for (const Wanted& one : wanted) {
    TRY(const ServerTable table, FetchTable(session, one, options, failures));
    if (table.rows.empty()) continue;
    ObjectTable printed(table.columns, TableOptionsFor(one, options, wanted.size() > 1));
    for (const ServerRow& row : table.rows) printed.Add(row);
    if (any) session.out() << "\n";
    session.out() << printed.Flush();
    any = true;
  }
  if (!any && failures.empty() && !options.ignore_not_found) {
    SayNothingFound(session, wanted, options);
  }
  return OkStatus();
}

Status PrintObjects(Session& session,
                    const std::vector<Wanted>& wanted,
                    const GetOptions& options,
                    Failures& failures) {
  TRY(Api * api, session.GetApi());
  std::vector<Value> objects;
  bool single = wanted.size() == 1 && wanted.front().names.size() == 1;
  for (const Wanted& one : wanted) {
    const auto fetch = [&](const std::string& path, bool is_list) -> Status {
      if (is_list) {
        TRY(FetchedList list, FetchList(*api, one.resource, options.selection));
        for (Value& item : list.items) objects.push_back(std::move(item));
        return OkStatus();
      }
      TRY(Value object, api->Get(path));
      objects.push_back(std::move(object));
      return OkStatus();
    };
    TRY_STATUS(FetchEach(one, options, failures, fetch));
  }
  if (!options.sort_by.empty()) {
    TRY_STATUS(SortByField(
        objects, options.sort_by, [](const Value& object) -> const Value& { return object; }));
  }
  if (objects.empty() && (single || !failures.empty())) return OkStatus();
  if (options.hides_managers()) std::ranges::for_each(objects, HideManagers);
  const Value printed = single ? std::move(objects.front()) : ListOf(std::move(objects));
  return PrintValue(session.environment(), options.format, printed);
}

// Prints changes as they come, after the state that was printed first.
class LiveList {
 public:
  LiveList(Session& session, const Wanted& wanted, const GetOptions& options, bool show_types)
      : session_(session), wanted_(wanted), options_(options), show_types_(show_types) {}

  Status Run(bool print_state) {
    TRY(Api * api, session_.GetApi());
    WatchedList list{.path = PathOf(wanted_.resource, options_.selection.namespace_),
                     .query = QueryOf(options_.selection),
                     .accept = std::string(options_.format.is_table() ? kAcceptTable : kAcceptJson),
                     .resource_version = {}};
    if (!wanted_.names.empty()) {
      const auto& [space, name] = wanted_.names.front();
      list.path = PathOf(wanted_.resource, space);
      list.query = {{"fieldSelector", fmt::format("metadata.name={}", name)}};
    }
    TRY_STATUS(PrintState(*api, list, print_state));
    TRY(Watcher watcher, Watcher::Start(*api, {list}));
    while (true) {
      TRY(WatchedEvent event, watcher.Next(std::nullopt));
      TRY_STATUS(Print(event.type, std::move(event.object)));
    }
  }

 private:
  // The revision to watch from comes with the list, printed or not.
  Status PrintState(Api& api, WatchedList& list, bool print) {
    const auto take = [&](Value page) -> Status {
      list.resource_version = page.GetString({"metadata", "resourceVersion"});
      if (!print) return OkStatus();
      if (options_.format.is_table()) return Print("ADDED", std::move(page));
      Value* items = page.Find("items");
      if (items == nullptr || !items->is_array()) return OkStatus();
      for (Value& item : items->items()) {
        item.Set("apiVersion", wanted_.resource.ApiVersion());
        item.Set("kind", wanted_.resource.kind);
        TRY_STATUS(Print("ADDED", std::move(item)));
      }
      return OkStatus();
    };
    return FetchPages(api, list.path, list.query, list.accept, take, [] {});
  }

  Status Print(const std::string& type, Value object) {
    if (!options_.format.is_table()) {
      Value shown = std::move(object);
      if (options_.hides_managers()) HideManagers(shown);
      if (show_types_) {
        Value event = Value::Object();
        event.Set("type", type);
        event.Set("object", std::move(shown));
        shown = std::move(event);
      }
      TRY_STATUS(PrintValue(session_.environment(), options_.format, shown));
      session_.out().flush();
      return OkStatus();
    }
    TRY(ServerTable table,
        ServerTableFromValue(std::move(object), session_.environment().wall_now()));
    // Only the first event of a watch carries the columns.
    if (!printed_) {
      ObjectTableOptions options = TableOptionsFor(wanted_, options_, false);
      if (show_types_) options.leading = {std::string(kEventHeader)};
      if (table.columns.empty()) return OkStatus();
      printed_.emplace(std::move(table.columns), std::move(options));
    }
    for (const ServerRow& row : table.rows) {
      printed_->Add(row, show_types_ ? std::vector<std::string>{type} : std::vector<std::string>{});
    }
    session_.out() << printed_->Flush();
    session_.out().flush();
    return OkStatus();
  }

  Session& session_;
  const Wanted& wanted_;
  const GetOptions& options_;
  bool show_types_;
  std::optional<ObjectTable> printed_;
};

// The answer to a GET of any path, as it comes.
Status PrintRaw(Session& session, const Arguments& arguments) {
  const std::string uri = arguments.Text("raw");
  if (!arguments.words().empty() || !arguments.List("filename").empty()) {
    return BadRequest("--raw takes a path, and nothing else is named beside it");
  }
  if (!uri.starts_with('/')) {
    return BadRequest(fmt::format("--raw: {} does not begin with /", Quote(uri)));
  }
  const size_t end = uri.find('?');
  std::optional<std::string> path = net::PercentDecode(uri.substr(0, end));
  if (!path) return BadRequest(fmt::format("--raw: {} has a broken escape", Quote(uri)));
  Api::Query query;
  if (end != std::string::npos) {
    TRY(const net::Query written, net::Query::Parse(uri.substr(end + 1)));
    for (const auto& [name, value] : written.pairs()) query.emplace_back(name, value);
  }
  TRY(Api * api, session.GetApi());
  TRY(const std::string text, api->GetText(*std::move(path), std::move(query)));
  session.out() << text << (text.ends_with('\n') ? "" : "\n");
  return OkStatus();
}

Status RunGet(Session& session, const Arguments& arguments) {
  if (arguments.Given("raw")) return PrintRaw(session, arguments);
  TRY(const GetOptions options, ReadOptions(session, arguments));
  TRY(const std::vector<Wanted> wanted, FindWanted(session, arguments, options));
  if (arguments.Switch("watch") || arguments.Switch("watch-only")) {
    if (wanted.size() != 1 || wanted.front().names.size() > 1) {
      return Advise(BadRequest("--watch follows one kind or one object"),
                    "berth watch follows several kinds");
    }
    LiveList live(session, wanted.front(), options, arguments.Switch("output-watch-events"));
    return live.Run(!arguments.Switch("watch-only"));
  }
  Failures failures(session.environment());
  TRY_STATUS(options.format.is_table() ? PrintTables(session, wanted, options, failures)
                                       : PrintObjects(session, wanted, options, failures));
  return failures.Outcome();
}

constexpr std::array kFlags = {
    flags::kOutput,
    flags::kAllNamespaces,
    flags::kSelector,
    flags::kFieldSelector,
    Flag{.name = "watch", .letter = 'w', .help = "Print the list, then every change."},
    Flag{.name = "watch-only", .help = "Print changes only."},
    Flag{.name = "output-watch-events", .help = "With --watch: also what kind of change it was."},
    Flag{.name = "sort-by",
         .kind = FlagKind::kText,
         .value_name = "PATH",
         .help = "Order by this field: .metadata.creationTimestamp."},
    Flag{.name = "show-labels", .help = "All labels as the last column."},
    Flag{.name = "show-managed-fields", .help = "With -o json or yaml: who has set which fields."},
    Flag{.name = "label-columns",
         .letter = 'L',
         .kind = FlagKind::kCommaList,
         .value_name = "LABEL",
         .help = "One more column with the value of this label."},
    Flag{.name = "raw",
         .kind = FlagKind::kText,
         .value_name = "PATH",
         .help = "Print what the server answers to a GET of this path, as it is."},
    flags::kNoHeaders,
    flags::kIgnoreNotFound,
    flags::kFilename,
    flags::kRecursive,
};

}  // namespace

Command GetCommand() {
  return {.name = "get",
          .group = "Look",
          .usage = "KIND[,KIND...] [NAME...] | KIND/NAME...",
          .summary = "List objects, one or many",
          .examples =
              "# The machines of the current namespace, and of all\n"
              "berth get machines\n"
              "berth get machines -A -o wide\n"
              "# One object, as it is stored\n"
              "berth get machine web -o yaml\n"
              "# Several kinds, following changes, picking fields\n"
              "berth get machines,volumes -l app=web\n"
              "berth get machines -w\n"
              "berth get machines -o jsonpath='{.items[*].metadata.name}'\n"
              "# Any path of the server\n"
              "berth get --raw '/readyz?verbose'",
          .flags = kFlags,
          .words = Completion::kKindAndNames,
          .run = &RunGet};
}

}  // namespace berth::cli
