// SPDX-License-Identifier: Apache-2.0
#include "apiserver/registry/store_registry.h"

#include <algorithm>
#include <utility>

#include "apiserver/cache/keys.h"
#include "apiserver/errors.h"
#include "base/strings.h"
#include "rt/join_all.h"

namespace berth::apiserver {

namespace {

// A collection is deleted in pages of this many, at once: 64 deletions share a few fsyncs.
constexpr size_t kDeletePage = 64;

// Kubernetes' own kinds may be replaced without saying which state was read; ours, and leases,
// which are locks, may not.
bool AllowsUnconditionalUpdate(const meta::KindInfo& kind) {
  return kind.naming == meta::GroupNaming::kFixed && kind.kind != "Lease";
}

Result<meta::Object> Keep(const meta::Object& object) { return object; }

}  // namespace

StoreRegistry::StoreRegistry(rt::Loop& loop,
                             store::Store& store,
                             WatchCache& cache,
                             const meta::Scheme& scheme)
    : cache_(cache),
      scheme_(scheme),
      leases_(loop, store),
      quota_(scheme, cache),
      guards_(store, cache, scheme),
      graveyard_(store),
      reads_(store, cache, scheme),
      creator_({.loop = loop, .store = store, .cache = cache, .scheme = scheme, .leases = leases_},
               quota_),
      changer_({.loop = loop, .store = store, .cache = cache, .scheme = scheme, .leases = leases_},
               quota_,
               guards_,
               graveyard_),
      binding_({.loop = loop, .store = store, .cache = cache, .scheme = scheme, .leases = leases_},
               guards_,
               creator_) {}

rt::Task<Result<StoredObject>> StoreRegistry::Get(const meta::KindInfo& kind,
                                                  ObjectKey key,
                                                  std::string resource_version) {
  return reads_.Get(kind, std::move(key), std::move(resource_version));
}

rt::Task<Result<ListPage>> StoreRegistry::List(const meta::KindInfo& kind, ListRequest request) {
  return reads_.List(kind, std::move(request));
}

rt::Task<Result<std::unique_ptr<RegistryWatch>>> StoreRegistry::Watch(const meta::KindInfo& kind,
                                                                      WatchStart start) {
  return cache_.Watch(kind, std::move(start));
}

rt::Task<Result<WriteResult>> StoreRegistry::Create(meta::Object object, WriteContext context) {
  std::vector<meta::Object> objects;
  objects.push_back(std::move(object));
  std::vector<Result<WriteResult>> results =
      co_await creator_.Create(std::move(objects), std::move(context));
  co_return std::move(results.front());
}

rt::Task<std::vector<Result<WriteResult>>> StoreRegistry::CreateBatch(
    std::vector<meta::Object> objects, WriteContext context) {
  return creator_.Create(std::move(objects), std::move(context));
}

rt::Task<Result<WriteResult>> StoreRegistry::Update(meta::Object object, WriteContext context) {
  const meta::KindInfo& kind = object.kind();
  const meta::ObjectMeta& metadata = object.metadata();
  if (metadata.resource_version.empty() && !AllowsUnconditionalUpdate(kind)) {
    co_return KindErrors(scheme_, kind).ResourceVersionRequired(metadata.name);
  }
  ObjectKey key{.namespace_ = metadata.namespace_, .name = metadata.name};
  Mutation replace = [object = std::move(object)](const meta::Object&) { return Keep(object); };
  co_return co_await changer_.Mutate(kind, std::move(key), std::move(replace), std::move(context));
}

rt::Task<Result<WriteResult>> StoreRegistry::Mutate(const meta::KindInfo& kind,
                                                    ObjectKey key,
                                                    Mutation mutation,
                                                    WriteContext context) {
  return changer_.Mutate(kind, std::move(key), std::move(mutation), std::move(context));
}

rt::Task<Result<DeleteResult>> StoreRegistry::Delete(const meta::KindInfo& kind,
                                                     ObjectKey key,
                                                     DeleteRequest request,
                                                     WriteContext context) {
  return changer_.Delete(kind, std::move(key), std::move(request), std::move(context));
}

rt::Task<Result<ListPage>> StoreRegistry::DeleteCollection(const meta::KindInfo& kind,
                                                           ListRequest which,
                                                           DeleteRequest request,
                                                           WriteContext context) {
  const bool wants_all = which.limit == 0;
  if (wants_all) which.limit = kDeletePage;
  const std::string namespace_ = which.selection.namespace_;
  ListPage deleted;
  do {
    CO_TRY(ListPage page, co_await List(kind, which));
    which.continue_token = page.continue_token;
    which.resource_version.clear();
    which.resource_version_match.clear();
    CO_TRY(page, co_await DeletePage(kind, namespace_, std::move(page), request, context));
    std::ranges::move(page.items, std::back_inserter(deleted.items));
    deleted.revision = page.revision;
    deleted.continue_token = page.continue_token;
    deleted.remaining = page.remaining;
  } while (wants_all && !which.continue_token.empty());
  co_return deleted;
}

// Deletes what is on the page; an object that is gone or new by now is none of its business. One of
// another namespace cannot be on it, and if it were, nothing would be deleted.
rt::Task<Result<ListPage>> StoreRegistry::DeletePage(const meta::KindInfo& kind,
                                                     std::string namespace_,
                                                     ListPage page,
                                                     DeleteRequest request,
                                                     WriteContext context) {
  std::vector<rt::Task<Result<DeleteResult>>> deletions;
  for (const StoredObject& item : page.items) {
    CO_TRY(const meta::Object object, Decode(StoredKind(kind), item));
    if (!namespace_.empty() && object.metadata().namespace_ != namespace_) {
      co_return Internal(std::string(kind.plural) + " " + Quote(object.metadata().name) +
                         " is of namespace " + Quote(object.metadata().namespace_) + ", not of " +
                         Quote(namespace_) + ": nothing of this page is deleted");
    }
    DeleteRequest one = request;
    if (one.uid.empty()) one.uid = object.metadata().uid;
    ObjectKey key{.namespace_ = object.metadata().namespace_, .name = object.metadata().name};
    deletions.push_back(Delete(kind, std::move(key), std::move(one), context));
  }
  page.items.clear();
  Status first_error;
  for (Result<DeleteResult>& result : co_await rt::JoinAll(std::move(deletions))) {
    if (result.ok()) {
      page.items.push_back(std::move(result->object));
    } else if (!result.status().Is(Reason::kNotFound) && first_error.ok() &&
               !(request.uid.empty() && result.status().Is(Reason::kConflict))) {
      first_error = result.status();
    }
  }
  if (!first_error.ok()) co_return first_error;
  co_return page;
}

}  // namespace berth::apiserver
