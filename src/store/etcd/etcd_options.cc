// SPDX-License-Identifier: Apache-2.0
#include "store/etcd/etcd_options.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/strings.h"
#include "net/url.h"

namespace berth::store {

Status ParseEtcdUrl(std::string_view text, EtcdOptions& options) {
  const auto bad = [text](std::string_view why) {
    return BadRequest(fmt::format(
        "store {}: {}, as in etcd://10.0.0.1:2379,10.0.0.2:2379", Quote(text.substr(0, 256)), why));
  };
  if (!text.starts_with(kEtcdScheme)) return bad("it begins with etcd://");
  const std::string_view list = text.substr(kEtcdScheme.size());
  if (list.find('@') != std::string_view::npos) {
    return bad("a user is given with --etcd-user and --etcd-password-file, not in the address");
  }
  if (list.find('/') != std::string_view::npos) {
    return bad("nothing follows the addresses: an etcd belongs to one Berth");
  }
  options.endpoints.clear();
  for (const std::string_view part : Split(list, ',')) {
    const auto where = net::ParseHostPort(Trim(part), 0);
    if (!where.ok()) return bad(where.status().message());
    std::string endpoint = net::FormatHostPort(where->host, where->port);
    if (std::ranges::find(options.endpoints, endpoint) != options.endpoints.end()) {
      return bad(fmt::format("{} is named twice", endpoint));
    }
    options.endpoints.push_back(std::move(endpoint));
  }
  if (options.endpoints.size() > kEtcdEndpointsMax) {
    return bad(fmt::format("it names {} members, at most {} are allowed",
                           options.endpoints.size(),
                           kEtcdEndpointsMax));
  }
  return OkStatus();
}

}  // namespace berth::store
