// SPDX-License-Identifier: Apache-2.0
#include "apiserver/http/discovery.h"

#include <vector>

#include "apis/meta_v1/binding.h"
#include "apis/meta_v1/usage.h"
#include "base/strings.h"

namespace berth::apiserver {
namespace {

using meta::KindInfo;
using meta::Value;

Value Strings(std::initializer_list<std::string_view> words) {
  std::vector<Value> items;
  for (const auto word : words) items.emplace_back(word);
  return Value::Array(std::move(items));
}

Value Strings(std::span<const std::string_view> words) {
  std::vector<Value> items;
  for (const auto word : words) items.emplace_back(word);
  return Value::Array(std::move(items));
}

Value StorageVerbs() {
  return Strings(
      {"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"});
}

Value Resource(const KindInfo& kind, std::string name, std::string_view kind_name, Value verbs) {
  Value resource = Value::Object();
  resource.Set("name", std::move(name));
  resource.Set("singularName", "");
  resource.Set("namespaced", kind.scope == meta::Scope::kNamespaced);
  resource.Set("kind", kind_name);
  resource.Set("verbs", std::move(verbs));
  return resource;
}

// Under an alias a kind belongs to no category, or `get all` would show everything twice.
void AppendResources(const KindInfo& kind,
                     const meta::ServedGroup& served,
                     std::vector<Value>& out) {
  const std::string plural(kind.plural);
  if (kind.storage == meta::Storage::kReview) {
    out.push_back(Resource(kind, plural, kind.kind, Strings({"create"})));
    return;
  }
  Value main = Resource(kind, plural, kind.kind, StorageVerbs());
  main.Set("singularName", kind.singular);
  if (!kind.short_names.empty()) main.Set("shortNames", Strings(kind.short_names));
  if (!kind.categories.empty() && !served.is_alias)
    main.Set("categories", Strings(kind.categories));
  out.push_back(std::move(main));
  if (kind.has_status) {
    out.push_back(
        Resource(kind, plural + "/status", kind.kind, Strings({"get", "patch", "update"})));
  }
  if (kind.scale != nullptr) {
    Value scale = Resource(kind, plural + "/scale", "Scale", Strings({"get", "patch", "update"}));
    scale.Set("group", "autoscaling");
    scale.Set("version", "v1");
    out.push_back(std::move(scale));
  }
  for (const auto subresource : kind.subresources) {
    if (subresource == "binding") {
      Value binding = Resource(
          kind, plural + "/binding", apis::meta_v1::kBindingKind, Strings({"create", "delete"}));
      binding.Set("group", "berth.dev");
      binding.Set("version", "v1alpha1");
      out.push_back(std::move(binding));
      continue;
    }
    if (subresource == "usage") {
      Value usage = Resource(kind, plural + "/usage", apis::meta_v1::kUsageKind, Strings({"get"}));
      usage.Set("group", "berth.dev");
      usage.Set("version", "v1alpha1");
      out.push_back(std::move(usage));
      continue;
    }
    if (subresource == "log" || subresource == "exec" || subresource == "console" ||
        subresource == "portforward") {
      // A conversation begins with a GET that becomes a WebSocket, and needs the right to create.
      const auto verbs = subresource == "log" ? Strings({"get"}) : Strings({"create", "get"});
      out.push_back(Resource(kind, plural + '/' + std::string(subresource), kind.kind, verbs));
      continue;
    }
    // Approval and finalize: the object, of which some fields are written.
    out.push_back(Resource(kind,
                           plural + '/' + std::string(subresource),
                           kind.kind,
                           Strings({"get", "patch", "update"})));
  }
}

Value VersionEntry(const meta::ServedGroup& served) {
  Value entry = Value::Object();
  entry.Set("groupVersion", meta::JoinApiVersion(served.group, served.version));
  entry.Set("version", served.version);
  return entry;
}

// The kind that a resource of the old form answers with.
Value ResponseKind(const Value& resource, const meta::ServedGroup& served) {
  const std::string_view group = resource.GetString({"group"});
  const std::string_view version = resource.GetString({"version"});
  Value kind = Value::Object();
  kind.Set("group", version.empty() ? std::string_view(served.group) : group);
  kind.Set("version", version.empty() ? std::string_view(served.version) : version);
  kind.Set("kind", resource.GetString({"kind"}));
  return kind;
}

// The same resources as in the old form, where a subresource stands behind its resource.
Value WholeVersion(const meta::ServedGroup& served) {
  std::vector<Value> flat;
  for (const KindInfo* kind : served.kinds) AppendResources(*kind, served, flat);
  std::vector<Value> resources;
  for (const Value& from : flat) {
    const std::string_view name = from.GetString({"name"});
    const size_t slash = name.find('/');
    Value to = Value::Object();
    to.Set(slash == name.npos ? "resource" : "subresource",
           slash == name.npos ? name : name.substr(slash + 1));
    to.Set("responseKind", ResponseKind(from, served));
    if (slash == name.npos) {
      to.Set("scope", from.Find("namespaced")->as_bool() ? "Namespaced" : "Cluster");
      to.Set("singularResource", from.GetString({"singularName"}));
    }
    to.Set("verbs", *from.Find("verbs"));
    for (const std::string_view list : {"shortNames", "categories"}) {
      if (const Value* words = from.Find(list)) to.Set(list, *words);
    }
    if (slash == name.npos) {
      resources.push_back(std::move(to));
      continue;
    }
    Value& parent = resources.back();
    Value* below = parent.Find("subresources");
    if (below == nullptr) below = &parent.Set("subresources", Value::Array());
    below->items().push_back(std::move(to));
  }
  Value version = Value::Object();
  version.Set("version", served.version);
  version.Set("resources", Value::Array(std::move(resources)));
  version.Set("freshness", "Current");
  return version;
}

}  // namespace

std::optional<Value> Discovery::Find(std::string_view path) const {
  while (path.ends_with('/') && path.size() > 1) path.remove_suffix(1);
  if (path == "/api") return CoreVersions();
  if (path == "/apis") return GroupList();
  const auto parts = Split(path.substr(1), '/');
  const bool core = parts[0] == "api" && parts.size() == 2;
  const bool named = parts[0] == "apis" && (parts.size() == 2 || parts.size() == 3);
  if (!core && !named) return std::nullopt;
  const std::string group = core ? "" : scheme_.ServedSpelling(parts[1]);
  const std::string_view version = parts.back();
  for (const auto& served : scheme_.groups()) {
    if (served.group != group) continue;
    if (named && parts.size() == 2) return Group(group);
    if (served.version == version) return Resources(served);
  }
  return std::nullopt;
}

std::optional<Value> Discovery::FindWhole(std::string_view path, const std::string& version) const {
  if (path != "/api" && path != "/apis") return std::nullopt;
  Value document = Value::Object();
  document.Set("kind", "APIGroupDiscoveryList");
  document.Set("apiVersion", "apidiscovery.k8s.io/" + version);
  document.Set("metadata", Value::Object());
  std::vector<Value> groups;
  std::string last;
  for (const auto& served : scheme_.groups()) {
    if (served.group.empty() != (path == "/api")) continue;
    if (!groups.empty() && served.group == last) {
      groups.back().Find("versions")->items().push_back(WholeVersion(served));
      continue;
    }
    last = served.group;
    Value metadata = Value::Object();
    metadata.Set("name", served.group);
    metadata.Set("creationTimestamp", Value());
    Value group = Value::Object();
    group.Set("metadata", std::move(metadata));
    group.Set("versions", Value::Array({WholeVersion(served)}));
    groups.push_back(std::move(group));
  }
  document.Set("items", Value::Array(std::move(groups)));
  return document;
}

Value Discovery::Paths() const {
  std::vector<Value> paths = {Value("/api"), Value("/apis")};
  for (const auto& served : scheme_.groups()) {
    paths.emplace_back((served.group.empty() ? "/api/" : "/apis/" + served.group + '/') +
                       served.version);
  }
  for (const auto* path :
       {"/healthz", "/livez", "/metrics", "/openapi/v2", "/openapi/v3", "/readyz", "/version"}) {
    paths.emplace_back(path);
  }
  Value document = Value::Object();
  document.Set("paths", Value::Array(std::move(paths)));
  return document;
}

Value Discovery::CoreVersions() const {
  Value document = Value::Object();
  document.Set("kind", "APIVersions");
  std::vector<Value> versions;
  for (const auto& served : scheme_.groups()) {
    if (served.group.empty()) versions.emplace_back(served.version);
  }
  document.Set("versions", Value::Array(std::move(versions)));
  document.Set("serverAddressByClientCIDRs", Value::Array());
  return document;
}

Value Discovery::GroupList() const {
  Value document = Value::Object();
  document.Set("kind", "APIGroupList");
  document.Set("apiVersion", "v1");
  std::vector<Value> groups;
  std::string last;
  for (const auto& served : scheme_.groups()) {
    if (served.group.empty() || served.group == last) continue;
    last = served.group;
    Value group = Group(served.group);
    group.Remove("kind");
    group.Remove("apiVersion");
    groups.push_back(std::move(group));
  }
  document.Set("groups", Value::Array(std::move(groups)));
  return document;
}

Value Discovery::Group(std::string_view group) const {
  Value document = Value::Object();
  document.Set("kind", "APIGroup");
  document.Set("apiVersion", "v1");
  document.Set("name", group);
  std::vector<Value> versions;
  for (const auto& served : scheme_.groups()) {
    if (served.group == group) versions.push_back(VersionEntry(served));
  }
  document.Set("preferredVersion", versions.front());
  document.Set("versions", Value::Array(std::move(versions)));
  return document;
}

Value Discovery::Resources(const meta::ServedGroup& served) const {
  Value document = Value::Object();
  document.Set("kind", "APIResourceList");
  document.Set("apiVersion", "v1");
  document.Set("groupVersion", meta::JoinApiVersion(served.group, served.version));
  std::vector<Value> resources;
  for (const KindInfo* kind : served.kinds) AppendResources(*kind, served, resources);
  document.Set("resources", Value::Array(std::move(resources)));
  return document;
}

}  // namespace berth::apiserver
