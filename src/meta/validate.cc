// SPDX-License-Identifier: Apache-2.0
#include "meta/validate.h"

#include <algorithm>

#include "base/strings.h"
#include "meta/internal/place.h"
#include "meta/names.h"
#include "meta/reflect.h"

namespace berth::meta {
namespace {

using internal::Place;

constexpr std::string_view kImmutable = "field is immutable";

FieldPath PathOf(const Place& place) { return FieldPath(place.ToString()); }

void CheckAllowed(const Field& field,
                  const std::string& value,
                  const Place& place,
                  FieldErrors& errors) {
  if (value.empty()) return;
  std::vector<std::string_view> allowed;
  for (const auto candidate : field.options.values) {
    if (candidate == value) return;
    if (!candidate.empty()) allowed.push_back(candidate);
  }
  if (!allowed.empty()) errors.NotSupported(PathOf(place), value, allowed);
}

class Walk {
 public:
  explicit Walk(FieldErrors& errors) : errors_(errors) {}

  void Struct(const TypeInfo& type, const void* value, const Place& place) {
    for (const Field& field : type.fields) {
      const void* at = FieldAt(value, field);
      if (field.options.inlined) {
        Struct(*field.type, at, place);
        continue;
      }
      if (field.type == &TypeInfoOf<ObjectMeta>() && place.parent == nullptr) continue;
      const Place field_place{.parent = &place, .step = Place::Step::kField, .name = field.name};
      if (field.options.required && IsEmpty(*field.type, at)) {
        errors_.Required(PathOf(field_place));
        continue;
      }
      Any(field, *field.type, at, field_place);
    }
  }

 private:
  void Any(const Field& field, const TypeInfo& type, const void* value, const Place& place) {
    switch (type.kind) {
      case TypeKind::kString: String(field, *static_cast<const std::string*>(value), place); break;
      case TypeKind::kStruct: Struct(type, value, place); break;
      case TypeKind::kOptional:
        if (const void* held = type.optional->get(value); held != nullptr) {
          Any(field, *type.element, held, place);
        }
        break;
      case TypeKind::kList: {
        Place item{.parent = &place, .step = Place::Step::kIndex};
        for (; item.index < type.list->size(value); ++item.index) {
          Any(field, *type.element, type.list->at(value, item.index), item);
        }
        break;
      }
      case TypeKind::kMap: Map(field, type, value, place); break;
      default: break;
    }
  }

  void String(const Field& field, const std::string& value, const Place& place) {
    if (value.size() > field.options.longest) {
      errors_.TooLong(PathOf(place), value.size(), field.options.longest);
    } else if (!field.options.values[0].empty()) {
      CheckAllowed(field, value, place, errors_);
    }
  }

  void Map(const Field& field, const TypeInfo& type, const void* value, const Place& place) {
    struct Context {
      Walk& walk;
      const Field& field;
      const TypeInfo& element;
      const Place& place;
    } context{*this, field, *type.element, place};
    type.map->for_each(value, &context, [](void* opaque, const std::string& key, const void* item) {
      const auto& at = *static_cast<const Context*>(opaque);
      if (key.size() > kMaxStringBytes) {
        return at.walk.errors_.TooLong(PathOf(at.place), key.size(), kMaxStringBytes);
      }
      const Place item_place{.parent = &at.place, .step = Place::Step::kKey, .name = key};
      at.walk.Any(at.field, at.element, item, item_place);
    });
  }

  FieldErrors& errors_;
};

// Of metadata, which is not walked.
void CheckLength(const FieldPath& path, std::string_view text, FieldErrors& errors) {
  if (text.size() > kMaxStringBytes) errors.TooLong(path, text.size(), kMaxStringBytes);
}

void ValidateNames(const KindInfo& kind,
                   const ObjectMeta& metadata,
                   const FieldPath& path,
                   FieldErrors& errors) {
  if (!metadata.generate_name.empty()) {
    CheckLength(path.Child("generateName"), metadata.generate_name, errors);
    AddProblems(path.Child("generateName"),
                metadata.generate_name,
                NamePrefixProblems(kind.name_rule, metadata.generate_name),
                errors);
  }
  if (metadata.name.empty()) {
    errors.Required(path.Child("name"), "name or generateName is required");
  } else {
    AddProblems(
        path.Child("name"), metadata.name, NameProblems(kind.name_rule, metadata.name), errors);
  }
  if (kind.scope == Scope::kCluster) {
    if (!metadata.namespace_.empty()) {
      errors.Forbidden(path.Child("namespace"), "not allowed on this type");
    }
  } else if (metadata.namespace_.empty()) {
    errors.Required(path.Child("namespace"));
  } else {
    AddProblems(path.Child("namespace"),
                metadata.namespace_,
                DnsLabelProblems(metadata.namespace_),
                errors);
  }
}

void ValidateAnnotations(const ObjectMeta& metadata, const FieldPath& path, FieldErrors& errors) {
  size_t bytes = 0;
  for (const auto& [key, value] : metadata.annotations) {
    // Qualified names, but case does not matter.
    AddProblems(path, key, QualifiedNameProblems(ToLower(key)), errors);
    bytes += key.size() + value.size();
  }
  if (bytes > kMaxAnnotationBytes) errors.TooLong(path, bytes, kMaxAnnotationBytes);
}

void ValidateOwners(const ObjectMeta& metadata, const FieldPath& path, FieldErrors& errors) {
  std::string controller;
  for (const auto& owner : metadata.owner_references) {
    const size_t slash = owner.api_version.find('/');
    const auto version = slash == std::string::npos
                             ? std::string_view(owner.api_version)
                             : std::string_view(owner.api_version).substr(slash + 1);
    const auto need = [&](std::string_view field, std::string_view value, std::string_view why) {
      errors.Invalid(path.Child(field), value, why);
    };
    CheckLength(path.Child("apiVersion"), owner.api_version, errors);
    CheckLength(path.Child("kind"), owner.kind, errors);
    CheckLength(path.Child("name"), owner.name, errors);
    CheckLength(path.Child("uid"), owner.uid, errors);
    if (version.empty() || version.contains('/')) {
      need("apiVersion", owner.api_version, "version must not be empty");
    }
    if (owner.kind.empty()) need("kind", owner.kind, "kind must not be empty");
    if (owner.name.empty()) need("name", owner.name, "name must not be empty");
    if (owner.uid.empty()) need("uid", owner.uid, "uid must not be empty");
    if (owner.kind == "Event" && owner.api_version == "v1") {
      errors.Invalid(path, owner.kind, "/v1, Kind=Event is disallowed from being an owner");
    }
    if (!owner.controller.value_or(false)) continue;
    std::string name = owner.kind;
    name.append("/").append(owner.name);
    if (controller.empty()) {
      controller = name;
    } else {
      std::string why =
          "Only one reference can have Controller set to true. Found \"true\" in references for ";
      why.append(controller).append(" and ").append(name);
      errors.Invalid(path, name, why);
    }
  }
}

void ValidateFinalizers(const ObjectMeta& metadata, const FieldPath& path, FieldErrors& errors) {
  const auto has = [&](std::string_view name) {
    return std::ranges::find(metadata.finalizers, name) != metadata.finalizers.end();
  };
  for (const auto& finalizer : metadata.finalizers) {
    AddProblems(path, finalizer, QualifiedNameProblems(finalizer), errors);
  }
  if (has("orphan") && has("foregroundDeletion")) {
    errors.Invalid(path,
                   Join(metadata.finalizers, ","),
                   "finalizer orphan and foregroundDeletion cannot be both set");
  }
}

std::string TimeText(const std::optional<WallTime>& time) {
  return time ? FormatRfc3339(*time) : std::string();
}

}  // namespace

void ValidateFields(const TypeInfo& type, const void* value, FieldErrors& errors) {
  const Place root;
  Walk(errors).Struct(type, value, root);
}

void ValidateMetadata(const KindInfo& kind, const ObjectMeta& metadata, FieldErrors& errors) {
  const FieldPath path("metadata");
  ValidateNames(kind, metadata, path, errors);
  if (metadata.generation < 0) {
    errors.Invalid(
        path.Child("generation"), metadata.generation, "must be greater than or equal to 0");
  }
  ValidateLabels(path.Child("labels"), metadata.labels, errors);
  ValidateAnnotations(metadata, path.Child("annotations"), errors);
  ValidateOwners(metadata, path.Child("ownerReferences"), errors);
  ValidateFinalizers(metadata, path.Child("finalizers"), errors);
}

void ValidateObject(const Object& object, FieldErrors& errors) {
  const KindInfo& kind = object.kind();
  ValidateMetadata(kind, object.metadata(), errors);
  ValidateFields(*kind.type, object.data(), errors);
  if (kind.validate != nullptr) kind.validate(object.data(), errors);
}

void ValidateMetadataUpdate(const ObjectMeta& now, const ObjectMeta& before, FieldErrors& errors) {
  const FieldPath path("metadata");
  if (before.deletion_timestamp) {
    std::vector<std::string> added;
    for (const auto& finalizer : now.finalizers) {
      if (std::ranges::find(before.finalizers, finalizer) == before.finalizers.end()) {
        added.push_back(Quote(finalizer));
      }
    }
    if (!added.empty()) {
      errors.Forbidden(path.Child("finalizers"),
                       "no new finalizers can be added if the object is being deleted, found new "
                       "finalizers []string{" +
                           Join(added, ", ") + "}");
    }
  }
  if (now.generation < before.generation) {
    errors.Invalid(path.Child("generation"), now.generation, "must not be decremented");
  }
  const auto keep =
      [&](std::string_view field, const auto& a, const auto& b, std::string_view text) {
        if (a != b) errors.Invalid(path.Child(field), text, kImmutable);
      };
  keep("name", now.name, before.name, now.name);
  keep("namespace", now.namespace_, before.namespace_, now.namespace_);
  keep("uid", now.uid, before.uid, now.uid);
  keep("creationTimestamp",
       now.creation_timestamp,
       before.creation_timestamp,
       TimeText(now.creation_timestamp));
  keep("deletionTimestamp",
       now.deletion_timestamp,
       before.deletion_timestamp,
       TimeText(now.deletion_timestamp));
  keep("deletionGracePeriodSeconds",
       now.deletion_grace_period_seconds,
       before.deletion_grace_period_seconds,
       std::to_string(now.deletion_grace_period_seconds.value_or(0)));
}

}  // namespace berth::meta
