// SPDX-License-Identifier: Apache-2.0
#include "apis/core/rules.h"

#include <algorithm>

#include "base/strings.h"
#include "meta/names.h"

namespace berth::apis::core {

void CheckSubdomainName(std::string_view name,
                        const meta::FieldPath& path,
                        meta::FieldErrors& errors) {
  if (name.empty()) {
    errors.Required(path);
  } else {
    meta::AddProblems(path, name, meta::DnsSubdomainProblems(name), errors);
  }
}

void CheckLabelName(std::string_view name, const meta::FieldPath& path, meta::FieldErrors& errors) {
  if (name.empty()) {
    errors.Required(path);
  } else {
    meta::AddProblems(path, name, meta::DnsLabelProblems(name), errors);
  }
}

void CheckReference(const LocalObjectReference& reference,
                    const meta::FieldPath& path,
                    meta::FieldErrors& errors) {
  if (reference.name.empty()) {
    errors.Required(path);
  } else {
    CheckSubdomainName(reference.name, path.Child("name"), errors);
  }
}

void CheckReference(const std::optional<LocalObjectReference>& reference,
                    const meta::FieldPath& path,
                    meta::FieldErrors& errors) {
  if (reference) CheckSubdomainName(reference->name, path.Child("name"), errors);
}

void CheckReference(const std::optional<LocalUidReference>& reference,
                    const meta::FieldPath& path,
                    meta::FieldErrors& errors) {
  if (reference && !reference->name.empty()) {
    CheckSubdomainName(reference->name, path.Child("name"), errors);
  }
}

void CheckReferences(std::span<const LocalObjectReference> references,
                     const meta::FieldPath& path,
                     meta::FieldErrors& errors) {
  UniqueNames unique;
  for (size_t i = 0; i < references.size(); ++i) {
    const meta::FieldPath at = path.Index(i).Child("name");
    CheckSubdomainName(references[i].name, at, errors);
    unique.Check(references[i].name, at, errors);
  }
}

void CheckLabelKey(std::string_view key, const meta::FieldPath& path, meta::FieldErrors& errors) {
  meta::AddProblems(path, key, meta::QualifiedNameProblems(key), errors);
}

void CheckLabelValue(std::string_view value,
                     const meta::FieldPath& path,
                     meta::FieldErrors& errors) {
  meta::AddProblems(path, value, meta::LabelValueProblems(value), errors);
}

void CheckLabels(const std::map<std::string, std::string>& labels,
                 const meta::FieldPath& path,
                 meta::FieldErrors& errors) {
  meta::ValidateLabels(path, labels, errors);
}

void CheckSelector(const meta::LabelSelector& selector,
                   const meta::FieldPath& path,
                   meta::FieldErrors& errors) {
  meta::ValidateLabelSelector(path, selector, errors);
}

void CheckSelector(const std::optional<meta::LabelSelector>& selector,
                   const meta::FieldPath& path,
                   meta::FieldErrors& errors) {
  if (selector) meta::ValidateLabelSelector(path, *selector, errors);
}

void CheckTemplateMetadata(const meta::ObjectMeta& metadata,
                           const meta::FieldPath& path,
                           meta::FieldErrors& errors) {
  constexpr std::string_view kWhy = "a template may have labels and annotations only";
  const meta::ObjectMeta none;
  const auto forbid = [&](const auto& value, const auto& empty, std::string_view name) {
    if (!(value == empty)) errors.Forbidden(path.Child(name), kWhy);
  };
  forbid(metadata.name, none.name, "name");
  forbid(metadata.generate_name, none.generate_name, "generateName");
  forbid(metadata.namespace_, none.namespace_, "namespace");
  forbid(metadata.uid, none.uid, "uid");
  forbid(metadata.resource_version, none.resource_version, "resourceVersion");
  forbid(metadata.generation, none.generation, "generation");
  forbid(metadata.deletion_timestamp, none.deletion_timestamp, "deletionTimestamp");
  forbid(metadata.owner_references, none.owner_references, "ownerReferences");
  forbid(metadata.finalizers, none.finalizers, "finalizers");
  forbid(metadata.managed_fields, none.managed_fields, "managedFields");
  CheckLabels(metadata.labels, path.Child("labels"), errors);
  for (const auto& [key, value] : metadata.annotations) {
    // Annotation keys may be written in any case.
    CheckLabelKey(ToLower(key), path.Child("annotations"), errors);
  }
}

void CheckPositive(const meta::Quantity& value,
                   const meta::FieldPath& path,
                   meta::FieldErrors& errors) {
  if (value.Sign() <= 0) errors.Invalid(path, value.ToString(), "must be greater than zero");
}

void CheckNotNegative(const meta::Quantity& value,
                      const meta::FieldPath& path,
                      meta::FieldErrors& errors) {
  if (value.Sign() < 0) {
    errors.Invalid(path, value.ToString(), "must be greater than or equal to 0");
  }
}

void CheckNotNegative(const ResourceList& list,
                      const meta::FieldPath& path,
                      meta::FieldErrors& errors) {
  for (const auto& [name, value] : list) CheckNotNegative(value, path.Key(name), errors);
}

void CheckRequiredResource(const ResourceList& list,
                           std::string_view name,
                           const meta::FieldPath& path,
                           meta::FieldErrors& errors) {
  const meta::Quantity* value = FindResource(list, name);
  if (value == nullptr) {
    errors.Required(path.Key(name), "must specify " + std::string(name));
  } else {
    CheckPositive(*value, path.Key(name), errors);
  }
}

void CheckSources(int count,
                  const meta::FieldPath& path,
                  std::string_view members,
                  meta::FieldErrors& errors) {
  if (count == 0) errors.Required(path, "must specify one of " + std::string(members));
  if (count > 1) errors.Forbidden(path, "must specify only one of " + std::string(members));
}

void UniqueNames::Check(std::string_view name,
                        const meta::FieldPath& path,
                        meta::FieldErrors& errors) {
  if (name.empty()) return;
  if (!seen_.emplace(name).second) errors.Duplicate(path, name);
}

void CheckItemName(std::string_view name,
                   const meta::FieldPath& path,
                   UniqueNames& unique,
                   meta::FieldErrors& errors) {
  if (name.empty()) return;
  CheckSubdomainName(name, path, errors);
  unique.Check(name, path, errors);
}

void CheckPoolProviderId(const std::string& now,
                         const std::string& before,
                         Announced announced,
                         meta::FieldErrors& errors) {
  if (announced == Announced::kYes) {
    CheckSetOnce(now, before, SpecPath().Child("providerID"), errors);
  }
}

std::string OrNone(std::string text) {
  if (text.empty()) return "<none>";
  return text;
}

std::string OrUnknown(std::string text) {
  if (text.empty()) return "<unknown>";
  return text;
}

std::string JoinReferences(std::span<const LocalObjectReference> references) {
  std::vector<std::string> names;
  for (const LocalObjectReference& reference : references) names.push_back(reference.name);
  std::ranges::sort(names);
  return OrNone(Join(names, ","));
}

std::string ReferenceCell(const std::optional<LocalObjectReference>& reference) {
  return OrNone(reference ? reference->name : "");
}

std::string ResourceCell(const ResourceList& list, std::string_view name) {
  const meta::Quantity* value = FindResource(list, name);
  return OrNone(value == nullptr ? "" : value->ToString());
}

}  // namespace berth::apis::core
