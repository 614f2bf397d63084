// SPDX-License-Identifier: Apache-2.0
// What creating, changing and deleting objects have in common.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apiserver/admission/admission.h"
#include "apiserver/cache/watch_cache.h"
#include "apiserver/registry.h"
#include "apiserver/registry/event_leases.h"
#include "base/result.h"
#include "meta/object.h"
#include "meta/scheme.h"
#include "rt/loop.h"
#include "store/store.h"

namespace berth::apiserver {

// The largest object, as clients send it. The store's own limit leaves room for the header.
constexpr size_t kMaxObjectBytes = 1024 * 1024;

// How often a write is tried again when others change what it depends on. Each attempt sees a newer
// state, so failing this often means that the object is fought over.
constexpr int kCommitAttempts = 16;

// The watch cache as admission sees it.
class CacheSource final : public ObjectSource {
 public:
  explicit CacheSource(const WatchCache& cache) : cache_(cache) {}
  std::optional<meta::Object> Find(const meta::KindInfo& kind, const ObjectKey& key) const override;
  std::vector<meta::Object> List(const meta::KindInfo& kind,
                                 std::string_view namespace_) const override;

 private:
  const WatchCache& cache_;
};

struct WriteParts {
  rt::Loop& loop;
  store::Store& store;
  WatchCache& cache;
  const meta::Scheme& scheme;
  EventLeases& leases;
};

// Every rule of the object's kind, all causes at once. `before` is null for a new object.
Status Validate(const meta::Scheme& scheme,
                const meta::Object* before,
                const meta::Object& object,
                Subresource subresource);

// The rules that only the view of an object has; ok for all that is no view.
Status ValidateView(const meta::Scheme& scheme, const meta::Object& object);

// RequestTooLarge if there are more bytes than an object may have.
Status CheckSize(const meta::Scheme& scheme, const meta::Object& object, const Bytes& at_rest);
// The bytes to store; RequestTooLarge if they are too many.
Result<Bytes> Encode(const meta::Scheme& scheme, const meta::Object& object);
Result<meta::Object> Decode(const meta::KindInfo& kind, const StoredObject& stored);

// An object of a view kind as it is stored, and the way back. Other objects stay as they are.
meta::Object ToStored(meta::Object object);
meta::Object FromStored(const meta::KindInfo& asked, meta::Object stored);

}  // namespace berth::apiserver
