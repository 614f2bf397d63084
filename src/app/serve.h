// SPDX-License-Identifier: Apache-2.0
// Runs a server in the foreground until SIGTERM or SIGINT.
#pragma once

#include <functional>

#include "app/server.h"
#include "app/server_options.h"
#include "base/result.h"

namespace berth::app {

// `on_ready` is called once the server serves. Returns after it has stopped; an error is why it did
// not start, or did not stop cleanly.
Status Serve(ServerOptions options, const std::function<void(const Server&)>& on_ready);

}  // namespace berth::app
