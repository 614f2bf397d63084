// SPDX-License-Identifier: Apache-2.0
#include "cli/objects/targets.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "base/strings.h"
#include "cli/failure.h"

namespace berth::cli {
namespace {

Result<Target> FindPair(Discovery& discovery, const std::string& word) {
  const auto parts = Split(word, '/');
  if (parts.size() != 2 || parts[0].empty() || parts[1].empty()) {
    return BadRequest(fmt::format("{} is not KIND/NAME", Quote(word)));
  }
  TRY(Resource resource, discovery.FindByWord(parts[0]));
  return Target{.resource = std::move(resource), .name = std::string(parts[1])};
}

// One word of a comma list: a kind, or a category such as "all" or "pools".
Status AddKind(Discovery& discovery, std::string_view word, std::vector<Target>& out) {
  Result<Resource> kind = discovery.FindByWord(word);
  if (kind.ok()) {
    out.push_back({.resource = *std::move(kind), .name = {}});
    return OkStatus();
  }
  if (!kind.status().Is(Reason::kNotFound)) return kind.status();
  TRY(const std::vector<Resource> members, discovery.FindByCategory(ToLower(word)));
  if (members.empty()) return kind.status();
  for (const Resource& resource : members) out.push_back({.resource = resource, .name = {}});
  return OkStatus();
}

}  // namespace

Result<std::vector<Target>> FindTargets(Discovery& discovery,
                                        const std::vector<std::string>& words) {
  std::vector<Target> out;
  const bool pairs = words.front().contains('/');
  for (const std::string& word : words) {
    if (word.contains('/') != pairs) {
      return Advise(
          BadRequest(fmt::format("{}: KIND/NAME and KIND NAME cannot be mixed", Quote(word))),
          "write every object as KIND/NAME");
    }
    if (!pairs) continue;
    TRY(Target target, FindPair(discovery, word));
    out.push_back(std::move(target));
  }
  if (pairs) return out;
  for (const std::string_view kind : Split(words.front(), ',')) {
    if (!kind.empty()) TRY_STATUS(AddKind(discovery, kind, out));
  }
  if (words.size() == 1) return out;
  if (out.size() != 1) {
    return Advise(BadRequest("names belong to one kind"), "write every object as KIND/NAME");
  }
  Target kind = std::move(out.front());
  out.clear();
  for (size_t i = 1; i < words.size(); ++i) {
    if (words[i].empty()) return BadRequest("a name is empty");
    out.push_back({.resource = kind.resource, .name = words[i]});
  }
  return out;
}

Result<std::vector<Target>> FindNamedTargets(Discovery& discovery,
                                             const std::vector<std::string>& words,
                                             std::string_view usage) {
  if (words.empty()) return Advise(BadRequest("no object is named"), usage);
  TRY(std::vector<Target> out, FindTargets(discovery, words));
  for (const Target& target : out) {
    if (target.name.empty()) {
      return Advise(BadRequest(fmt::format("{}: no name is given", target.resource.plural)), usage);
    }
  }
  return out;
}

Result<std::vector<Target>> FindMachines(Discovery& discovery,
                                         const std::vector<std::string>& words) {
  if (words.empty()) {
    return Advise(BadRequest("no machine is named"), "berth get machines shows their names");
  }
  std::vector<Target> machines;
  for (const std::string& word : words) {
    TRY(Target target, FindPair(discovery, word.contains('/') ? word : "machine/" + word));
    if (target.resource.plural != "machines") {
      return BadRequest(fmt::format("{} is not a machine", Quote(word)));
    }
    machines.push_back(std::move(target));
  }
  return machines;
}

}  // namespace berth::cli
