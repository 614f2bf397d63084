// SPDX-License-Identifier: Apache-2.0
// Where an etcd is and how to speak to it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "net/rpc.h"

namespace berth::store {

inline constexpr std::string_view kEtcdScheme = "etcd://";
// A cluster has 3, 5 or 7 members; more names than this are a mistake.
inline constexpr size_t kEtcdEndpointsMax = 16;

struct EtcdOptions {
  std::vector<std::string> endpoints;  // "host:port" of members, in the order of preference
  // With `ca_pem` connections use TLS 1.3, and the certificate if there is one; without it they are
  // plain.
  net::RpcCredentials credentials;
  std::string user;  // "": no authentication
  std::string password;

  Duration dial_timeout = Duration::Seconds(2);
  // Of one try of one call: a member that is silent for so long is left for another one. etcd
  // itself gives a proposal up after 7 s; an election takes 1 to 2 s.
  Duration try_timeout = Duration::Seconds(4);
  // Of a call with all its tries.
  Duration call_timeout = Duration::Seconds(10);

  bool uses_tls() const { return !credentials.ca_pem.empty(); }
};

// Reads "etcd://host:port,host:port" into `endpoints`. BadRequest names the text and what is wrong.
Status ParseEtcdUrl(std::string_view text, EtcdOptions& options);

}  // namespace berth::store
