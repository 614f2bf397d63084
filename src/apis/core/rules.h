// SPDX-License-Identifier: Apache-2.0
// The rules that several kinds share. Each reports into FieldErrors and goes on, so that a user
// sees everything at once.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "apis/core/references.h"
#include "apis/core/resources.h"
#include "meta/field_errors.h"
#include "meta/label_selector.h"
#include "meta/object_meta.h"

namespace berth::apis::core {

inline constexpr std::string_view kFieldIsImmutable = "field is immutable";
inline constexpr std::string_view kFieldIsSetOnce = "field is immutable once set";

inline meta::FieldPath SpecPath() { return meta::FieldPath("spec"); }
inline meta::FieldPath StatusPath() { return meta::FieldPath("status"); }
inline meta::FieldPath CapabilitiesPath() { return meta::FieldPath("capabilities"); }

template <class T>
void CheckImmutable(const T& now,
                    const T& before,
                    const meta::FieldPath& path,
                    meta::FieldErrors& errors) {
  if (!(now == before)) errors.Forbidden(path, kFieldIsImmutable);
}

// What is absent (nullopt, "", 0) may become something, once.
template <class T>
void CheckSetOnce(const T& now,
                  const T& before,
                  const meta::FieldPath& path,
                  meta::FieldErrors& errors) {
  if (!(before == T{}) && !(now == before)) errors.Forbidden(path, kFieldIsSetOnce);
}

// Names of other objects: required, and a DNS subdomain or a DNS label.
void CheckSubdomainName(std::string_view name,
                        const meta::FieldPath& path,
                        meta::FieldErrors& errors);
void CheckLabelName(std::string_view name, const meta::FieldPath& path, meta::FieldErrors& errors);
// The reference's name, at path.name. An empty reference is reported as required at `path`.
void CheckReference(const LocalObjectReference& reference,
                    const meta::FieldPath& path,
                    meta::FieldErrors& errors);
void CheckReference(const std::optional<LocalObjectReference>& reference,
                    const meta::FieldPath& path,
                    meta::FieldErrors& errors);

// The syntax of the name; its absence is reported by the reference's description.
void CheckReference(const std::optional<LocalUidReference>& reference,
                    const meta::FieldPath& path,
                    meta::FieldErrors& errors);
void CheckReferences(std::span<const LocalObjectReference> references,
                     const meta::FieldPath& path,
                     meta::FieldErrors& errors);

void CheckLabelKey(std::string_view key, const meta::FieldPath& path, meta::FieldErrors& errors);
void CheckLabelValue(std::string_view value,
                     const meta::FieldPath& path,
                     meta::FieldErrors& errors);
// Label syntax of every key and value.
void CheckLabels(const std::map<std::string, std::string>& labels,
                 const meta::FieldPath& path,
                 meta::FieldErrors& errors);
void CheckSelector(const meta::LabelSelector& selector,
                   const meta::FieldPath& path,
                   meta::FieldErrors& errors);
void CheckSelector(const std::optional<meta::LabelSelector>& selector,
                   const meta::FieldPath& path,
                   meta::FieldErrors& errors);

// Templates of ephemeral objects may carry labels and annotations, nothing else.
void CheckTemplateMetadata(const meta::ObjectMeta& metadata,
                           const meta::FieldPath& path,
                           meta::FieldErrors& errors);

void CheckPositive(const meta::Quantity& value,
                   const meta::FieldPath& path,
                   meta::FieldErrors& errors);
void CheckNotNegative(const meta::Quantity& value,
                      const meta::FieldPath& path,
                      meta::FieldErrors& errors);
void CheckNotNegative(const ResourceList& list,
                      const meta::FieldPath& path,
                      meta::FieldErrors& errors);
// The entry `name` of the list: there, and greater than zero.
void CheckRequiredResource(const ResourceList& list,
                           std::string_view name,
                           const meta::FieldPath& path,
                           meta::FieldErrors& errors);

// A union: exactly one of its members is set. `members` is for the message: "volumeRef or
// ephemeral".
void CheckSources(int count,
                  const meta::FieldPath& path,
                  std::string_view members,
                  meta::FieldErrors& errors);

// Reports what occurs a second time; empty names are nobody's.
class UniqueNames {
 public:
  void Check(std::string_view name, const meta::FieldPath& path, meta::FieldErrors& errors);
  bool Contains(const std::string& name) const { return seen_.contains(name); }

 private:
  std::set<std::string> seen_;
};

// Name of an item in a list: a DNS subdomain, and not used before. Its absence is reported by the
// item's description.
void CheckItemName(std::string_view name,
                   const meta::FieldPath& path,
                   UniqueNames& unique,
                   meta::FieldErrors& errors);

// Each type of condition at most once.
template <class Condition>
void CheckConditions(const std::vector<Condition>& conditions,
                     const meta::FieldPath& path,
                     meta::FieldErrors& errors) {
  UniqueNames unique;
  for (size_t i = 0; i < conditions.size(); ++i) {
    unique.Check(conditions[i].type, path.Index(i).Child("type"), errors);
  }
}

// spec.providerID of a pool. An operator may write a pool's manifest, and correct it, before the
// poollet comes; from the first report of a poollet on (its classes, capacity, conditions or
// addresses are in status), what runs there is known to the outside by this name and it stays.
enum class Announced : uint8_t { kNo, kYes };
void CheckPoolProviderId(const std::string& now,
                         const std::string& before,
                         Announced announced,
                         meta::FieldErrors& errors);

// "IPv4" or "IPv6".
inline constexpr std::string_view kIpv4 = "IPv4";
inline constexpr std::string_view kIpv6 = "IPv6";

// Text of a cell: "<none>" or "<unknown>" for nothing.
std::string OrNone(std::string text);
std::string OrUnknown(std::string text);
// "a,b" sorted, or "<none>".
std::string JoinReferences(std::span<const LocalObjectReference> references);
std::string ReferenceCell(const std::optional<LocalObjectReference>& reference);
std::string ResourceCell(const ResourceList& list, std::string_view name);

}  // namespace berth::apis::core
