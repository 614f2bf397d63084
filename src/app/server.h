// SPDX-License-Identifier: Apache-2.0
// A Server is the whole control plane in one process: store, cache, registry, policy, the HTTPS
// front, and while it leads, which it always does on a store of its own, what hosts need. This is
// the place where they are put together; everything else gets what it needs handed in.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "app/server_options.h"
#include "base/result.h"
#include "rt/asio/asio_loop.h"
#include "rt/task.h"

namespace berth::app {

class Server {
 public:
  // Serves when it returns. Errors name the folder, file or address that is in the way, and nothing
  // is left running.
  static rt::Task<Result<std::unique_ptr<Server>>> Start(rt::AsioLoop& loop, ServerOptions options);
  // REQUIRES: Stop() was awaited.
  ~Server();

  // Ends requests, then controllers, then the store, in this order.
  rt::Task<Status> Stop();

  const std::string& url() const;              // "https://127.0.0.1:7443"
  const std::string& gateway_address() const;  // "127.0.0.1:7444"
  const std::string& kubeconfig_path() const;  // of the administrator
  uint16_t port() const;
  uint16_t gateway_port() const;

 private:
  struct Parts;
  explicit Server(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace berth::app
