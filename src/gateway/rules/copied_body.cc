// SPDX-License-Identifier: Apache-2.0
#include "gateway/rules/copied_body.h"

#include <string_view>
#include <utility>

#include "apis/compute/host_tie.h"
#include "meta/reflect.h"

namespace berth::gateway {
namespace {

using apis::compute::Machine;
using apis::compute::MachineSpec;

// Where it runs is no part of what runs.
constexpr std::string_view kPoolField = "machinePoolRef";

bool SpecsAgree(const MachineSpec& a, const MachineSpec& b) {
  for (const meta::Field& field : meta::TypeInfoOf<MachineSpec>().fields) {
    if (field.name == kPoolField) continue;
    const void* at_a = reinterpret_cast<const char*>(&a) + field.offset;
    const void* at_b = reinterpret_cast<const char*>(&b) + field.offset;
    if (!meta::DeepEqual(*field.type, at_a, at_b)) return false;
  }
  return true;
}

bool PlacementsAgree(const Machine& a, const Machine& b) {
  const auto& x = *a.status.placement;
  const auto& y = *b.status.placement;
  return x.resources == y.resources && x.reservation_uid == y.reservation_uid;
}

}  // namespace

bool CopiedBody::IsCopy(const Machine& machine) {
  return !machine.metadata.owner_references.empty();
}

const EncodedBody* CopiedBody::Find(const Machine& machine) const {
  if (!kept_) return nullptr;
  const Machine& before = kept_->machine;
  const bool is_same = before.metadata.generation == machine.metadata.generation &&
                       before.metadata.labels == machine.metadata.labels &&
                       before.metadata.annotations == machine.metadata.annotations &&
                       DiesWithContact(before) == DiesWithContact(machine) &&
                       PlacementsAgree(before, machine) && SpecsAgree(before.spec, machine.spec);
  return is_same ? &kept_->body : nullptr;
}

void CopiedBody::Keep(const Machine& machine, EncodedBody body) {
  kept_.emplace();
  Machine& copy = kept_->machine;
  copy.metadata.generation = machine.metadata.generation;
  copy.metadata.labels = machine.metadata.labels;
  copy.metadata.annotations = machine.metadata.annotations;
  copy.spec = machine.spec;
  copy.status.placement = machine.status.placement;
  copy.status.conditions = machine.status.conditions;
  kept_->body = std::move(body);
}

}  // namespace berth::gateway
