// SPDX-License-Identifier: Apache-2.0
// metadata.managedFields: who has set which fields, by apply or by any other write.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "meta/apply/field_set.h"
#include "meta/apply/trees.h"
#include "meta/object_meta.h"
#include "meta/type.h"
#include "meta/value.h"

namespace berth::meta {

// Beyond this many managers that update, the oldest become one, kAncientManager: Kubernetes' own
// number.
constexpr size_t kMaxUpdateManagers = 10;
constexpr std::string_view kAncientManager = "ancient-changes";
// Who applies is never forgotten, so beyond this many another one is refused.
constexpr size_t kMaxApplyManagers = 100;
// The length of a manager's name.
constexpr size_t kMaxManagerName = 128;
// Whom an object's fields belong to if nobody was recorded before the first apply.
constexpr std::string_view kBeforeFirstApply = "before-first-apply";

enum class ManagerOperation : uint8_t { kApply, kUpdate };

struct ManagerId {
  std::string name;
  ManagerOperation operation = ManagerOperation::kUpdate;
  std::string subresource;  // "" or "status", "approval", "scale"
  auto operator<=>(const ManagerId&) const = default;
};

struct ManagedFields {
  FieldSet fields;
  WallTime time;
};
using Managers = std::map<ManagerId, ManagedFields>;

// One version of each kind is served, so the entries' apiVersion says nothing; whoever reads them
// from a client checks it. BadRequest if an entry is malformed.
Result<Managers> ReadManagers(const std::vector<ManagedFieldsEntry>& entries);
// In Kubernetes' order: those that apply first, the oldest first.
std::vector<ManagedFieldsEntry> WriteManagers(const Managers& managers,
                                              std::string_view api_version);
// Whether a client asks to forget all managers: one empty entry. (An empty list asks for it too,
// but has no form of its own in ObjectMeta.)
bool IsReset(const std::vector<ManagedFieldsEntry>& entries);

// An object as RecordUpdate and Apply want it: without managedFields.
Value TreeOf(const TypeInfo& type, const void* object);

// Whether a field of metadata is the server's, so that nobody owns it: names, times, versions.
bool IsServersOwn(std::string_view metadata_field);
// Whether a subresource writes the status, and nothing else: "status", and "approval" of requests
// for certificates.
bool WritesStatus(std::string_view subresource);
// Takes out what nobody owns: names, times and versions that are the server's, and what cannot be
// written through the subresource.
void DropUnowned(std::string_view subresource, FieldSet& fields);
// Compare without that.
Differences OwnableDifferences(const TypeInfo& type,
                               std::string_view subresource,
                               const Value& before,
                               const Value& after);

// What a write other than apply has changed belongs to its manager from now on, and to nobody else.
// `before` is {} for a new object. More than kMaxOwnedFields are not remembered.
void RecordUpdate(const TypeInfo& type,
                  const Value& before,
                  const Value& after,
                  const ManagerId& manager,
                  WallTime now,
                  Managers& managers);

}  // namespace berth::meta
