// SPDX-License-Identifier: Apache-2.0
// metav1.ObjectMeta and its parts. Every kind's struct begins with `ObjectMeta metadata`.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "meta/type.h"
#include "meta/value.h"

namespace berth::meta {

constexpr size_t kMaxAnnotationBytes = 256 * 1024;  // of all keys and values together

struct OwnerReference {
  std::string api_version;
  std::string kind;
  std::string name;
  std::string uid;
  std::optional<bool> controller;
  std::optional<bool> block_owner_deletion;
  bool operator==(const OwnerReference&) const = default;
};
BERTH_DESCRIBE_ATOMIC(
    OwnerReference,
    "io.k8s.apimachinery.pkg.apis.meta.v1.OwnerReference",
    "Names an object that this one belongs to. When the last owner is gone, this object is "
    "removed.",
    BERTH_FIELD(api_version, "apiVersion", "API version of the owner.", {.required = true}),
    BERTH_FIELD(kind, "kind", "Kind of the owner.", {.required = true}),
    BERTH_FIELD(name, "name", "Name of the owner.", {.required = true}),
    BERTH_FIELD(uid, "uid", "UID of the owner.", {.required = true}),
    BERTH_FIELD(controller, "controller", "Whether this owner manages the object."),
    BERTH_FIELD(block_owner_deletion,
                "blockOwnerDeletion",
                "Whether the owner, deleted in the foreground, waits for this object."))

struct ManagedFieldsEntry {
  std::string manager;
  std::string operation;
  std::string api_version;
  WallTime time;
  std::string fields_type;
  RawJson fields_v1;
  std::string subresource;
  bool operator==(const ManagedFieldsEntry&) const = default;
};
BERTH_DESCRIBE(ManagedFieldsEntry,
               "io.k8s.apimachinery.pkg.apis.meta.v1.ManagedFieldsEntry",
               "Which fields a client has set, for server-side apply.",
               BERTH_FIELD(manager, "manager", "Who set the fields."),
               BERTH_FIELD(operation, "operation", "Apply or Update."),
               BERTH_FIELD(api_version,
                           "apiVersion",
                           "API version that the fields are written in."),
               BERTH_FIELD(time, "time", "When the entry last changed."),
               BERTH_FIELD(fields_type, "fieldsType", "FieldsV1."),
               BERTH_FIELD(fields_v1, "fieldsV1", "The set of fields."),
               BERTH_FIELD(subresource, "subresource", "The subresource that was written."))

struct ObjectMeta {
  std::string name;
  std::string generate_name;
  std::string namespace_;
  std::string self_link;
  std::string uid;
  std::string resource_version;
  int64_t generation = 0;
  WallTime creation_timestamp;
  std::optional<WallTime> deletion_timestamp;
  std::optional<int64_t> deletion_grace_period_seconds;
  std::map<std::string, std::string> labels;
  std::map<std::string, std::string> annotations;
  std::vector<OwnerReference> owner_references;
  std::vector<std::string> finalizers;
  std::vector<ManagedFieldsEntry> managed_fields;
  bool operator==(const ObjectMeta&) const = default;
};
BERTH_DESCRIBE(
    ObjectMeta,
    "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta",
    "What every stored object has.",
    BERTH_FIELD(name, "name", "Unique within the namespace and kind; cannot change."),
    BERTH_FIELD(generate_name,
                "generateName",
                "Prefix of a name that the server makes when name is empty."),
    BERTH_FIELD(namespace_, "namespace", "The space in which the name is unique."),
    BERTH_FIELD(self_link, "selfLink", "Deprecated; never set."),
    BERTH_FIELD(uid, "uid", "Unique in time and space; set by the server."),
    BERTH_FIELD(resource_version,
                "resourceVersion",
                "Changes with every write; send it back to write only what you have read."),
    BERTH_FIELD(generation, "generation", "Counts changes of the desired state."),
    BERTH_FIELD(creation_timestamp, "creationTimestamp", "When the server made the object."),
    BERTH_FIELD(deletion_timestamp,
                "deletionTimestamp",
                "When deletion was asked for; the object goes when its finalizers are gone."),
    BERTH_FIELD(deletion_grace_period_seconds,
                "deletionGracePeriodSeconds",
                "Seconds that the object may take to end."),
    BERTH_FIELD(labels, "labels", "Keys and values to select objects by."),
    BERTH_FIELD(annotations,
                "annotations",
                "Keys and values for tools; not selectable.",
                {.longest = kMaxAnnotationBytes}),
    BERTH_FIELD(owner_references,
                "ownerReferences",
                "Objects that this one belongs to.",
                {.merge_key = "uid", .list_type = "map", .list_keys = {"uid"}}),
    BERTH_FIELD(finalizers,
                "finalizers",
                "Names of parties that must agree before the object goes.",
                {.list_type = "set"}),
    BERTH_FIELD(managed_fields,
                "managedFields",
                "Which client manages which fields.",
                {.list_type = "atomic"}))

}  // namespace berth::meta
