// SPDX-License-Identifier: Apache-2.0
// Discovery finds kinds by what people type and by what manifests say. It asks the server for as
// few group-versions as the question needs and remembers the answers.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cli/api/api.h"
#include "cli/api/resource.h"

namespace berth::cli {

struct GroupVersions {
  std::string group;
  std::vector<std::string> versions;  // preferred first
};

class Discovery {
 public:
  explicit Discovery(Api& api) : api_(api) {}

  // Plural, singular, short name or kind in any case; optionally ".group" or ".version.group".
  // Groups are searched in the server's order, so that a word means the same as for kubectl.
  // NotFound suggests the nearest word.
  Result<Resource> FindByWord(std::string_view word);
  // All resources of a category ("all"), or empty.
  Result<std::vector<Resource>> FindByCategory(std::string_view category);
  Result<Resource> FindByKind(std::string_view api_version, std::string_view kind);

  // The core group first, then the server's order.
  Result<std::vector<GroupVersions>> Groups();
  // Every resource of every group's preferred version, without subresources.
  Result<std::vector<Resource>> All();

 private:
  Result<std::vector<Resource>> Resources(const std::string& group, const std::string& version);
  Result<Resource> FindQualified(std::string_view word, std::string_view rest);
  void MarkAliases(std::vector<Resource>& resources) const;

  Api& api_;
  std::vector<GroupVersions> groups_;                    // empty until asked for
  std::map<std::string, std::vector<Resource>> served_;  // by "group/version"
};

}  // namespace berth::cli
