// SPDX-License-Identifier: Apache-2.0
// The store of a server: embedded in its data folder, or an etcd.
#pragma once

#include <memory>
#include <string>

#include "app/server_options.h"
#include "base/result.h"
#include "rt/asio/asio_loop.h"
#include "rt/task.h"
#include "store/store.h"

namespace berth::store {
class CommitObserver;
}

namespace berth::app {

class ServerStore {
 public:
  // `observer` is for the embedded store and may be null. Errors name the folder or the address.
  static rt::Task<Result<std::unique_ptr<ServerStore>>> Open(rt::AsioLoop& loop,
                                                             ServerOptions options,
                                                             store::CommitObserver* observer);
  // REQUIRES: Close() was awaited.
  virtual ~ServerStore() = default;

  virtual store::Store& handle() = 0;
  // What the data folder is known by among those who use the store; "" if nobody else does.
  virtual std::string id() const { return ""; }
  // Ok, or why the store does not take writes.
  virtual Status health() const = 0;
  // What the store needs while it is used; runs until it is cancelled.
  virtual rt::Task<Status> Upkeep() = 0;
  virtual rt::Task<Status> Close() = 0;
};

}  // namespace berth::app
