// SPDX-License-Identifier: Apache-2.0
#include "apiserver/http/placement_reviews.h"

#include <string>
#include <utility>
#include <vector>

#include "apis/berth/machine_group.h"
#include "apis/berth/machine_set.h"
#include "apis/compute/machine.h"
#include "apis/compute/machine_class.h"
#include "apis/placement.h"
#include "apiserver/http/body.h"
#include "apiserver/http/reviews.h"
#include "apiserver/registry/write_parts.h"
#include "base/strings.h"
#include "meta/defaults.h"
#include "meta/validate.h"

namespace berth::apiserver {
namespace {

namespace dev = apis::berth_dev;

const meta::KindInfo* FindPlacedKind(const meta::Scheme& scheme,
                                     const dev::PlacementTarget& target) {
  if (!target.api_version.empty()) {
    const auto [group, version] = meta::SplitApiVersion(target.api_version);
    return scheme.FindKind(group, version, target.kind);
  }
  for (const meta::KindInfo* kind : scheme.kinds()) {
    if (kind->kind == target.kind && apis::IsPlaceable(*kind)) return kind;
  }
  return nullptr;
}

// What only the system writes, and a manifest that was read from a server may carry.
void ForgetState(meta::Object& draft) {
  meta::ObjectMeta& metadata = draft.metadata();
  metadata.uid.clear();
  metadata.resource_version.clear();
  metadata.deletion_timestamp.reset();
  metadata.managed_fields.clear();
  if (metadata.name.empty()) {
    // The place does not depend on it.
    metadata.name = metadata.generate_name.empty() ? "new" : metadata.generate_name + "new";
  }
  if (draft.kind().has_status) draft.ClearField("status");
}

}  // namespace

Result<meta::Object> PlacementReviews::DecodeDraft(Call& call,
                                                   const meta::Value& draft,
                                                   const std::string& field) const {
  const std::string api_version(draft.GetString({"apiVersion"}));
  const std::string kind_name(draft.GetString({"kind"}));
  const auto [group, version] = meta::SplitApiVersion(api_version);
  const meta::KindInfo* kind = deps_.scheme.FindKind(group, version, kind_name);
  if (kind == nullptr) {
    return BadRequest(field + ": no kind " + Quote(kind_name) + " is served in apiVersion " +
                      Quote(api_version));
  }
  TRY(const auto validation, ReadFieldValidation(call.query));
  const DecodeTarget target{.scheme = deps_.scheme, .kind = *kind, .api_version = api_version};
  TRY(auto object, DecodeObjectValue(draft, validation, target, call.warnings));
  meta::ObjectMeta& metadata = object.metadata();
  const bool has_namespace = kind->scope == meta::Scope::kNamespaced;
  if (has_namespace && metadata.namespace_.empty()) metadata.namespace_ = call.info.namespace_;
  if (has_namespace && metadata.namespace_ != call.info.namespace_) {
    return BadRequest(field + ".metadata.namespace " + Quote(metadata.namespace_) +
                      " is not the namespace of the review, " + Quote(call.info.namespace_));
  }
  ForgetState(object);
  meta::SetDefaults(object);
  meta::FieldErrors errors;
  meta::ValidateObject(object, errors);
  TRY_STATUS(errors.ToStatus(kind->kind, deps_.scheme.GroupOf(*kind), metadata.name));
  return object;
}

Result<std::vector<meta::Object>> PlacementReviews::DecodeRelated(
    Call& call, const std::vector<meta::Value>& related) const {
  std::vector<meta::Object> drafts;
  for (size_t i = 0; i < related.size(); ++i) {
    const std::string field = "spec.related[" + std::to_string(i) + "]";
    TRY(meta::Object draft, DecodeDraft(call, related[i], field));
    const meta::KindInfo& kind = draft.kind();
    if (!apis::IsPlaceable(kind) && &kind != &apis::compute::kMachineClassKind) {
      return BadRequest(field + ": no place depends on a " + std::string(kind.kind) +
                        "; give Machines, Volumes, VolumeSnapshots, Reservations, MachineClasses");
    }
    drafts.push_back(std::move(draft));
  }
  return drafts;
}

Status PlacementReviews::CheckMembersAreKnown(const Call& call) const {
  const meta::KindInfo& kind = apis::compute::kMachineKind;
  RequestInfo list;
  list.is_resource = true;
  list.verb = "list";
  list.group = deps_.scheme.GroupOf(kind);
  list.version = kind.version;
  list.namespace_ = call.info.namespace_;
  list.resource = kind.plural;
  list.kind = &kind;
  return deps_.authorizer.Check(call.identity, list);
}

rt::Task<Result<meta::Object>> PlacementReviews::FindTarget(CallPtr call,
                                                            dev::PlacementTarget target) const {
  const meta::KindInfo* kind = FindPlacedKind(deps_.scheme, target);
  if (kind == nullptr || !apis::IsPlaceable(*kind)) {
    co_return BadRequest("spec.objectRef.kind " + Quote(target.kind) +
                         " is none of Machine, Volume, VolumeSnapshot, Bucket, Reservation");
  }
  RequestInfo read;
  read.is_resource = true;
  read.verb = "get";
  read.group = deps_.scheme.GroupOf(*kind);
  read.version = kind->version;
  read.namespace_ = call->info.namespace_;
  read.resource = kind->plural;
  read.name = target.name;
  read.kind = kind;
  CO_TRY_STATUS(deps_.authorizer.Check(call->identity, read));
  ObjectKey key{.namespace_ = call->info.namespace_, .name = target.name};
  CO_TRY(const auto stored, co_await deps_.registry.Get(*kind, std::move(key), std::string()));
  co_return Decode(*kind, stored);
}

rt::Task<Result<net::HttpResponse>> PlacementReviews::Answer(CallPtr call) const {
  if (call->info.namespace_.empty()) {
    co_return BadRequest(
        "a PlacementReview is created in a namespace: POST to .../namespaces/NAME/" +
        call->info.resource);
  }
  CO_TRY(meta::Object review, DecodeReview(deps_.scheme, *call));
  const dev::PlacementReviewSpec& spec = review.as<dev::PlacementReview>().spec;
  meta::Object object;
  if (spec.object_ref) {
    CO_TRY(object, co_await FindTarget(call, *spec.object_ref));
  } else {
    CO_TRY(object, DecodeDraft(*call, spec.object, "spec.object"));
  }
  CO_TRY(const std::vector<meta::Object> related, DecodeRelated(*call, spec.related));
  if (&object.kind() == &dev::kMachineGroupKind) CO_TRY_STATUS(CheckMembersAreKnown(*call));
  if (deps_.hosts.advice == nullptr) co_return deps_.hosts.Missing();
  CO_TRY(review.as<dev::PlacementReview>().status,
         deps_.hosts.advice->Review({.object = object,
                                     .related = related,
                                     .copies = spec.copies.value_or(dev::kCopiesCounted)}));
  co_return ReviewAnswer(*call, review);
}

void PlacementReviews::WarnOfPlace(Call& call, const meta::Object& object) const {
  const bool has_place =
      apis::IsPlaceable(object.kind()) || &object.kind() == &dev::kMachineSetKind;
  if (deps_.hosts.advice == nullptr || !has_place) return;
  const auto answer = deps_.hosts.advice->Review({.object = object});
  if (!answer.ok()) {
    call.warnings.push_back("dry run: its place is not known: " +
                            std::string(answer.status().message()));
  } else if (answer->verdict != dev::kVerdictPlaced && answer->verdict != dev::kVerdictNotNeeded) {
    call.warnings.push_back("dry run: " + answer->message);
  }
}

}  // namespace berth::apiserver
