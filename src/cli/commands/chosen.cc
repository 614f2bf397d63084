// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/chosen.h"

#include <fmt/core.h>

#include <string>
#include <utility>

#include "cli/failure.h"
#include "cli/objects/fetch.h"
#include "cli/objects/targets.h"
#include "meta/value.h"

namespace berth::cli {
namespace {

using meta::Value;

Result<ListSelection> SelectionOf(Session& session, const Arguments& arguments) {
  ListSelection out{.label_selector = arguments.Text("selector"),
                    .field_selector = arguments.Text("field-selector")};
  if (!arguments.Switch("all-namespaces")) {
    TRY(out.namespace_, session.Namespace());
  }
  return out;
}

}  // namespace

Result<std::vector<Manifest>> ManifestsOf(Session& session, const Arguments& arguments) {
  const auto folders = arguments.Switch("recursive") ? Folders::kRecursive : Folders::kTopLevel;
  return ReadManifests(arguments.List("filename"), folders, *session.environment().in);
}

Result<std::vector<ObjectAddress>> ChosenByFiles(Session& session, const Arguments& arguments) {
  TRY(Discovery * discovery, session.GetDiscovery());
  TRY(const std::string space, session.Namespace());
  TRY(const std::vector<Manifest> manifests, ManifestsOf(session, arguments));
  std::vector<ObjectAddress> out;
  for (const auto& [object, source] : manifests) {
    std::string name(object.GetString({"metadata", "name"}));
    if (name.empty()) return BadRequest(fmt::format("{}: metadata.name is missing", source));
    TRY(Resource resource,
        discovery->FindByKind(object.GetString({"apiVersion"}), object.GetString({"kind"})));
    const std::string_view own = object.GetString({"metadata", "namespace"});
    out.push_back({.resource = std::move(resource),
                   .namespace_ = own.empty() ? space : std::string(own),
                   .name = std::move(name)});
  }
  return out;
}

Result<std::vector<ObjectAddress>> ChosenByWords(Session& session, const Arguments& arguments) {
  if (arguments.words().empty()) {
    return Advise(BadRequest("nothing is named"),
                  arguments.Declares("filename") ? "name a KIND and a NAME, or give -f FILE"
                                                 : "name a KIND and a NAME");
  }
  TRY(Api * api, session.GetApi());
  TRY(Discovery * discovery, session.GetDiscovery());
  TRY(const ListSelection selection, SelectionOf(session, arguments));
  TRY(const std::vector<Target> targets, FindTargets(*discovery, arguments.words()));
  const bool selects = arguments.Switch("all") || !selection.label_selector.empty() ||
                       !selection.field_selector.empty();
  std::vector<ObjectAddress> out;
  for (const Target& target : targets) {
    if (!target.name.empty()) {
      if (selects) return BadRequest("a name and a selector or --all cannot be given together");
      out.push_back({target.resource, selection.namespace_, target.name});
      continue;
    }
    if (!selects) {
      return Advise(BadRequest(fmt::format("{}: no name is given", target.resource.plural)),
                    "name objects, or select with -l LABELS or --all");
    }
    TRY(const FetchedList list, FetchList(*api, target.resource, selection));
    for (const Value& item : list.items) {
      out.push_back({target.resource,
                     std::string(item.GetString({"metadata", "namespace"})),
                     std::string(item.GetString({"metadata", "name"}))});
    }
  }
  return out;
}

}  // namespace berth::cli
