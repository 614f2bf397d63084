// SPDX-License-Identifier: Apache-2.0
#include "apiserver/registry/write_parts.h"

#include <utility>

#include "apis/core/resource_quota.h"
#include "apis/quota/names.h"
#include "apiserver/cache/keys.h"
#include "apiserver/errors.h"
#include "base/log.h"
#include "meta/at_rest.h"
#include "meta/field_errors.h"
#include "meta/validate.h"

namespace berth::apiserver {

namespace {

void ValidateAlone(const meta::Scheme& scheme,
                   const meta::Object& object,
                   meta::FieldErrors& errors) {
  if (&object.kind() != &apis::core::kResourceQuotaKind) {
    meta::ValidateObject(object, errors);
    return;
  }
  // Quotas may name groups through any served domain; their rules know the canonical names only.
  meta::Object canonical = object;
  auto& limits = canonical.as<apis::core::ResourceQuota>().spec.hard;
  limits = apis::quota::Canonical(scheme, limits);
  meta::ValidateObject(canonical, errors);
}

}  // namespace

std::optional<meta::Object> CacheSource::Find(const meta::KindInfo& kind,
                                              const ObjectKey& key) const {
  const StoredObject* stored = cache_.Of(kind).Find(KeySuffix(key));
  if (stored == nullptr) return std::nullopt;
  Result<meta::Object> object = Decode(StoredKind(kind), *stored);
  if (!object.ok()) {
    LOG_ERROR("{} {}: {}", kind.plural, KeySuffix(key), object.status().ToString());
    return std::nullopt;
  }
  return *std::move(object);
}

std::vector<meta::Object> CacheSource::List(const meta::KindInfo& kind,
                                            std::string_view namespace_) const {
  std::vector<meta::Object> objects;
  const KindCache::Objects& all = cache_.Of(kind).objects();
  const std::string scope = namespace_.empty() ? "" : std::string(namespace_) + '/';
  for (auto at = all.lower_bound(scope); at != all.end() && at->first.starts_with(scope); ++at) {
    Result<meta::Object> object = Decode(StoredKind(kind), at->second);
    if (object.ok()) {
      objects.push_back(*std::move(object));
    } else {
      LOG_ERROR("{} {}: {}", kind.plural, at->first, object.status().ToString());
    }
  }
  return objects;
}

Status Validate(const meta::Scheme& scheme,
                const meta::Object* before,
                const meta::Object& object,
                Subresource subresource) {
  const meta::KindInfo& kind = object.kind();
  meta::FieldErrors errors;
  ValidateAlone(scheme, object, errors);
  // Limits come later than objects: what is stored may stay, or nobody could ever write its status
  // or take a finalizer from it.
  if (before != nullptr && errors.Has(CauseKind::kTooLong)) {
    meta::FieldErrors stored;
    ValidateAlone(scheme, *before, stored);
    errors.ForgiveTooLong(stored);
  }
  if (before != nullptr) {
    meta::ValidateMetadataUpdate(object.metadata(), before->metadata(), errors);
  }
  if (before != nullptr && subresource == Subresource::kStatus) {
    if (kind.validate_status_update != nullptr) {
      kind.validate_status_update(object.data(), before->data(), errors);
    }
  } else if (before != nullptr && kind.validate_update != nullptr) {
    kind.validate_update(object.data(), before->data(), errors);
  }
  return KindErrors(scheme, kind).Invalid(object.metadata().name, errors);
}

Status ValidateView(const meta::Scheme& scheme, const meta::Object& object) {
  const meta::KindInfo& kind = object.kind();
  if (kind.view == nullptr || kind.validate == nullptr) return OkStatus();
  meta::FieldErrors errors;
  kind.validate(object.data(), errors);
  return KindErrors(scheme, kind).Invalid(object.metadata().name, errors);
}

Status CheckSize(const meta::Scheme& scheme, const meta::Object& object, const Bytes& at_rest) {
  if (at_rest.size() <= kMaxObjectBytes) return OkStatus();  // as most, header and all
  TRY(const meta::AtRestView view, meta::AtRestView::Parse(at_rest.view()));
  if (view.body().size() <= kMaxObjectBytes && at_rest.size() <= store::kMaxValueBytes) {
    return OkStatus();
  }
  return KindErrors(scheme, object.kind())
      .TooLarge(object.metadata().name, view.body().size(), kMaxObjectBytes);
}

Result<Bytes> Encode(const meta::Scheme& scheme, const meta::Object& object) {
  Bytes bytes = meta::EncodeAtRest(object);
  TRY_STATUS(CheckSize(scheme, object, bytes));
  return bytes;
}

Result<meta::Object> Decode(const meta::KindInfo& kind, const StoredObject& stored) {
  return meta::DecodeAtRest(kind, stored.at_rest.view(), FormatResourceVersion(stored.revision));
}

meta::Object ToStored(meta::Object object) {
  const meta::KindView* view = object.kind().view;
  if (view == nullptr) return object;
  meta::Object stored(*view->stored);
  view->to_stored(object.data(), stored.data());
  return stored;
}

meta::Object FromStored(const meta::KindInfo& asked, meta::Object stored) {
  if (asked.view == nullptr) return stored;
  meta::Object view(asked);
  asked.view->from_stored(stored.data(), view.data());
  return view;
}

}  // namespace berth::apiserver
