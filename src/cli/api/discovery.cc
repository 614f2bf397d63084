// SPDX-License-Identifier: Apache-2.0
#include "cli/api/discovery.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "base/strings.h"
#include "cli/api/known_kinds.h"
#include "cli/failure.h"

namespace berth::cli {
namespace {

using meta::Value;

// More than any server has; what a broken one sends beyond it is not kept.
constexpr size_t kGroupsMax = 512;
constexpr size_t kResourcesMax = 4096;

std::vector<std::string> Strings(const Value* list) {
  std::vector<std::string> out;
  if (list == nullptr || !list->is_array()) return out;
  for (const Value& item : list->items()) {
    if (item.is_string()) out.push_back(item.as_string());
  }
  return out;
}

const std::vector<Value>& Items(const Value& object, std::string_view key) {
  static const std::vector<Value> kNone;
  const Value* list = object.Find(key);
  return list != nullptr && list->is_array() ? list->items() : kNone;
}

Resource ReadResource(const Value& value, std::string_view group, std::string_view version) {
  const Value* namespaced = value.Find("namespaced");
  Resource out{.group = std::string(group),
               .version = std::string(version),
               .plural = std::string(value.GetString({"name"})),
               .singular = std::string(value.GetString({"singularName"})),
               .kind = std::string(value.GetString({"kind"})),
               .short_names = Strings(value.Find("shortNames")),
               .categories = Strings(value.Find("categories")),
               .verbs = Strings(value.Find("verbs"))};
  out.namespaced =
      namespaced != nullptr && namespaced->type() == Value::Type::kBool && namespaced->as_bool();
  if (out.singular.empty()) out.singular = ToLower(out.kind);
  return out;
}

bool Answers(const Resource& resource, std::string_view word) {
  const auto same = [word](std::string_view name) { return EqualsIgnoreCase(name, word); };
  return same(resource.plural) || same(resource.singular) || same(resource.kind) ||
         std::ranges::any_of(resource.short_names, same);
}

const Resource* Match(const std::vector<Resource>& resources, std::string_view word) {
  const auto found = std::ranges::find_if(
      resources, [word](const Resource& resource) { return Answers(resource, word); });
  return found == resources.end() ? nullptr : &*found;
}

Status NoSuchKind(std::string_view word, const std::vector<Resource>& known) {
  std::vector<std::string> words;
  for (const Resource& resource : known) {
    words.push_back(resource.plural);
    words.push_back(resource.singular);
    words.insert(words.end(), resource.short_names.begin(), resource.short_names.end());
  }
  std::string message = fmt::format("the server has no kind {}", Quote(word));
  if (const auto nearest = Nearest(ToLower(word), words)) {
    message += fmt::format("; did you mean {}?", Quote(*nearest));
  }
  return Advise(NotFound(std::move(message)), "berth api-resources lists the kinds");
}

}  // namespace

Result<std::vector<GroupVersions>> Discovery::Groups() {
  if (!groups_.empty()) return groups_;
  std::vector<GroupVersions> out;
  TRY(const Value core, api_.Get("/api"));
  out.push_back({.group = "", .versions = Strings(core.Find("versions"))});
  if (out.front().versions.empty()) out.front().versions = {"v1"};
  TRY(const Value named, api_.Get("/apis"));
  for (const Value& group : Items(named, "groups")) {
    GroupVersions entry{.group = std::string(group.GetString({"name"})), .versions = {}};
    const std::string_view preferred = group.GetString({"preferredVersion", "version"});
    if (!preferred.empty()) entry.versions.emplace_back(preferred);
    for (const Value& version : Items(group, "versions")) {
      const std::string_view name = version.GetString({"version"});
      if (name != preferred && !name.empty()) entry.versions.emplace_back(name);
    }
    if (!entry.group.empty() && !entry.versions.empty() && out.size() < kGroupsMax) {
      out.push_back(std::move(entry));
    }
  }
  groups_ = out;
  return out;
}

Result<std::vector<Resource>> Discovery::Resources(const std::string& group,
                                                   const std::string& version) {
  const std::string path = GroupVersionPath(group, version);
  if (const auto found = served_.find(path); found != served_.end()) return found->second;
  TRY(const Value list, api_.Get(path));
  std::vector<Resource> out;
  for (const Value& item : Items(list, "resources")) {
    Resource resource = ReadResource(item, group, version);
    if (resource.plural.empty() || resource.plural.contains('/')) continue;  // a subresource
    if (out.size() < kResourcesMax) out.push_back(std::move(resource));
  }
  served_.emplace(path, out);
  return out;
}

Result<Resource> Discovery::FindQualified(std::string_view word, std::string_view rest) {
  TRY(const std::vector<GroupVersions> groups, Groups());
  for (const GroupVersions& group : groups) {
    for (const std::string& version : group.versions) {
      const bool named = EqualsIgnoreCase(rest, group.group) && version == group.versions.front();
      const bool exact = EqualsIgnoreCase(rest, fmt::format("{}.{}", version, group.group)) ||
                         (group.group.empty() && rest == version);
      if (!named && !exact) continue;
      TRY(const std::vector<Resource> resources, Resources(group.group, version));
      if (const Resource* found = Match(resources, word)) return *found;
    }
  }
  TRY(const std::vector<Resource> all, All());
  return NoSuchKind(fmt::format("{}.{}", word, rest), all);
}

Result<Resource> Discovery::FindByWord(std::string_view word) {
  if (const size_t dot = word.find('.'); dot != std::string_view::npos) {
    return FindQualified(word.substr(0, dot), word.substr(dot + 1));
  }
  // Kinds that this program knows are looked for where they usually are: one question instead of
  // ten.
  if (const meta::KindInfo* known = FindKnownKind(word)) {
    const auto usual = Resources(KnownKinds().GroupOf(*known), std::string(known->version));
    if (usual.ok()) {
      if (const Resource* found = Match(*usual, word)) return *found;
    } else if (!usual.status().Is(Reason::kNotFound)) {
      return usual.status();
    }
  }
  const auto core = Resources("", "v1");
  if (core.ok()) {
    if (const Resource* found = Match(*core, word)) return *found;
  } else if (!core.status().Is(Reason::kNotFound)) {
    return core.status();
  }
  TRY(const std::vector<GroupVersions> groups, Groups());
  for (const GroupVersions& group : groups) {
    if (group.group.empty()) continue;
    TRY(const std::vector<Resource> resources, Resources(group.group, group.versions.front()));
    if (const Resource* found = Match(resources, word)) return *found;
  }
  TRY(const std::vector<Resource> all, All());
  return NoSuchKind(word, all);
}

Result<std::vector<Resource>> Discovery::FindByCategory(std::string_view category) {
  TRY(const std::vector<Resource> all, All());
  std::vector<Resource> out;
  for (const Resource& resource : all) {
    const bool in = std::ranges::find(resource.categories, category) != resource.categories.end();
    if (in && resource.alias_of.empty()) out.push_back(resource);
  }
  return out;
}

Result<Resource> Discovery::FindByKind(std::string_view api_version, std::string_view kind) {
  const size_t slash = api_version.find('/');
  const std::string group(slash == std::string_view::npos ? "" : api_version.substr(0, slash));
  const std::string version(slash == std::string_view::npos ? api_version
                                                            : api_version.substr(slash + 1));
  const auto resources = Resources(group, version);
  if (!resources.ok() && !resources.status().Is(Reason::kNotFound)) return resources.status();
  std::vector<std::string> kinds;
  if (resources.ok()) {
    for (const Resource& resource : *resources) {
      if (resource.kind == kind) return resource;
      kinds.push_back(resource.kind);
    }
  }
  std::string message =
      resources.ok()
          ? fmt::format("the server has no kind {} in {}", Quote(kind), Printable(api_version))
          : fmt::format("the server does not serve {}", Printable(api_version));
  if (const auto nearest = Nearest(kind, kinds)) {
    message += fmt::format("; did you mean {}?", Quote(*nearest));
  }
  return Advise(NotFound(std::move(message)), "berth api-resources lists the kinds");
}

// A group that differs from an earlier one in its domain only, and has the same kinds, shows the
// same objects: compute.OpenKCM.dev beside compute.ironcore.dev.
void Discovery::MarkAliases(std::vector<Resource>& resources) const {
  const auto first_label = [](const Resource& resource) {
    return std::string_view(resource.group).substr(0, resource.group.find('.'));
  };
  for (size_t i = 0; i < resources.size(); ++i) {
    for (size_t k = 0; k < i; ++k) {
      const Resource& earlier = resources[k];
      if (earlier.group.empty() || earlier.group == resources[i].group) continue;
      if (earlier.alias_of.empty() && first_label(earlier) == first_label(resources[i]) &&
          earlier.version == resources[i].version && earlier.kind == resources[i].kind) {
        resources[i].alias_of = earlier.group;
        break;
      }
    }
  }
}

Result<std::vector<Resource>> Discovery::All() {
  TRY(const std::vector<GroupVersions> groups, Groups());
  std::vector<Resource> out;
  for (const GroupVersions& group : groups) {
    TRY(const std::vector<Resource> resources, Resources(group.group, group.versions.front()));
    out.insert(out.end(), resources.begin(), resources.end());
  }
  MarkAliases(out);
  return out;
}

}  // namespace berth::cli
