// SPDX-License-Identifier: Apache-2.0
#include "cli/render/describe.h"

#include <fmt/core.h>

#include <array>
#include <utility>

#include "base/strings.h"
#include "cli/arguments.h"
#include "cli/commands/chosen.h"
#include "cli/commands/flags.h"
#include "cli/commands/table.h"
#include "cli/failure.h"
#include "cli/objects/failures.h"
#include "cli/objects/fetch.h"
#include "cli/objects/targets.h"
#include "cli/session/session.h"

namespace berth::cli {
namespace {

using meta::Value;

// Events of cluster-scoped objects live in the namespace "default".
std::vector<Value> FetchEvents(Api& api, const Value& object) {
  const std::string_view own = object.GetString({"metadata", "namespace"});
  std::vector<std::string> fields = {
      fmt::format("involvedObject.name={}", object.GetString({"metadata", "name"})),
      fmt::format("involvedObject.kind={}", object.GetString({"kind"}))};
  if (const auto uid = object.GetString({"metadata", "uid"}); !uid.empty()) {
    fields.push_back(fmt::format("involvedObject.uid={}", uid));
  }
  const Resource events{.group = "",
                        .version = "v1",
                        .plural = "events",
                        .singular = "event",
                        .kind = "Event",
                        .namespaced = true};
  auto list = FetchList(api,
                        events,
                        {.namespace_ = own.empty() ? "default" : std::string(own),
                         .label_selector = {},
                         .field_selector = Join(fields, ",")});
  // Who may read the object may perhaps not read events: the object is worth showing alone.
  return list.ok() ? std::move(list->items) : std::vector<Value>{};
}

class Describer {
 public:
  Describer(Session& session, Api& api, bool show_events)
      : session_(session), api_(api), show_events_(show_events) {}

  void Describe(const Value& object) {
    if (count_++ > 0) session_.out() << "\n\n";
    const auto events = show_events_ ? FetchEvents(api_, object) : std::vector<Value>{};
    session_.out() << DescribeObject(object, events, session_.environment().wall_now());
  }
  size_t count() const { return count_; }

 private:
  Session& session_;
  Api& api_;
  bool show_events_;
  size_t count_ = 0;
};

// kubectl's courtesy: a name that does not exist stands for all names that begin with it.
Status DescribeByPrefix(Api& api,
                        const Target& target,
                        const std::string& space,
                        const Status& not_found,
                        Describer& describer) {
  TRY(const FetchedList list, FetchList(api, target.resource, {.namespace_ = space}));
  const size_t before = describer.count();
  for (const Value& item : list.items) {
    if (item.GetString({"metadata", "name"}).starts_with(target.name)) describer.Describe(item);
  }
  return describer.count() > before ? OkStatus() : not_found;
}

Status DescribeTarget(Api& api,
                      const Target& target,
                      const ListSelection& selection,
                      Describer& describer) {
  if (target.name.empty()) {
    TRY(const FetchedList list, FetchList(api, target.resource, selection));
    for (const Value& item : list.items) describer.Describe(item);
    return OkStatus();
  }
  const auto object = FetchObject(api, target.resource, selection.namespace_, target.name);
  if (object.ok()) {
    describer.Describe(*object);
    return OkStatus();
  }
  if (!object.status().Is(Reason::kNotFound)) return object.status();
  return DescribeByPrefix(api, target, selection.namespace_, object.status(), describer);
}

Status DescribeFiles(Session& session,
                     const Arguments& arguments,
                     Describer& describer,
                     Failures& failures) {
  TRY(Api * api, session.GetApi());
  TRY(const std::vector<ObjectAddress> chosen, ChosenByFiles(session, arguments));
  for (const auto& [resource, space, name] : chosen) {
    const auto object = FetchObject(*api, resource, space, name);
    failures.Add(object.status());
    if (object.ok()) describer.Describe(*object);
  }
  return failures.Outcome();
}

Status RunDescribe(Session& session, const Arguments& arguments) {
  TRY(Api * api, session.GetApi());
  Describer describer(session, *api, arguments.Switch("show-events"));
  Failures failures(session.environment());
  if (!arguments.List("filename").empty()) {
    return DescribeFiles(session, arguments, describer, failures);
  }
  if (arguments.words().empty()) {
    return Advise(BadRequest("no kind is given"), "berth api-resources lists the kinds");
  }
  ListSelection selection{.label_selector = arguments.Text("selector")};
  if (!arguments.Switch("all-namespaces")) {
    TRY(selection.namespace_, session.Namespace());
  }
  TRY(Discovery * discovery, session.GetDiscovery());
  TRY(const std::vector<Target> targets, FindTargets(*discovery, arguments.words()));
  for (const Target& target : targets) {
    const Status status = DescribeTarget(*api, target, selection, describer);
    if (status.Is(Reason::kUnavailable)) return status;
    failures.Add(status);
  }
  if (describer.count() == 0 && failures.empty()) session.err() << "No resources found\n";
  return failures.Outcome();
}

constexpr std::array kFlags = {
    flags::kAllNamespaces,
    flags::kSelector,
    flags::kFilename,
    flags::kRecursive,
    Flag{.name = "show-events", .help = "Also what happened to the object.", .fallback = "true"},
};

}  // namespace

Command DescribeCommand() {
  return {.name = "describe",
          .group = "Look",
          .usage = "KIND [NAME...] | KIND/NAME...",
          .summary = "Show everything about objects, with conditions and events",
          .examples =
              "berth describe machine web\n"
              "berth describe machinepool/rack-1\n"
              "berth describe machines -l app=web",
          .flags = kFlags,
          .words = Completion::kKindAndNames,
          .run = &RunDescribe};
}

}  // namespace berth::cli
