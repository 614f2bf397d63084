// SPDX-License-Identifier: Apache-2.0
// Health answers /livez, /readyz and /healthz as Kubernetes does: "ok" or what is wrong; with
// ?verbose one line per check, "[+]store ok" or "[-]store failed: reason", and a last line with the
// verdict; /readyz/store is one check by itself; ?exclude=store leaves one out. What is wrong is
// answered with 503.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "net/http.h"
#include "net/url.h"

namespace berth::apiserver {

class Health {
 public:
  struct Check {
    std::string name;
    std::function<Status()> look;  // Ok, or what is wrong; cheap, as anybody may ask at any time
  };
  // What has to be right for writes to be taken. That the process answers at all ("ping") is a
  // check of every path.
  explicit Health(std::vector<Check> ready);

  // Nullopt if the path is none of these, or names a check that is not there.
  std::optional<net::HttpResponse> Answer(std::string_view path, const net::Query& query) const;

 private:
  static net::HttpResponse Tell(std::string_view root,
                                std::span<const Check> checks,
                                const net::Query& query);

  std::vector<Check> live_;
  std::vector<Check> ready_;
};

}  // namespace berth::apiserver
