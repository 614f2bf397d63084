// SPDX-License-Identifier: Apache-2.0
#include "meta/apply/managers.h"

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

#include "base/strings.h"
#include "meta/apply/fields_v1.h"
#include "meta/json.h"

namespace berth::meta {

namespace {

constexpr std::string_view kApplyName = "Apply";
constexpr std::string_view kUpdateName = "Update";
constexpr std::string_view kFieldsType = "FieldsV1";
constexpr std::string_view kStatus = "status";

constexpr std::array<std::string_view, 11> kServersMetadata = {"name",
                                                               "generateName",
                                                               "namespace",
                                                               "creationTimestamp",
                                                               "deletionTimestamp",
                                                               "deletionGracePeriodSeconds",
                                                               "selfLink",
                                                               "uid",
                                                               "generation",
                                                               "managedFields",
                                                               "resourceVersion"};

FieldSet ServersOwn() {
  FieldSet set;
  const std::string metadata = FieldElement("metadata");
  set.Insert({metadata});
  set.Insert({FieldElement("apiVersion")});
  set.Insert({FieldElement("kind")});
  for (const std::string_view name : kServersMetadata) set.Insert({metadata, FieldElement(name)});
  return set;
}

// The oldest first; equal ones by name.
using ByAge = std::vector<std::pair<WallTime, ManagerId>>;

// Makes one entry of the oldest updates until few enough are left.
void FoldOldUpdates(Managers& managers) {
  ByAge updates;
  for (const auto& [id, managed] : managers) {
    if (id.operation == ManagerOperation::kUpdate) updates.emplace_back(managed.time, id);
  }
  if (updates.size() <= kMaxUpdateManagers) return;
  std::ranges::sort(updates);
  const size_t folded = updates.size() - kMaxUpdateManagers + 1;
  ManagedFields ancient;
  for (size_t i = 0; i < folded; ++i) {
    const auto found = managers.find(updates[i].second);
    ancient.fields.Unite(found->second.fields);
    ancient.time = found->second.time;
    managers.erase(found);
  }
  // Its own entry may be among those that stay, if it was written to since.
  const ManagerId id{.name = std::string(kAncientManager)};
  ManagedFields& kept = managers[id];
  kept.fields.Unite(ancient.fields);
  kept.time = std::max(kept.time, ancient.time);
  if (kept.fields.size() > kMaxOwnedFields) managers.erase(id);
}

}  // namespace

Result<Managers> ReadManagers(const std::vector<ManagedFieldsEntry>& entries) {
  Managers managers;
  for (const ManagedFieldsEntry& entry : entries) {
    if (entry.operation != kApplyName && entry.operation != kUpdateName) {
      return BadRequest("metadata.managedFields: operation " + Quote(entry.operation) +
                        " is neither Apply nor Update");
    }
    if (entry.fields_type != kFieldsType) {
      return BadRequest("metadata.managedFields: fieldsType " + Quote(entry.fields_type) +
                        " is not FieldsV1");
    }
    if (entry.manager.size() > kMaxManagerName) {
      return BadRequest("metadata.managedFields: a manager's name has " +
                        std::to_string(entry.manager.size()) + " characters, the limit is " +
                        std::to_string(kMaxManagerName));
    }
    TRY(const Value tree, ParseJson(entry.fields_v1.text.empty() ? "null" : entry.fields_v1.text));
    TRY(FieldSet fields, ReadFieldsV1(tree));
    if (fields.empty()) continue;
    ManagedFields& managed =
        managers[{.name = entry.manager,
                  .operation = entry.operation == kApplyName ? ManagerOperation::kApply
                                                             : ManagerOperation::kUpdate,
                  .subresource = entry.subresource}];
    managed.fields.Unite(fields);
    managed.time = std::max(managed.time, entry.time);
  }
  return managers;
}

std::vector<ManagedFieldsEntry> WriteManagers(const Managers& managers,
                                              std::string_view api_version) {
  std::vector<ManagedFieldsEntry> entries;
  entries.reserve(managers.size());
  for (const auto& [id, managed] : managers) {
    entries.push_back({.manager = id.name,
                       .operation = std::string(
                           id.operation == ManagerOperation::kApply ? kApplyName : kUpdateName),
                       .api_version = std::string(api_version),
                       .time = managed.time,
                       .fields_type = std::string(kFieldsType),
                       .fields_v1 = {WriteJson(WriteFieldsV1(managed.fields))},
                       .subresource = id.subresource});
  }
  std::ranges::sort(entries, {}, [](const ManagedFieldsEntry& entry) {
    return std::tuple(entry.operation, entry.time, entry.manager, entry.subresource);
  });
  return entries;
}

bool IsReset(const std::vector<ManagedFieldsEntry>& entries) {
  return entries.size() == 1 && entries.front() == ManagedFieldsEntry{};
}

Value TreeOf(const TypeInfo& type, const void* object) {
  Value tree = ToValue(type, object);
  if (Value* metadata = tree.Find("metadata")) metadata->Remove("managedFields");
  return tree;
}

bool IsServersOwn(std::string_view metadata_field) {
  return std::ranges::find(kServersMetadata, metadata_field) != kServersMetadata.end();
}

bool WritesStatus(std::string_view subresource) {
  return subresource == kStatus || subresource == "approval";
}

void DropUnowned(std::string_view subresource, FieldSet& fields) {
  static const FieldSet kServersOwn = ServersOwn();
  const std::string status = FieldElement(kStatus);
  if (WritesStatus(subresource)) {
    fields.KeepTree(status);
  } else {
    fields.DropTree(status);
  }
  fields.Subtract(kServersOwn);
}

Differences OwnableDifferences(const TypeInfo& type,
                               std::string_view subresource,
                               const Value& before,
                               const Value& after) {
  Differences differences = Compare(type, before, after);
  DropUnowned(subresource, differences.added);
  DropUnowned(subresource, differences.modified);
  DropUnowned(subresource, differences.removed);
  return differences;
}

void RecordUpdate(const TypeInfo& type,
                  const Value& before,
                  const Value& after,
                  const ManagerId& manager,
                  WallTime now,
                  Managers& managers) {
  Differences differences = OwnableDifferences(type, manager.subresource, before, after);
  if (differences.empty()) return;
  FieldSet set = std::move(differences.added);
  set.Unite(differences.modified);
  for (auto at = managers.begin(); at != managers.end();) {
    at->second.fields.Subtract(set);
    at->second.fields.Subtract(differences.removed);
    at = at->second.fields.empty() ? managers.erase(at) : std::next(at);
  }
  if (set.empty()) return;
  ManagedFields& managed = managers[manager];
  managed.fields.Unite(set);
  managed.time = now;
  if (managed.fields.size() > kMaxOwnedFields) managers.erase(manager);
  FoldOldUpdates(managers);
}

}  // namespace berth::meta
