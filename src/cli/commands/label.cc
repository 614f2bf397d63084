// SPDX-License-Identifier: Apache-2.0
// label and annotate: the same command for two maps of the metadata.
#include <fmt/core.h>

#include <array>
#include <map>
#include <optional>
#include <utility>

#include "base/strings.h"
#include "cli/arguments.h"
#include "cli/commands/flags.h"
#include "cli/commands/table.h"
#include "cli/failure.h"
#include "cli/objects/failures.h"
#include "cli/objects/fetch.h"
#include "cli/objects/targets.h"
#include "cli/render/output.h"
#include "cli/session/session.h"
#include "meta/json.h"

namespace berth::cli {
namespace {

using meta::Value;

struct MapWords {
  std::string_view field;    // "labels"
  std::string_view noun;     // "label"
  std::string_view done;     // "labeled"
  std::string_view nothing;  // "not labeled"
};
constexpr MapWords kLabels = {"labels", "label", "labeled", "not labeled"};
constexpr MapWords kAnnotations = {"annotations", "annotation", "annotated", "not annotated"};

// Values to set; nullopt removes the key.
using Changes = std::map<std::string, std::optional<std::string>>;

struct Wish {
  std::vector<std::string> objects;
  Changes changes;
};

// "KIND NAME... KEY=VALUE KEY-": what has an equals sign or ends in a dash is a change.
Result<Wish> ReadWish(const Arguments& arguments, const MapWords& words) {
  Wish out;
  for (const std::string& word : arguments.words()) {
    const size_t equals = word.find('=');
    const bool removes = equals == std::string::npos && word.ends_with('-') && word.size() > 1;
    if (equals == std::string::npos && !removes) {
      if (!out.changes.empty()) {
        return BadRequest(
            fmt::format("{} stands behind a change; objects come first", Quote(word)));
      }
      out.objects.push_back(word);
      continue;
    }
    std::string key = word.substr(0, removes ? word.size() - 1 : equals);
    if (key.empty()) return BadRequest(fmt::format("{}: the key is empty", Quote(word)));
    std::optional<std::string> value;
    if (!removes) value = word.substr(equals + 1);
    const auto [at, added] = out.changes.try_emplace(std::move(key), std::move(value));
    if (!added) {
      return BadRequest(fmt::format("the {} {} is given twice", words.noun, Quote(at->first)));
    }
  }
  return out;
}

// The part of `changes` that changes something; Conflict if a value would be replaced unasked.
Result<Value> Difference(const Value& object,
                         const Changes& changes,
                         const MapWords& words,
                         const Arguments& arguments) {
  const Value* map = object.Get({"metadata", words.field});
  Value out = Value::Object();
  for (const auto& [key, value] : changes) {
    const Value* now = map == nullptr ? nullptr : map->Find(key);
    if (!value) {
      if (now != nullptr) out.Set(key, Value());
      continue;
    }
    if (now != nullptr && now->is_string() && now->as_string() == *value) continue;
    if (now != nullptr && !arguments.Switch("overwrite")) {
      return Advise(
          Conflict(fmt::format(
              "{}: the {} {} already has a value", ObjectLabel(object), words.noun, Quote(key))),
          "--overwrite replaces it");
    }
    out.Set(key, *value);
  }
  return out;
}

Status ChangeObject(Session& session,
                    const Resource& resource,
                    const Value& object,
                    const Changes& changes,
                    const MapWords& words,
                    const Arguments& arguments) {
  TRY(Value difference, Difference(object, changes, words, arguments));
  const bool changed = !difference.members().empty();
  Value answer = object;
  const std::string& mode = arguments.Text("dry-run");
  if (changed && mode != "client") {
    Value metadata = Value::Object();
    // Without --overwrite, a value that someone else sets meanwhile is not replaced either.
    if (!arguments.Switch("overwrite")) {
      metadata.Set("resourceVersion",
                   std::string(object.GetString({"metadata", "resourceVersion"})));
    }
    metadata.Set(words.field, std::move(difference));
    Value patch = Value::Object();
    patch.Set("metadata", std::move(metadata));
    Api::Query query = {{"fieldManager", arguments.Text("field-manager")}};
    if (mode == "server") query.emplace_back("dryRun", "All");
    TRY(Api * api, session.GetApi());
    TRY(answer,
        api->Patch(PathOf(resource,
                          object.GetString({"metadata", "namespace"}),
                          object.GetString({"metadata", "name"})),
                   "application/merge-patch+json",
                   meta::WriteJson(patch),
                   std::move(query)));
  }
  TRY(const OutputFormat format, ParseOutputFormat(arguments.Text("output")));
  if (!format.is_table()) return PrintValue(session.environment(), format, answer);
  const std::string_view note =
      mode == "none" ? "" : (mode == "server" ? " (server dry run)" : " (dry run)");
  session.out() << fmt::format(
      "{} {}{}\n", ObjectLabel(object), changed ? words.done : words.nothing, note);
  return OkStatus();
}

void ListMap(Session& session, const Value& object, const MapWords& words) {
  session.out() << ObjectLabel(object) << "\n";
  const Value* map = object.Get({"metadata", words.field});
  if (map == nullptr || !map->is_object()) return;
  for (const Value::Member& member : map->members()) {
    const std::string value = member.value.is_string() ? member.value.as_string() : "";
    session.out() << fmt::format("  {}={}\n", Printable(member.key), Printable(value));
  }
}

Status RunMap(Session& session, const Arguments& arguments, const MapWords& words) {
  TRY(const Wish wish, ReadWish(arguments, words));
  if (wish.objects.empty()) {
    return Advise(BadRequest("no object is named"), "KIND NAME... KEY=VALUE");
  }
  const bool lists = arguments.Switch("list");
  if (wish.changes.empty() && !lists) {
    return Advise(BadRequest(fmt::format("no {} is given", words.noun)),
                  "KEY=VALUE sets one, KEY- removes it");
  }
  TRY(Api * api, session.GetApi());
  TRY(Discovery * discovery, session.GetDiscovery());
  TRY(const std::vector<Target> targets, FindTargets(*discovery, wish.objects));
  ListSelection selection{.label_selector = arguments.Text("selector"),
                          .field_selector = arguments.Text("field-selector")};
  if (!arguments.Switch("all-namespaces")) {
    TRY(selection.namespace_, session.Namespace());
  }
  const bool selects = arguments.Switch("all") || !selection.label_selector.empty() ||
                       !selection.field_selector.empty();
  Failures failures(session.environment());
  for (const Target& target : targets) {
    if (target.name.empty() && !selects) {
      return Advise(BadRequest(fmt::format("{}: no name is given", target.resource.plural)),
                    "name objects, or select with -l LABELS or --all");
    }
    std::vector<Value> objects;
    if (target.name.empty()) {
      TRY(FetchedList list, FetchList(*api, target.resource, selection));
      objects = std::move(list.items);
    } else {
      auto object = FetchObject(*api, target.resource, selection.namespace_, target.name);
      failures.Add(object.status());
      if (object.ok()) objects.push_back(*std::move(object));
    }
    for (const Value& object : objects) {
      if (lists) {
        ListMap(session, object, words);
      } else {
        failures.Add(
            ChangeObject(session, target.resource, object, wish.changes, words, arguments));
      }
    }
  }
  return failures.Outcome();
}

Status RunLabel(Session& session, const Arguments& arguments) {
  return RunMap(session, arguments, kLabels);
}
Status RunAnnotate(Session& session, const Arguments& arguments) {
  return RunMap(session, arguments, kAnnotations);
}

constexpr std::array kFlags = {
    Flag{.name = "overwrite", .help = "Replace values that are there."},
    Flag{.name = "list", .help = "Show what the objects have."},
    flags::kSelector,
    flags::kFieldSelector,
    flags::kAll,
    flags::kAllNamespaces,
    flags::kDryRun,
    flags::kOutput,
    flags::kFieldManager,
};

}  // namespace

Command LabelCommand() {
  return {.name = "label",
          .group = "Change",
          .usage = "KIND NAME... KEY=VALUE... [KEY-...]",
          .summary = "Set or remove labels",
          .examples =
              "berth label machine web tier=front\n"
              "berth label machine web tier=back --overwrite\n"
              "berth label machines --all tier-",
          .flags = kFlags,
          .words = Completion::kKindAndNames,
          .run = &RunLabel};
}

Command AnnotateCommand() {
  return {.name = "annotate",
          .group = "Change",
          .usage = "KIND NAME... KEY=VALUE... [KEY-...]",
          .summary = "Set or remove annotations",
          .examples =
              "berth annotate machine web note='the old one'\n"
              "berth annotate machine web note-",
          .flags = kFlags,
          .words = Completion::kKindAndNames,
          .run = &RunAnnotate};
}

}  // namespace berth::cli
