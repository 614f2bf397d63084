// SPDX-License-Identifier: Apache-2.0
#include "cli/api/resource.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/strings.h"

namespace berth::cli {

std::string Resource::ApiVersion() const {
  return group.empty() ? version : fmt::format("{}/{}", group, version);
}

std::string Resource::QualifiedPlural() const {
  return group.empty() ? plural : fmt::format("{}.{}", plural, group);
}

bool Resource::Can(std::string_view verb) const {
  return std::ranges::find(verbs, verb) != verbs.end();
}

std::string GroupVersionPath(std::string_view group, std::string_view version) {
  return group.empty() ? fmt::format("/api/{}", version)
                       : fmt::format("/apis/{}/{}", group, version);
}

std::string PathOf(const Resource& resource,
                   std::string_view namespace_,
                   std::string_view name,
                   std::string_view subresource) {
  std::string out = GroupVersionPath(resource.group, resource.version);
  if (resource.namespaced && !namespace_.empty()) out += fmt::format("/namespaces/{}", namespace_);
  out += fmt::format("/{}", resource.plural);
  if (!name.empty()) out += fmt::format("/{}", name);
  if (!subresource.empty()) out += fmt::format("/{}", subresource);
  return out;
}

std::string ObjectLabel(std::string_view api_version,
                        std::string_view kind,
                        std::string_view name) {
  std::string out = ToLower(kind);
  if (const size_t slash = api_version.find('/'); slash != std::string_view::npos) {
    out += fmt::format(".{}", api_version.substr(0, slash));
  }
  return Printable(fmt::format("{}/{}", out, name));
}

std::string ObjectLabel(const meta::Value& object) {
  return ObjectLabel(object.GetString({"apiVersion"}),
                     object.GetString({"kind"}),
                     object.GetString({"metadata", "name"}));
}

}  // namespace berth::cli
