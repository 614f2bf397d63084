// SPDX-License-Identifier: Apache-2.0
// A Resource is a kind as the server serves it, and the way to its objects.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "meta/value.h"

namespace berth::cli {

struct Resource {
  std::string group;  // "" is the core group
  std::string version;
  std::string plural;
  std::string singular;
  std::string kind;
  std::vector<std::string> short_names;
  std::vector<std::string> categories;
  std::vector<std::string> verbs;
  bool namespaced = false;
  // The group under which the same objects are kept; "" unless this one is an alias.
  std::string alias_of;

  std::string ApiVersion() const;
  // "machines.compute.ironcore.dev", "secrets".
  std::string QualifiedPlural() const;
  bool Can(std::string_view verb) const;
};

// "/apis/compute.ironcore.dev/v1alpha1/namespaces/default/machines/web/status". Empty parts are
// left out; a cluster-scoped kind ignores the namespace.
std::string PathOf(const Resource& resource,
                   std::string_view namespace_,
                   std::string_view name = {},
                   std::string_view subresource = {});
// "/api/v1" or "/apis/GROUP/VERSION".
std::string GroupVersionPath(std::string_view group, std::string_view version);

// "machine.compute.ironcore.dev/web", as kubectl names objects: kind in lower case, group, name.
std::string ObjectLabel(std::string_view api_version, std::string_view kind, std::string_view name);
std::string ObjectLabel(const meta::Value& object);

}  // namespace berth::cli
