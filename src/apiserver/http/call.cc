// SPDX-License-Identifier: Apache-2.0
#include "apiserver/http/call.h"

#include <algorithm>

#include "base/strings.h"
#include "meta/apply/managers.h"
#include "meta/field_errors.h"

namespace berth::apiserver {
namespace {

// events.k8s.io names the fields of the one stored Event differently.
std::string StoredFieldSelector(const meta::KindInfo& kind, std::string_view text) {
  if (kind.view == nullptr || text.empty()) return std::string(text);
  std::vector<std::string> terms;
  for (const auto term : Split(text, ',')) {
    std::string stored(term);
    if (stored.starts_with("regarding.")) {
      stored.replace(0, std::string_view("regarding").size(), "involvedObject");
    } else if (stored.starts_with("reportingController")) {
      stored.replace(0, std::string_view("reportingController").size(), "reportingComponent");
    }
    terms.push_back(std::move(stored));
  }
  return Join(terms, ",");
}

bool IsSelectable(const meta::KindInfo& kind, std::string_view field) {
  if (field == "metadata.name") return true;
  if (field == "metadata.namespace") return kind.scope == meta::Scope::kNamespaced;
  return std::ranges::find(kind.field_selectors, field) != kind.field_selectors.end();
}

bool IsPrintable(char c) { return c < 0 || (c >= 0x20 && c != 0x7f); }

// As the request names it, or the first word of its User-Agent.
Result<std::string> FieldManager(const Call& call) {
  const auto manager = call.query.Get("fieldManager");
  if (manager.empty()) return ManagerOf(call.http.headers.Get("User-Agent"));
  meta::FieldErrors errors;
  const meta::FieldPath path("fieldManager");
  if (manager.size() > meta::kMaxManagerName) {
    errors.TooLong(path, manager.size(), meta::kMaxManagerName);
  }
  if (!IsValidUtf8(manager) || !std::ranges::all_of(manager, IsPrintable)) {
    errors.Invalid(path, Printable(manager), "should contain printable characters");
  }
  TRY_STATUS(errors.ToStatus(
      call.info.verb == "patch" ? "PatchOptions" : "UpdateOptions", "meta.k8s.io", ""));
  return std::string(manager);
}

}  // namespace

Result<DryRun> ReadDryRun(const Call& call) {
  if (!call.query.Has("dryRun")) return DryRun::kNo;
  for (const auto value : call.query.GetAll("dryRun")) {
    if (value != "All")
      return BadRequest("query parameter dryRun=" + Quote(value) + " is not \"All\"");
  }
  return DryRun::kYes;
}

Result<WriteContext> ReadWriteContext(Call& call) {
  TRY(const DryRun dry_run, ReadDryRun(call));
  WriteContext context;
  context.identity = call.identity;
  context.dry_run = dry_run;
  context.ownership = Ownership::kUpdated;
  TRY(context.field_manager, FieldManager(call));
  context.managed_subresource = call.info.subresource;
  context.warnings = &call.warnings;
  // What else the status holds is not approval's to change: its guard sees to that.
  if (meta::WritesStatus(call.info.subresource)) context.subresource = Subresource::kStatus;
  if (call.info.subresource == "finalize") context.subresource = Subresource::kFinalize;
  return context;
}

Result<ApplyRequest> ReadApplyRequest(const Call& call) {
  meta::FieldErrors errors;
  const auto manager = call.query.Get("fieldManager");
  if (manager.empty()) {
    errors.Required(meta::FieldPath("fieldManager"), "is required for apply patch");
  }
  TRY_STATUS(errors.ToStatus("PatchOptions", "meta.k8s.io", ""));
  TRY(const bool is_forced, QueryBool(call.query, "force"));
  return ApplyRequest{.manager = std::string(manager),
                      .subresource = call.info.subresource,
                      .conflicts = is_forced ? meta::Conflicts::kForced : meta::Conflicts::kRefused,
                      .configuration = {}};
}

Result<Selection> ReadSelection(const Call& call) {
  const meta::KindInfo& kind = *call.info.kind;
  const meta::KindInfo& stored = kind.view != nullptr ? *kind.view->stored : kind;
  Selection selection;
  selection.namespace_ = call.info.namespace_;
  TRY(selection.labels, meta::Selector::Parse(call.query.Get("labelSelector")));
  TRY(selection.fields,
      meta::FieldSelector::Parse(StoredFieldSelector(kind, call.query.Get("fieldSelector"))));
  for (const auto& term : selection.fields.terms()) {
    if (!IsSelectable(stored, term.field)) {
      return BadRequest(
          "field label not supported: " + term.field + " (" + std::string(kind.kind) +
          " selects by metadata.name" +
          (stored.field_selectors.empty()
               ? std::string()
               : ", " +
                     Join({stored.field_selectors.begin(), stored.field_selectors.end()}, ", ")) +
          ")");
    }
  }
  return selection;
}

Status CheckAgainstPath(const Call& call, meta::Object& object) {
  auto& metadata = object.metadata();
  if (call.info.kind->scope == meta::Scope::kNamespaced) {
    if (metadata.namespace_.empty()) metadata.namespace_ = call.info.namespace_;
    if (metadata.namespace_ != call.info.namespace_) {
      return BadRequest(
          "the namespace of the provided object does not match the namespace sent on the "
          "request: " +
          Quote(metadata.namespace_) + " is not " + Quote(call.info.namespace_));
    }
  } else if (!metadata.namespace_.empty()) {
    return BadRequest(std::string(call.info.kind->kind) +
                      " is not namespaced: metadata.namespace is " + Quote(metadata.namespace_));
  }
  if (!call.info.name.empty()) {
    if (metadata.name.empty()) metadata.name = call.info.name;
    if (metadata.name != call.info.name) {
      return BadRequest("the name of the object (" + metadata.name +
                        ") does not match the name on the URL (" + call.info.name + ")");
    }
  }
  return OkStatus();
}

ErrorObject ObjectOf(const Call& call) {
  return {.group = call.info.group, .kind = call.info.resource, .name = call.info.name, .uid = {}};
}

}  // namespace berth::apiserver
