// SPDX-License-Identifier: Apache-2.0
#include "apiserver/http/adoption.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "apis/adoption.h"
#include "apiserver/registry/write_parts.h"
#include "base/strings.h"

namespace berth::apiserver {
namespace {

RequestInfo AdoptRequest(const Authorizer& authorizer,
                         const meta::KindInfo& pool,
                         const std::string& name) {
  return {.is_resource = true,
          .verb = "adopt",
          .group = authorizer.scheme().GroupOf(pool),
          .version = std::string(pool.version),
          .resource = std::string(pool.plural),
          .name = name};
}

}  // namespace

rt::Task<Status> Adoption::Admit(CallPtr call, meta::Object* object, WriteContext* context) const {
  if (!apis::IsPlaceable(object->kind())) co_return OkStatus();
  auto& annotations = object->metadata().annotations;
  const auto asked = annotations.find(std::string(apis::kAdoptAnnotation));
  if (asked == annotations.end()) co_return OkStatus();
  const std::string uid = asked->second;
  annotations.erase(asked);
  const meta::KindInfo& kind = object->kind();
  const std::string field = "spec." + std::string(apis::PoolRefField(kind));
  const auto& chosen = apis::PoolRefOf(*object);
  if (!chosen || uid.empty()) {
    co_return BadRequest("annotation " + std::string(apis::kAdoptAnnotation) +
                         " needs a UID, and the pool that has it in " + field);
  }
  const meta::KindInfo& pool_kind = apis::PoolKindOf(kind);
  const std::string name = chosen->name;
  CO_TRY_STATUS(
      deps_.authorizer.Check(call->identity, AdoptRequest(deps_.authorizer, pool_kind, name)));
  if (deps_.hosts.fleet == nullptr) co_return deps_.hosts.Missing();
  const ObjectKey key{.namespace_ = "", .name = name};
  CO_TRY(const StoredObject stored, co_await deps_.registry.Get(pool_kind, key, std::string()));
  CO_TRY(const meta::Object pool, Decode(pool_kind, stored));
  const meta::ObjectMeta& metadata = object->metadata();
  const std::vector<fleet::Orphan> orphans = deps_.hosts.fleet->OrphansOf(pool.metadata().uid);
  const bool is_there = std::ranges::any_of(orphans, [&](const fleet::Orphan& orphan) {
    return orphan.uid == uid && orphan.kind == kind.kind && orphan.name == metadata.name &&
           orphan.namespace_ == metadata.namespace_;
  });
  if (!is_there) {
    co_return NotFound(std::string(pool_kind.singular) + " " + Quote(name) + " shows no orphan " +
                       std::string(kind.singular) + " " +
                       Quote(metadata.namespace_ + "/" + metadata.name) + " with UID " +
                       Quote(uid));
  }
  context->adopted_uid = uid;
  co_return OkStatus();
}

}  // namespace berth::apiserver
