// SPDX-License-Identifier: Apache-2.0
#include "apiserver/registry/field_ownership.h"

#include <algorithm>
#include <utility>

#include "meta/apply/created.h"
#include "meta/apply/managers.h"
#include "meta/apply/trees.h"
#include "meta/json.h"

namespace berth::apiserver {

namespace {

using meta::Value;

constexpr std::string_view kStatus = "status";
// Where kubectl's client-side apply keeps what it applied last, and the manager that its
// server-side apply calls itself.
constexpr std::string_view kLastApplied = "kubectl.kubernetes.io/last-applied-configuration";
constexpr std::string_view kKubectl = "kubectl";

// metav1.Time has no fractions: what is stored must be what is shown.
WallTime WholeSeconds(WallTime now) { return WallTime::FromSeconds(now.seconds()); }

meta::Managers Remembered(const std::vector<meta::ManagedFieldsEntry>& entries) {
  Result<meta::Managers> managers = meta::ReadManagers(entries);
  return managers.ok() ? *std::move(managers) : meta::Managers();
}

// What a client sends of managers, under whichever name of the API version.
meta::Managers Sent(const meta::Scheme& scheme,
                    const std::string& api_version,
                    std::vector<meta::ManagedFieldsEntry> entries) {
  std::erase_if(entries, [&](const meta::ManagedFieldsEntry& entry) {
    return scheme.CanonicalApiVersion(entry.api_version) != api_version;
  });
  return Remembered(entries);
}

// A configuration says nothing about what the path that it was sent to does not write.
void DropUnwritable(const meta::KindInfo& kind, std::string_view subresource, Value& tree) {
  if (!meta::WritesStatus(subresource)) {
    if (kind.has_status) tree.Remove(kStatus);
    return;
  }
  std::erase_if(tree.members(), [](const Value::Member& member) {
    return member.key != kStatus && member.key != "metadata";
  });
  if (Value* metadata = tree.Find("metadata")) {
    std::erase_if(metadata->members(), [](const Value::Member& member) {
      return member.key != "name" && member.key != "namespace" && member.key != "uid" &&
             member.key != "resourceVersion";
    });
  }
}

Value WithoutTypeMeta(Value tree) {
  tree.Remove("apiVersion");
  tree.Remove("kind");
  return tree;
}

// Whether this is kubectl as it calls itself: whoever names another manager wants conflicts told.
bool IsKubectl(const ApplyRequest& request) {
  return request.manager == kKubectl && request.subresource.empty();
}

// The fields that kubectl's client-side apply has set and nobody has changed since: when it goes
// over to server-side apply, it takes them along.
meta::FieldSet AppliedByClient(const meta::KindInfo& kind, const Value& live) {
  const meta::TypeInfo& type = *kind.type;
  const std::string text(
      live.GetString({"metadata", "annotations", std::string_view(kLastApplied)}));
  if (text.empty()) return {};
  const auto last = meta::ParseJson(text);
  if (!last.ok() || !last->is_object()) return {};
  const Value tree = WithoutTypeMeta(*last);
  // Anybody can write anything into an annotation.
  meta::Object decoded(kind);
  if (!meta::FromValue(tree, type, decoded.data()).ok()) return {};
  const Value merged = meta::Merge(type, live, tree);
  Result<meta::FieldSet> fields = meta::FieldsOf(type, tree);
  if (!fields.ok()) return {};
  const meta::Differences differences = meta::Compare(type, live, merged);
  fields->Subtract(differences.added);
  fields->Subtract(differences.modified);
  return *std::move(fields);
}

// kubectl may go back to client-side apply: then its annotation must be what it applied last.
void RefreshLastApplied(const ApplyRequest& request, const Value& live, Value& tree) {
  if (!IsKubectl(request)) return;
  if (live.GetString({"metadata", "annotations", std::string_view(kLastApplied)}).empty()) return;
  if (Value* metadata = tree.Find("metadata")) {
    Value* annotations = metadata->Find("annotations");
    if (annotations == nullptr) annotations = &metadata->Set("annotations", Value::Object());
    annotations->Set(kLastApplied, meta::WriteJson(request.configuration) + "\n");
  }
}

// All of a new object is its creator's.
std::vector<meta::ManagedFieldsEntry> CreatorOf(const meta::Object& object,
                                                const WriteContext& context,
                                                std::string api_version,
                                                WallTime now) {
  meta::RawJson fields = meta::CreatedFields(*object.kind().type, object.data());
  if (fields.text.empty()) return {};
  std::vector<meta::ManagedFieldsEntry> entries;
  entries.push_back({.manager = context.field_manager,
                     .operation = "Update",
                     .api_version = std::move(api_version),
                     .time = WholeSeconds(now),
                     .fields_type = "FieldsV1",
                     .fields_v1 = std::move(fields),
                     .subresource = {}});
  return entries;
}

}  // namespace

std::string ManagerOf(std::string_view user_agent) {
  const size_t length = std::min(user_agent.find('/'), meta::kMaxManagerName);
  std::string name(user_agent.substr(0, length));
  std::erase_if(name, [](char c) { return c < 0x20 || c >= 0x7f; });  // not ASCII, too
  return name.empty() ? "unknown" : name;
}

void RecordOwnership(const meta::Scheme& scheme,
                     const meta::Object* before,
                     const std::vector<meta::ManagedFieldsEntry>& sent,
                     const WriteContext& context,
                     WallTime now,
                     meta::Object& after) {
  const meta::KindInfo& kind = after.kind();
  std::string api_version = scheme.ApiVersionOf(kind);
  std::vector<meta::ManagedFieldsEntry>& entries = after.metadata().managed_fields;
  if (before == nullptr) {
    entries = CreatorOf(after, context, std::move(api_version), now);
    return;
  }
  const bool may_say = context.managed_subresource.empty();
  if (may_say && meta::IsReset(sent)) {
    entries.clear();
    return;
  }
  const bool says = may_say && !sent.empty() && sent != before->metadata().managed_fields;
  if (before->metadata().managed_fields.empty() && !says) return;
  meta::Managers managers;
  if (says) managers = Sent(scheme, api_version, sent);
  if (managers.empty()) managers = Remembered(before->metadata().managed_fields);
  meta::RecordUpdate(*kind.type,
                     meta::TreeOf(*kind.type, before->data()),
                     meta::TreeOf(*kind.type, after.data()),
                     {.name = context.field_manager,
                      .operation = meta::ManagerOperation::kUpdate,
                      .subresource = context.managed_subresource},
                     WholeSeconds(now),
                     managers);
  entries = meta::WriteManagers(managers, api_version);
}

Result<meta::Object> ApplyTo(const meta::Scheme& scheme,
                             const meta::KindInfo& kind,
                             const meta::Object* live,
                             const ApplyRequest& request,
                             WallTime now) {
  const meta::TypeInfo& type = *kind.type;
  const Value tree = live == nullptr ? Value::Object() : meta::TreeOf(type, live->data());
  Value configuration = WithoutTypeMeta(request.configuration);
  DropUnwritable(kind, request.subresource, configuration);
  meta::Managers managers;
  if (live != nullptr) managers = Remembered(live->metadata().managed_fields);
  if (live != nullptr && managers.empty()) {
    meta::RecordUpdate(type,
                       Value::Object(),
                       tree,
                       {.name = std::string(meta::kBeforeFirstApply)},
                       WholeSeconds(now),
                       managers);
  }
  const meta::Application application{
      .type = &type,
      .api_version = scheme.ApiVersionOf(kind),
      .manager = request.manager,
      .subresource = request.subresource,
      .conflicts = request.conflicts,
      .now = WholeSeconds(now),
      .takeover = IsKubectl(request) ? AppliedByClient(kind, tree) : meta::FieldSet()};
  TRY(meta::Applied applied, meta::Apply(application, tree, configuration, std::move(managers)));
  RefreshLastApplied(request, tree, applied.tree);
  meta::Object object(kind);
  TRY_STATUS(meta::FromValue(applied.tree, type, object.data()));
  object.metadata().managed_fields = meta::WriteManagers(applied.managers, application.api_version);
  return object;
}

}  // namespace berth::apiserver
