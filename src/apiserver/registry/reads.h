// SPDX-License-Identifier: Apache-2.0
// Reading objects: from the watch cache wherever it can answer, from the store's history where it
// cannot.
#pragma once

#include <string>
#include <string_view>

#include "apiserver/cache/matcher.h"
#include "apiserver/cache/watch_cache.h"
#include "apiserver/registry.h"
#include "meta/scheme.h"
#include "rt/task.h"
#include "store/store.h"

namespace berth::apiserver {

class Reads {
 public:
  Reads(store::Store& store, WatchCache& cache, const meta::Scheme& scheme)
      : store_(store), cache_(cache), scheme_(scheme) {}

  // Waits until the cache is as new as a read with this resourceVersion must be: "" as new as the
  // store, "0" as it is, otherwise at least that revision.
  rt::Task<Status> Freshen(std::string resource_version);

  rt::Task<Result<StoredObject>> Get(const meta::KindInfo& kind,
                                     ObjectKey key,
                                     std::string resource_version);
  rt::Task<Result<ListPage>> List(const meta::KindInfo& kind, ListRequest request);

 private:
  // Where a page begins, and how it is cut.
  struct PageStart {
    std::string after;  // key suffix; "" from the beginning
    size_t limit = 0;
    bool wants_remaining = true;
    bool wants_keys = false;
  };
  ListPage FromCache(const KindCache& objects,
                     const Matcher& matcher,
                     const PageStart& start) const;
  rt::Task<Result<ListPage>> FromStore(const meta::KindInfo& kind,
                                       Matcher matcher,
                                       PageStart start,
                                       store::Revision revision);

  store::Store& store_;
  WatchCache& cache_;
  const meta::Scheme& scheme_;
};

}  // namespace berth::apiserver
