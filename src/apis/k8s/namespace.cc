// SPDX-License-Identifier: Apache-2.0
#include "apis/k8s/namespace.h"

#include <algorithm>

#include "apis/core/rules.h"
#include "apis/core/well_known.h"

namespace berth::apis::k8s {
namespace {

void SetDefaults(Namespace& object) {
  if (object.metadata.name.empty()) return;
  object.metadata.labels[std::string(core::kNamespaceNameLabel)] = object.metadata.name;
}

void PrepareCreate(Namespace& object) {
  auto& finalizers = object.spec.finalizers;
  if (std::ranges::find(finalizers, core::kNamespaceFinalizer) == finalizers.end()) {
    finalizers.emplace_back(core::kNamespaceFinalizer);
  }
}

void PrepareUpdate(Namespace& now, const Namespace& before) {
  now.spec.finalizers = before.spec.finalizers;
}

void Validate(const Namespace& object, meta::FieldErrors& errors) {
  const meta::FieldPath path = core::SpecPath().Child("finalizers");
  for (size_t i = 0; i < object.spec.finalizers.size(); ++i) {
    core::CheckLabelKey(object.spec.finalizers[i], path.Index(i), errors);
  }
}

void ValidateStatusUpdate(const Namespace& now,
                          const Namespace& /*before*/,
                          meta::FieldErrors& errors) {
  const meta::FieldPath phase = core::StatusPath().Child("phase");
  const bool is_going = now.metadata.deletion_timestamp.has_value();
  if (is_going && now.status.phase != kNamespaceTerminating) {
    errors.Invalid(
        phase, now.status.phase, "may only be 'Terminating' if `deletionTimestamp` is not empty");
  }
  if (!is_going && now.status.phase == kNamespaceTerminating) {
    errors.Invalid(phase, now.status.phase, "may only be 'Active' if `deletionTimestamp` is empty");
  }
  core::CheckConditions(now.status.conditions, core::StatusPath().Child("conditions"), errors);
}

std::string RefuseDelete(const Namespace& object) {
  return object.metadata.name == kDefaultNamespace ? "this namespace may not be deleted" : "";
}

std::string StatusCell(const Namespace& object) { return object.status.phase; }

constexpr meta::Column kColumns[] = {
    {.name = "Status", .doc = "Active or Terminating.", .cell = meta::Hook<&StatusCell>},
};
constexpr std::string_view kShortNames[] = {"ns"};
constexpr std::string_view kSubresources[] = {"finalize"};
constexpr std::string_view kSelectors[] = {"status.phase"};

}  // namespace

constinit const meta::KindInfo kNamespaceKind = {
    .group = "",
    .version = "v1",
    .kind = "Namespace",
    .plural = "namespaces",
    .singular = "namespace",
    .short_names = kShortNames,
    .scope = meta::Scope::kCluster,
    .name_rule = meta::NameRule::kDnsLabel,
    .type = &meta::TypeInfoOf<Namespace>(),
    .has_status = true,
    .subresources = kSubresources,
    .field_selectors = kSelectors,
    .columns = kColumns,
    .set_defaults = meta::Hook<&SetDefaults>,
    .prepare_create = meta::Hook<&PrepareCreate>,
    .prepare_update = meta::Hook<&PrepareUpdate>,
    .validate = meta::Hook<&Validate>,
    .validate_status_update = meta::Hook<&ValidateStatusUpdate>,
    .refuse_delete = meta::Hook<&RefuseDelete>,
};

}  // namespace berth::apis::k8s
