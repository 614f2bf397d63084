// SPDX-License-Identifier: Apache-2.0
// A KindInfo says everything that is particular about one kind: its names, its struct, and the few
// functions that cannot be derived from the struct. The API server, the CLI and OpenAPI work on
// KindInfo alone.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "meta/field_errors.h"
#include "meta/object_meta.h"
#include "meta/type.h"

namespace berth::meta {

enum class Scope : uint8_t { kCluster, kNamespaced };

enum class NameRule : uint8_t {
  kDnsSubdomain,  // at most 253 characters
  kDnsLabel,      // at most 63 characters
  kPathSegment,   // RBAC: anything that is one URL path segment
};

// How a group's name is spelled.
enum class GroupNaming : uint8_t {
  kFixed,   // as it is: "", "rbac.authorization.k8s.io"
  kDomain,  // below each served domain: "compute" is compute.ironcore.dev and its aliases
};

// One column of `get`. A column without a cell function and without a time is the object's age.
struct Column {
  std::string_view name;
  std::string_view type = "string";  // OpenAPI: string, integer, date
  std::string_view doc;
  int32_t priority = 0;  // 0: always; 1: only with -o wide
  std::string (*cell)(const void* object) = nullptr;
  std::string_view format = {};  // "name" for the first column
  // Instead of cell: the column shows how long ago this was, "<unknown>" for the zero time.
  WallTime (*since)(const void* object) = nullptr;
};

// What the server adds to a kind's own columns.
enum class ColumnFrame : uint8_t {
  kNameAndAge,  // Name in front; Age behind the last column of priority 0
  kNone,        // the kind lists every column itself
};

// JSON paths of the scale subresource.
struct ScalePaths {
  std::string_view spec_replicas;
  std::string_view status_replicas;
  std::string_view label_selector;
};

// Verbs that the kind serves. Review kinds (SubjectAccessReview) are only created, never stored.
enum class Storage : uint8_t { kStored, kReview };

struct KindInfo;

// A kind that shows objects of another kind in another shape. Only `stored` is kept, watched and
// given revisions; both functions lose nothing and leave apiVersion and kind to the caller.
struct KindView {
  const KindInfo* stored = nullptr;
  void (*to_stored)(const void* view, void* stored) = nullptr;
  void (*from_stored)(const void* stored, void* view) = nullptr;
};

struct KindInfo {
  std::string_view group;
  GroupNaming naming = GroupNaming::kFixed;
  std::string_view version;
  std::string_view kind;
  std::string_view plural;
  std::string_view singular;
  std::span<const std::string_view> short_names = {};
  std::span<const std::string_view> categories = {};
  Scope scope = Scope::kNamespaced;
  Storage storage = Storage::kStored;
  NameRule name_rule = NameRule::kDnsSubdomain;
  const TypeInfo* type = nullptr;
  // The struct has `status`: it is written through the subresource only, and ignored on the main
  // resource.
  bool has_status = false;
  const ScalePaths* scale = nullptr;
  // Beyond status and scale: "finalize".
  std::span<const std::string_view> subresources = {};
  // Not null: objects are stored as another kind.
  const KindView* view = nullptr;
  // Beyond metadata.name and metadata.namespace: "spec.machinePoolRef.name".
  std::span<const std::string_view> field_selectors = {};
  // Between Name and Age, which column_frame adds.
  std::span<const Column> columns = {};
  ColumnFrame column_frame = ColumnFrame::kNameAndAge;

  // Functions over the struct that `type` describes. Null where there is nothing to do. They are
  // pure: no clock, no store, no randomness.
  //
  // Fills in what an absent field means beyond FieldOptions::fallback. Idempotent.
  void (*set_defaults)(void* object) = nullptr;
  // What only a new object gets, after its defaults and its reset status: Namespace finalizers.
  void (*prepare_create)(void* object) = nullptr;
  // Carries over what a write to the main resource may not change and is not an error: Namespace
  // finalizers.
  void (*prepare_update)(void* now, const void* before) = nullptr;
  // Reports everything that is wrong; generic rules (required, enum values, metadata) have been
  // checked before.
  void (*validate)(const void* object, FieldErrors& errors) = nullptr;
  void (*validate_update)(const void* now, const void* before, FieldErrors& errors) = nullptr;
  void (*validate_status_update)(const void* now,
                                 const void* before,
                                 FieldErrors& errors) = nullptr;
  // Why the object may not be deleted now, or "".
  std::string (*refuse_delete)(const void* object) = nullptr;
  // The value of a field selector that is not simply the field of that path (Event's "source").
  // Null, or nullopt for a selector: the field of that path.
  std::optional<std::string> (*selector_value)(const void* object,
                                               std::string_view selector) = nullptr;
};

inline ObjectMeta& MetadataOf(void* object) { return *static_cast<ObjectMeta*>(object); }
inline const ObjectMeta& MetadataOf(const void* object) {
  return *static_cast<const ObjectMeta*>(object);
}

// Wraps typed functions as the untyped hooks above: .validate = Hook<&ValidateMachine>.
namespace internal {
template <auto F>
struct HookOf;
template <class T, void (*F)(T&)>
struct HookOf<F> {
  static void Call(void* object) { F(*static_cast<T*>(object)); }
};
template <class T, void (*F)(T&, const T&)>
struct HookOf<F> {
  static void Call(void* now, const void* before) {
    F(*static_cast<T*>(now), *static_cast<const T*>(before));
  }
};
template <class T, void (*F)(const T&, FieldErrors&)>
struct HookOf<F> {
  static void Call(const void* object, FieldErrors& errors) {
    F(*static_cast<const T*>(object), errors);
  }
};
template <class T, void (*F)(const T&, const T&, FieldErrors&)>
struct HookOf<F> {
  static void Call(const void* now, const void* before, FieldErrors& errors) {
    F(*static_cast<const T*>(now), *static_cast<const T*>(before), errors);
  }
};
template <class T, WallTime (*F)(const T&)>
struct HookOf<F> {
  static WallTime Call(const void* object) { return F(*static_cast<const T*>(object)); }
};
template <class T, std::optional<std::string> (*F)(const T&, std::string_view)>
struct HookOf<F> {
  static std::optional<std::string> Call(const void* object, std::string_view selector) {
    return F(*static_cast<const T*>(object), selector);
  }
};
template <class View, class Stored, void (*F)(const View&, Stored&)>
  requires(!std::is_same_v<Stored, FieldErrors>)
struct HookOf<F> {
  static void Call(const void* view, void* stored) {
    F(*static_cast<const View*>(view), *static_cast<Stored*>(stored));
  }
};
template <class T, std::string (*F)(const T&)>
struct HookOf<F> {
  static std::string Call(const void* object) { return F(*static_cast<const T*>(object)); }
};
}  // namespace internal
template <auto F>
inline constexpr auto Hook = &internal::HookOf<F>::Call;

}  // namespace berth::meta
