// SPDX-License-Identifier: Apache-2.0
// An EtcdStore is the store for several servers: an etcd, over its v3 API. The etcd belongs to one
// Berth; its revisions are ours.
//
//   CO_TRY(auto store, co_await EtcdStore::Open(loop, options));
//   std::unique_ptr<Store> handle = store->NewHandle();
#pragma once

#include <memory>

#include "base/result.h"
#include "rt/asio/asio_loop.h"
#include "rt/task.h"
#include "store/etcd/etcd_options.h"
#include "store/store.h"

namespace berth::store {

class EtcdEngine;

class EtcdStore {
 public:
  // Connects, which is tried for `call_timeout`. Unavailable if no member answers; Unauthorized or
  // Forbidden say what etcd wants.
  static rt::Task<Result<std::unique_ptr<EtcdStore>>> Open(rt::AsioLoop& loop, EtcdOptions options);
  // REQUIRES: Close() was awaited.
  ~EtcdStore();

  // Handles share the store and keep it alive.
  std::unique_ptr<Store> NewHandle();
  // Ok, or why the store is not in order: etcd is not reached, or takes no writes.
  Status health() const;
  // Ends the watches with Unavailable, breaks off what is in progress, refuses the rest.
  rt::Task<Status> Close();

 private:
  explicit EtcdStore(std::shared_ptr<EtcdEngine> engine);
  std::shared_ptr<EtcdEngine> engine_;
};

}  // namespace berth::store
