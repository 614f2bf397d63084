// SPDX-License-Identifier: Apache-2.0
// Runs a server in the foreground until SIGTERM or SIGINT.
#pragma once

#include "app/server.h"
#include "app/server_options.h"
#include "base/result.h"
#include "rt/asio/asio_loop.h"
#include "rt/task.h"

namespace berth::app {

// What goes along with a server, on its loop.
class Companion {
 public:
  virtual ~Companion() = default;
  // The server serves.
  virtual void Start(rt::AsioLoop& loop, const Server& server) = 0;
  // The server still serves, and stops next.
  virtual rt::Task<Status> Stop() = 0;
};

// Returns after the server has stopped; an error is why it did not start, or did not stop cleanly.
Status Serve(ServerOptions options, Companion& companion);

}  // namespace berth::app
