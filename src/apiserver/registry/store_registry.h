// SPDX-License-Identifier: Apache-2.0
// The Registry on a store and its watch cache.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "apiserver/cache/watch_cache.h"
#include "apiserver/registry.h"
#include "apiserver/registry/binding.h"
#include "apiserver/registry/changer.h"
#include "apiserver/registry/creator.h"
#include "apiserver/registry/event_leases.h"
#include "apiserver/registry/graveyard.h"
#include "apiserver/registry/pool_guards.h"
#include "apiserver/registry/quota_ledger.h"
#include "apiserver/registry/reads.h"
#include "meta/scheme.h"
#include "rt/loop.h"
#include "store/store.h"

namespace berth::apiserver {

class StoreRegistry final : public Registry {
 public:
  // Everything outlives the registry.
  StoreRegistry(rt::Loop& loop, store::Store& store, WatchCache& cache, const meta::Scheme& scheme);

  rt::Task<Result<StoredObject>> Get(const meta::KindInfo& kind,
                                     ObjectKey key,
                                     std::string resource_version) override;
  rt::Task<Result<ListPage>> List(const meta::KindInfo& kind, ListRequest request) override;
  rt::Task<Result<std::unique_ptr<RegistryWatch>>> Watch(const meta::KindInfo& kind,
                                                         WatchStart start) override;
  rt::Task<Result<WriteResult>> Create(meta::Object object, WriteContext context) override;
  rt::Task<std::vector<Result<WriteResult>>> CreateBatch(std::vector<meta::Object> objects,
                                                         WriteContext context) override;
  rt::Task<Result<WriteResult>> Update(meta::Object object, WriteContext context) override;
  rt::Task<Result<WriteResult>> Mutate(const meta::KindInfo& kind,
                                       ObjectKey key,
                                       Mutation mutation,
                                       WriteContext context) override;
  rt::Task<Result<DeleteResult>> Delete(const meta::KindInfo& kind,
                                        ObjectKey key,
                                        DeleteRequest request,
                                        WriteContext context) override;
  rt::Task<Result<ListPage>> DeleteCollection(const meta::KindInfo& kind,
                                              ListRequest which,
                                              DeleteRequest request,
                                              WriteContext context) override;
  client::Binder& binder() override { return binding_; }
  client::Tombstones& tombstones() override { return graveyard_; }
  client::Rewound& rewound() override { return binding_; }

 private:
  rt::Task<Result<ListPage>> DeletePage(const meta::KindInfo& kind,
                                        std::string namespace_,
                                        ListPage page,
                                        DeleteRequest request,
                                        WriteContext context);

  WatchCache& cache_;
  const meta::Scheme& scheme_;
  EventLeases leases_;
  QuotaLedger quota_;
  PoolGuards guards_;
  Graveyard graveyard_;
  Reads reads_;
  Creator creator_;
  Changer changer_;
  StoreBinder binding_;
};

}  // namespace berth::apiserver
