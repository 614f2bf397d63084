// SPDX-License-Identifier: Apache-2.0
#include "apiserver/admission/priority.h"

#include <optional>
#include <string>
#include <utility>

#include "apis/berth/machine_set.h"
#include "apis/compute/machine.h"
#include "apis/core/rules.h"
#include "apis/k8s/priority_class.h"
#include "apiserver/errors.h"
#include "base/strings.h"
#include "meta/field_errors.h"

namespace berth::apiserver {

namespace {

using apis::berth_dev::MachineSet;
using apis::compute::Machine;
using apis::core::Placement;
using apis::k8s::kPriorityClassKind;
using apis::k8s::PriorityClass;

// The class of this name, unless it is going.
std::optional<PriorityClass> FindClass(const ObjectSource& source, const std::string& name) {
  const std::optional<meta::Object> found =
      source.Find(kPriorityClassKind, {.namespace_ = "", .name = name});
  if (!found || found->metadata().deletion_timestamp) return std::nullopt;
  return found->as<PriorityClass>();
}

std::string ClassNameOf(const std::optional<Placement>& placement) {
  return placement ? placement->priority_class_name : std::string();
}

Status CheckOnlyDefault(const meta::Scheme& scheme,
                        const ObjectSource& source,
                        const meta::Object& object) {
  if (!object.as<PriorityClass>().global_default) return OkStatus();
  for (const meta::Object& other : source.List(kPriorityClassKind, "")) {
    if (other.metadata().uid == object.metadata().uid) continue;
    if (!other.as<PriorityClass>().global_default) continue;
    return KindErrors(scheme, kPriorityClassKind)
        .Forbidden(object.metadata().name,
                   "PriorityClass " + Quote(other.metadata().name) +
                       " is the default already; only one can be");
  }
  return OkStatus();
}

// A set is told at once what each of its machines would be told.
Status CheckTemplate(const meta::Scheme& scheme,
                     const ObjectSource& source,
                     const meta::Object* before,
                     const meta::Object& object) {
  const std::string name =
      ClassNameOf(object.as<MachineSet>().spec.machine_template.spec.placement);
  if (name.empty()) return OkStatus();
  if (before != nullptr &&
      ClassNameOf(before->as<MachineSet>().spec.machine_template.spec.placement) == name) {
    return OkStatus();
  }
  if (FindClass(source, name)) return OkStatus();
  meta::FieldErrors errors;
  errors.NotFound(apis::core::SpecPath()
                      .Child("template")
                      .Child("spec")
                      .Child("placement")
                      .Child("priorityClassName"),
                  name);
  return KindErrors(scheme, object.kind()).Invalid(object.metadata().name, errors);
}

}  // namespace

Status ResolvePriority(const meta::Scheme& scheme,
                       const ObjectSource& source,
                       const meta::Object* before,
                       meta::Object& object) {
  std::optional<Placement>& placement = object.as<Machine>().spec.placement;
  if (before != nullptr) {
    // Who sends the machine without it means nothing by that.
    const std::optional<Placement>& old = before->as<Machine>().spec.placement;
    if (placement && old && !placement->priority) placement->priority = old->priority;
    return OkStatus();
  }
  if (!placement || (placement->priority_class_name.empty() && !placement->priority)) {
    return OkStatus();
  }
  const meta::FieldPath path = apis::core::SpecPath().Child("placement");
  meta::FieldErrors errors;
  const std::string& name = placement->priority_class_name;
  const std::optional<PriorityClass> found = name.empty() ? std::nullopt : FindClass(source, name);
  if (!found && !name.empty()) {
    errors.NotFound(path.Child("priorityClassName"), name);
  } else if (const int32_t value = found ? found->value : 0;
             placement->priority.value_or(value) != value) {
    errors.Invalid(path.Child("priority"),
                   int64_t{*placement->priority},
                   name.empty() ? "name a priorityClassName; the number follows from it"
                                : "the value of PriorityClass " + Quote(name) + " is " +
                                      std::to_string(value));
  } else if (found) {
    placement->priority = value;
  }
  return KindErrors(scheme, object.kind()).Invalid(object.metadata().name, errors);
}

void ApplyDefaultPriority(const ObjectSource& source, meta::Object& object) {
  if (&object.kind() != &apis::compute::kMachineKind) return;
  std::optional<Placement>& placement = object.as<Machine>().spec.placement;
  if (!ClassNameOf(placement).empty()) return;
  std::optional<PriorityClass> least;
  for (const meta::Object& other : source.List(kPriorityClassKind, "")) {
    const auto& candidate = other.as<PriorityClass>();
    if (!candidate.global_default || candidate.metadata.deletion_timestamp) continue;
    if (!least || candidate.value < least->value) least = candidate;
  }
  if (!least) return;
  if (!placement) placement.emplace();
  placement->priority_class_name = least->metadata.name;
  placement->priority = least->value;
}

Status CheckPriority(const meta::Scheme& scheme,
                     const ObjectSource& source,
                     const meta::Object* before,
                     const meta::Object& object) {
  if (&object.kind() == &kPriorityClassKind) return CheckOnlyDefault(scheme, source, object);
  if (&object.kind() == &apis::berth_dev::kMachineSetKind) {
    return CheckTemplate(scheme, source, before, object);
  }
  return OkStatus();
}

}  // namespace berth::apiserver
