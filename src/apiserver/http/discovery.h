// SPDX-License-Identifier: Apache-2.0
// Discovery: which groups, versions and resources are served. Made from the scheme when asked for;
// clients cache it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "meta/scheme.h"
#include "meta/value.h"

namespace berth::apiserver {

class Discovery {
 public:
  explicit Discovery(const meta::Scheme& scheme) : scheme_(scheme) {}

  // The document at a path: /api, /apis, /api/v1, /apis/GROUP, /apis/GROUP/VERSION. Nullopt: not a
  // discovery path or nothing served there. The group may be in any spelling of its domain; the
  // answer has the configured one.
  std::optional<meta::Value> Find(std::string_view path) const;
  // /api or /apis with everything below it, in the given version of apidiscovery.k8s.io. Nullopt:
  // another path.
  std::optional<meta::Value> FindWhole(std::string_view path, const std::string& version) const;
  // What stands at "/": every path that can be read.
  meta::Value Paths() const;

 private:
  meta::Value CoreVersions() const;
  meta::Value GroupList() const;
  meta::Value Group(std::string_view group) const;
  meta::Value Resources(const meta::ServedGroup& served) const;

  const meta::Scheme& scheme_;
};

}  // namespace berth::apiserver
