// SPDX-License-Identifier: Apache-2.0
// Steps of volumes and buckets, and of removal.
#include <algorithm>
#include <utility>

#include "poollet/reconcile/step.h"

namespace berth::poollet {
namespace {

using Kind = Step::Kind;

Step Say(Kind kind, std::string reason, std::string message) {
  return {.kind = kind,
          .id = {},
          .part = {},
          .reason = std::move(reason),
          .message = std::move(message)};
}
Step Do(Kind kind, std::string id) {
  return {.kind = kind, .id = std::move(id), .part = {}, .reason = {}, .message = {}};
}

Step Create(const Desired& desired, const Situation& situation) {
  if (!desired.missing.empty()) {
    return Say(Kind::kWait, "PrerequisiteMissing", desired.missing.front());
  }
  if (situation.secrets_missing) {
    return Say(
        Kind::kWait, "SecretsMissing", "its secrets are not kept on disk: waiting for the server");
  }
  if (situation.create_unknown && !situation.create_is_idempotent) {
    return Say(
        Kind::kWait, "CreateOutcomeUnknown", "a create was sent and its outcome is not known yet");
  }
  return Do(Kind::kCreate, {});
}

// What came of a create whose answer was lost may go while nobody has used any of them.
template <class Object>
Step Surplus(std::span<const Object> observed, const Situation& situation) {
  if (situation.was_available) {
    return Say(Kind::kStuck,
               "MultipleObjects",
               "more than one runtime object has this uid, and data may be on any of them");
  }
  const auto older = [](const Object& a, const Object& b) {
    if (a.metadata.created_at != b.metadata.created_at) {
      return a.metadata.created_at < b.metadata.created_at;
    }
    return a.metadata.id < b.metadata.id;
  };
  const Object& keeper = *std::ranges::min_element(observed, older);
  for (const auto& object : observed) {
    if (&object != &keeper && object.metadata.deleted_at.is_zero()) {
      return Do(Kind::kDelete, object.metadata.id);
    }
  }
  return Say(Kind::kWait, "RemovingSurplus", "a second object of this uid is being removed");
}

}  // namespace

Step NextVolumeStep(const Desired& desired,
                    std::span<const iri::Volume> observed,
                    const Situation& situation) {
  const iri::Volume& wanted = std::get<DesiredVolume>(desired.body).object;
  if (observed.empty()) {
    // An empty volume in the place of a lost one would hide that data is gone.
    if (situation.was_available) {
      return Say(Kind::kStuck, "VolumeLost", "the runtime does not know this volume any more");
    }
    return Create(desired, situation);
  }
  if (observed.size() > 1) return Surplus(observed, situation);
  const iri::Volume& there = observed.front();
  if (!there.metadata.deleted_at.is_zero()) {
    return Say(Kind::kWait, "DeletedByOthers", "its runtime object is being deleted, not by us");
  }
  if (wanted.spec.storage_bytes > there.spec.storage_bytes) {
    if (wanted.spec.storage_bytes > situation.storage_allowed) {
      return Say(Kind::kWait, "InsufficientStorage", "the host has no room for it to grow");
    }
    return Do(Kind::kExpand, there.metadata.id);
  }
  return {};
}

Step NextSnapshotStep(const Desired& desired,
                      std::span<const iri::VolumeSnapshot> observed,
                      const Situation& situation) {
  if (observed.empty()) {
    // Another one would show another moment.
    if (situation.was_available) {
      return Say(Kind::kStuck, "SnapshotLost", "the runtime does not know this snapshot any more");
    }
    return Create(desired, situation);
  }
  if (observed.size() > 1) return Surplus(observed, situation);
  if (!observed.front().metadata.deleted_at.is_zero()) {
    return Say(Kind::kWait, "DeletedByOthers", "its runtime object is being deleted, not by us");
  }
  return {};
}

Step NextBucketStep(const Desired& desired,
                    std::span<const iri::Bucket> observed,
                    const Situation& situation) {
  if (observed.empty()) {
    if (situation.was_available) {
      return Say(Kind::kStuck, "BucketLost", "the runtime does not know this bucket any more");
    }
    return Create(desired, situation);
  }
  if (observed.size() > 1) return Surplus(observed, situation);
  if (!observed.front().metadata.deleted_at.is_zero()) {
    return Say(Kind::kWait, "DeletedByOthers", "its runtime object is being deleted, not by us");
  }
  return {};
}

Step NextRemovalStep(std::span<const RuntimeObject> observed, const Situation& situation) {
  for (const auto& object : observed) {
    if (!object.is_being_deleted) return Do(Kind::kDelete, object.id);
  }
  if (!observed.empty()) return Say(Kind::kWait, "Deleting", "the runtime is removing it");
  // Even where creates are idempotent: one that is still on its way would come after the last look.
  if (situation.create_unknown) {
    return Say(Kind::kWait,
               "CreateOutcomeUnknown",
               "a create was sent and what came of it may still show");
  }
  return Do(Kind::kGone, {});
}

}  // namespace berth::poollet
