// SPDX-License-Identifier: Apache-2.0
// HttpsTransport is the real Transport: HTTP/1.1 over TLS on net::HttpClient. It owns a loop that
// runs while a call is in progress.
#pragma once

#include <memory>

#include "base/result.h"
#include "cli/https/servers.h"
#include "cli/kubeconfig/connection.h"
#include "cli/transport.h"

namespace berth::cli {

// BadRequest for certificates or keys that cannot be used. Connects with the first request.
Result<std::unique_ptr<Transport>> ConnectHttps(const Connection& connection,
                                                ServerTimes times = {});

}  // namespace berth::cli
