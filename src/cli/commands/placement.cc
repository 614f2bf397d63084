// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/placement.h"

#include <fmt/core.h>

#include <utility>

#include "base/strings.h"
#include "cli/failure.h"
#include "cli/objects/managers.h"
#include "cli/render/output.h"

namespace berth::cli {

using meta::Value;

Result<Placement> PlaceManifest(Session& session, const Manifest& manifest) {
  TRY(Discovery * discovery, session.GetDiscovery());
  Placement out;
  out.object = manifest.object;
  TRY(out.resource,
      discovery->FindByKind(manifest.object.GetString({"apiVersion"}),
                            manifest.object.GetString({"kind"})));
  out.name = manifest.object.GetString({"metadata", "name"});
  if (!out.resource.namespaced) return out;
  TRY(const Connection connection, session.GetConnection());
  out.namespace_ = manifest.object.GetString({"metadata", "namespace"});
  if (out.namespace_.empty()) {
    out.namespace_ = connection.namespace_;
    out.object.Find("metadata")->Set("namespace", out.namespace_);
  } else if (session.namespace_was_given() && out.namespace_ != connection.namespace_) {
    return Advise(BadRequest(fmt::format("{} is in namespace {}, but --namespace says {}",
                                         ObjectLabel(manifest.object),
                                         Quote(out.namespace_),
                                         Quote(connection.namespace_))),
                  "leave out --namespace, or change the manifest");
  }
  return out;
}

std::string FieldValidationOf(const Arguments& arguments) {
  const std::string& mode = arguments.Text("validate");
  if (mode == "warn") return "Warn";
  return mode == "ignore" || mode == "false" ? "Ignore" : "Strict";
}

Api::Query WriteQuery(const Arguments& arguments) {
  Api::Query out = {{"fieldManager", arguments.Text("field-manager")}};
  if (arguments.Text("dry-run") == "server") out.emplace_back("dryRun", "All");
  return out;
}

Status PrintOutcome(Session& session,
                    const Arguments& arguments,
                    const Value& object,
                    std::string_view outcome) {
  TRY(const OutputFormat format, ParseOutputFormat(arguments.Text("output")));
  if (!format.is_table()) {
    Value shown = object;
    HideManagers(shown);
    return PrintValue(session.environment(), format, shown);
  }
  const std::string& mode = arguments.Text("dry-run");
  const std::string_view note =
      mode == "none" ? "" : (mode == "server" ? " (server dry run)" : " (dry run)");
  session.out() << fmt::format("{} {}{}\n", ObjectLabel(object), outcome, note);
  session.out().flush();
  return OkStatus();
}

Status CreateObject(Session& session, const Arguments& arguments, Placement placement) {
  Value created = placement.object;
  if (arguments.Text("dry-run") != "client") {
    TRY(Api * api, session.GetApi());
    Api::Query query = WriteQuery(arguments);
    query.emplace_back("fieldValidation", FieldValidationOf(arguments));
    TRY(created,
        api->Post(
            PathOf(placement.resource, placement.namespace_), placement.object, std::move(query)));
  }
  return PrintOutcome(session, arguments, created, "created");
}

}  // namespace berth::cli
