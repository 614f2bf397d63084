// SPDX-License-Identifier: Apache-2.0
// Requests as one user sends them to one server: with that user's credentials, below the path of
// the server's URL.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/kubeconfig/connection.h"
#include "cli/transport.h"
#include "net/http_client.h"
#include "rt/asio/asio_loop.h"

namespace berth::cli {

// BadRequest for certificates, keys or a URL that cannot be used. Connects with the first request.
Result<std::unique_ptr<net::HttpClient>> NewHttpClient(rt::AsioLoop& loop,
                                                       const Connection& connection);

class SignedRequests {
 public:
  SignedRequests() = default;
  // BadRequest if the server's URL is none.
  static Result<SignedRequests> For(const Connection& connection);

  net::HttpClientRequest Make(Request request) const;

 private:
  std::string prefix_;  // path of the server's URL
  std::string authorization_;
  std::string impersonate_user_;
  std::vector<std::string> impersonate_groups_;
};

}  // namespace berth::cli
