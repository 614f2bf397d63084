// SPDX-License-Identifier: Apache-2.0
// Objects that do not exist yet, in the Adviser: what stands in one file is judged together.
#include <algorithm>
#include <iterator>
#include <utility>

#include "apis/compute/machine.h"
#include "apis/compute/machine_class.h"
#include "apis/core/reservation.h"
#include "apis/storage/volume.h"
#include "apis/storage/volume_snapshot.h"
#include "scheduler/placing/adviser.h"
#include "scheduler/translate/translate.h"

namespace berth::scheduler {

using apis::compute::kMachineClassKind;
using apis::compute::kMachineKind;
using apis::core::kReservationKind;
using apis::storage::kVolumeKind;
using apis::storage::kVolumeSnapshotKind;

namespace {

// Parts of reservations that one question supposes: 1,024 * 5 us = 5 ms. Beyond that they count as
// not accepted yet.
constexpr size_t kCopiesSupposedMax = 1024;

}  // namespace

void Adviser::ReadDrafts(const client::PlacementQuestion& question, Case& one) {
  std::vector<const meta::Object*> drafts;
  if (question.object.metadata().uid.empty()) drafts.push_back(&question.object);
  for (const meta::Object& related : question.related) drafts.push_back(&related);
  for (const meta::Object* draft : drafts) {
    if (&draft->kind() != &kMachineClassKind) continue;
    one.drafts.classes.try_emplace(draft->metadata().name,
                                   draft->as<apis::compute::MachineClass>());
  }
  // Machines and reservations have the size of their class, snapshots that of their volume.
  for (const meta::KindInfo* kind :
       {&kVolumeKind, &kVolumeSnapshotKind, &kReservationKind, &kMachineKind}) {
    for (const meta::Object* draft : drafts) {
      if (&draft->kind() == kind) one.drafts.Add(*draft, objects_.Sketch(*draft));
    }
  }
}

void Adviser::SupposeReservation(const ObjectRecord& machine, Case& one) {
  if (machine.reservation.empty()) return;
  const client::ObjectKey key{.namespace_ = machine.key.namespace_, .name = machine.reservation};
  const ObjectRecord* draft = one.drafts.Find(kReservationKind, key);
  if (draft == nullptr || draft != objects_.FindByKey(kReservationKind, key)) return;
  // With mode All there is none that keeps room itself: which pools get one is seen once it exists.
  if (draft->reserves->is_for_all || draft->reserves->unit == nullptr) return;
  const std::variant<Ask, NotYet> prepared = objects_.Prepare(*draft);
  if (std::holds_alternative<NotYet>(prepared)) return;
  const Decision decision = board_.Decide(std::get<Ask>(prepared).request, 1);
  if (decision.ranked.empty()) return;
  const std::vector<Request> copies =
      ObjectDirectory::CopiesOf(*draft, decision.ranked.front().pool);
  // Several members of a group may name the same one.
  if (copies.empty() || one.drafts.copies.contains(copies.front().key)) return;
  if (one.drafts.copies.size() + copies.size() > kCopiesSupposedMax) return;
  if (!one.board.Place(copies)) return;
  for (const Request& copy : copies) one.drafts.copies.insert(copy.key);
}

const meta::Object* Adviser::UserOf(const ObjectRecord& volume, const Case& one) const {
  // What begins with something else is placed first, where that is.
  if (!volume.uid.empty() || volume.snapshot != nullptr) return nullptr;
  const ObjectRecord* known = objects_.FindByKey(kVolumeKind, volume.key);
  if (known == nullptr || known != one.drafts.Find(kVolumeKind, volume.key)) return nullptr;
  for (const auto& [name, draft] : one.drafts.objects) {
    const ObjectRecord& machine = draft.record;
    if (machine.kind != &kMachineKind || machine.key.namespace_ != volume.key.namespace_) continue;
    // What exists counts as it is.
    if (objects_.FindByKey(kMachineKind, machine.key) != &machine) continue;
    if (std::ranges::find(machine.volumes, volume.key.name) != machine.volumes.end()) {
      return draft.object;
    }
  }
  return nullptr;
}

void Adviser::Unmade::AddTo(Ask& ask) {
  std::ranges::move(names, std::back_inserter(ask.unmade));
  std::ranges::move(requests, std::back_inserter(ask.request.joint));
}

Adviser::Unmade Adviser::TakeUnmadeVolumes(const meta::Object& object, ObjectRecord& record) {
  Unmade out;
  if (record.kind != &kMachineKind) return out;
  for (const auto& volume : object.as<apis::compute::Machine>().spec.volumes) {
    if (!volume.ephemeral || !volume.ephemeral->volume_template) continue;
    const client::ObjectKey key{.namespace_ = record.key.namespace_,
                                .name = record.key.name + '-' + volume.name};
    if (objects_.FindByKey(kVolumeKind, key) != nullptr) continue;
    std::erase(record.volumes, key.name);
    apis::storage::Volume draft;
    draft.metadata.namespace_ = key.namespace_;
    draft.spec = volume.ephemeral->volume_template->spec;
    if (!draft.spec.volume_class_ref) continue;
    out.names.push_back(key.name);
    Request& request = out.requests.emplace_back();
    request.key = ObjectKey::FromUid(Drafts::UidFor(kVolumeKind, key));
    request.shape = board_.Intern(Translate(draft));
  }
  return out;
}

}  // namespace berth::scheduler
