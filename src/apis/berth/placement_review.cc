// SPDX-License-Identifier: Apache-2.0
#include "apis/berth/placement_review.h"

#include <algorithm>
#include <string>

#include "apis/core/rules.h"

namespace berth::apis::berth_dev {
namespace {

void Validate(const PlacementReview& object, meta::FieldErrors& errors) {
  const PlacementReviewSpec& spec = object.spec;
  const meta::FieldPath path = core::SpecPath();
  if (spec.object_ref.has_value() == !spec.object.is_null()) {
    errors.Invalid(path.Child("objectRef"),
                   spec.object_ref ? spec.object_ref->name : std::string(),
                   "exactly one of objectRef and object must be specified");
  }
  if (spec.object_ref && spec.object_ref->kind.empty()) {
    errors.Required(path.Child("objectRef").Child("kind"),
                    "Machine, Volume, VolumeSnapshot, Bucket or Reservation");
  }
  if (spec.object_ref && spec.object_ref->name.empty()) {
    errors.Required(path.Child("objectRef").Child("name"));
  }
  if (!spec.object.is_null() && !spec.object.is_object()) {
    errors.Invalid(path.Child("object"), spec.object.type_name(), "must be an object");
  }
  if (spec.related.size() > kRelatedMax) {
    errors.TooMany(path.Child("related"), spec.related.size(), kRelatedMax);
  }
  for (size_t i = 0; i < std::min(spec.related.size(), kRelatedMax); ++i) {
    if (spec.related[i].is_object()) continue;
    errors.Invalid(
        path.Child("related").Index(i), spec.related[i].type_name(), "must be an object");
  }
  if (spec.copies && (*spec.copies < 1 || *spec.copies > kCopiesCountedMax)) {
    errors.Invalid(path.Child("copies"),
                   int64_t{*spec.copies},
                   "must be from 1 to " + std::to_string(kCopiesCountedMax));
  }
}

}  // namespace

constinit const meta::KindInfo kPlacementReviewKind = {
    .group = "berth.dev",
    .naming = meta::GroupNaming::kFixed,
    .version = "v1alpha1",
    .kind = "PlacementReview",
    .plural = "placementreviews",
    .singular = "placementreview",
    .scope = meta::Scope::kNamespaced,
    .storage = meta::Storage::kReview,
    .type = &meta::TypeInfoOf<PlacementReview>(),
    .validate = meta::Hook<&Validate>,
};

}  // namespace berth::apis::berth_dev
