// SPDX-License-Identifier: Apache-2.0
#include "cli/kubeconfig/kubeconfig.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <utility>

#include "base/strings.h"

namespace berth::cli {
namespace {

using meta::Value;

// Reads the members of one object of the file; the first mistake is kept.
class Reader {
 public:
  Reader(const Value& value, std::string path, std::string_view folder)
      : value_(value), path_(std::move(path)), folder_(folder) {}

  std::string Text(std::string_view key) {
    const Value* member = value_.Find(key);
    if (member == nullptr || member->is_null()) return "";
    if (member->is_string()) return member->as_string();
    Fail(key, "a string");
    return "";
  }

  std::vector<std::string> Texts(std::string_view key) {
    std::vector<std::string> out;
    const Value* member = value_.Find(key);
    if (member == nullptr || member->is_null()) return out;
    const bool is_list = member->is_array() && std::ranges::all_of(member->items(), [](auto& item) {
                           return item.is_string();
                         });
    if (!is_list) {
      Fail(key, "a list of strings");
      return out;
    }
    for (const Value& item : member->items()) out.push_back(item.as_string());
    return out;
  }

  bool Switch(std::string_view key) {
    const Value* member = value_.Find(key);
    if (member == nullptr || member->is_null()) return false;
    if (member->type() == Value::Type::kBool) return member->as_bool();
    Fail(key, "true or false");
    return false;
  }

  std::string File(std::string_view key) {
    std::string text = Text(key);
    if (text.empty() || text.front() == '/') return text;
    return (std::filesystem::path(folder_) / text).lexically_normal().string();
  }

  std::string Decoded(std::string_view key) {
    const std::string text = Text(key);
    const auto decoded = Base64Decode(text);
    if (!decoded) Fail(key, "base64");
    return decoded.value_or("");
  }

  // extensions: [{name: berth.dev/servers, extension: {servers: [...]}}]; those of others are
  // theirs.
  std::vector<std::string> Servers() {
    const Value* extensions = value_.Find("extensions");
    if (extensions == nullptr || !extensions->is_array()) return {};
    for (const Value& item : extensions->items()) {
      if (item.GetString({"name"}) != kServersExtension) continue;
      const Value* body = item.Find("extension");
      if (body == nullptr || !body->is_object()) continue;
      Reader in(*body, fmt::format("{}.extensions[{}]", path_, kServersExtension), folder_);
      std::vector<std::string> out = in.Texts("servers");
      if (out.size() > kServersMax) {
        in.Fail("servers", fmt::format("a list of at most {} servers", kServersMax));
      }
      if (status_.ok()) status_ = in.status();
      return out;
    }
    return {};
  }

  bool Has(std::string_view key) const { return value_.Find(key) != nullptr; }
  const Status& status() const { return status_; }

 private:
  void Fail(std::string_view key, std::string_view wanted) {
    if (status_.ok()) status_ = BadRequest(fmt::format("{}.{} is not {}", path_, key, wanted));
  }

  const Value& value_;
  std::string path_;
  std::string_view folder_;
  Status status_;
};

ClusterEntry ReadCluster(Reader& in) {
  return {.server = in.Text("server"),
          .servers = in.Servers(),
          .certificate_authority = in.File("certificate-authority"),
          .certificate_authority_data = in.Decoded("certificate-authority-data"),
          .tls_server_name = in.Text("tls-server-name"),
          .insecure_skip_tls_verify = in.Switch("insecure-skip-tls-verify")};
}

UserEntry ReadUser(Reader& in) {
  UserEntry out{.client_certificate = in.File("client-certificate"),
                .client_key = in.File("client-key"),
                .client_certificate_data = in.Decoded("client-certificate-data"),
                .client_key_data = in.Decoded("client-key-data"),
                .token = in.Text("token"),
                .token_file = in.File("tokenFile"),
                .as = in.Text("as"),
                .as_groups = in.Texts("as-groups")};
  for (const std::string_view key : {"exec", "auth-provider", "username"}) {
    if (in.Has(key)) out.foreign = key;
  }
  return out;
}

ContextEntry ReadContext(Reader& in) {
  return {
      .cluster = in.Text("cluster"), .user = in.Text("user"), .namespace_ = in.Text("namespace")};
}

// clusters: [{name: n, cluster: {...}}] and its two sisters.
template <class T>
Status ReadList(const Value& root,
                std::string_view list,
                std::string_view member,
                std::string_view folder,
                T (*read)(Reader& in),
                std::map<std::string, T>& out) {
  const Value* items = root.Find(list);
  if (items == nullptr || items->is_null()) return OkStatus();
  if (!items->is_array()) return BadRequest(fmt::format("{} is not a list", list));
  for (size_t i = 0; i < items->items().size(); ++i) {
    const Value& item = items->items()[i];
    const std::string path = fmt::format("{}[{}]", list, i);
    Reader names(item, path, folder);
    std::string name = names.Text("name");
    TRY_STATUS(names.status());
    if (name.empty()) return BadRequest(fmt::format("{}.name is missing", path));
    const Value* body = item.Find(member);
    if (body == nullptr || !body->is_object()) {
      if (body != nullptr && !body->is_null()) {
        return BadRequest(fmt::format("{}.{} is not an object", path, member));
      }
      continue;
    }
    Reader in(*body, fmt::format("{}.{}", path, member), folder);
    T entry = read(in);
    TRY_STATUS(in.status());
    out.try_emplace(std::move(name), std::move(entry));
  }
  return OkStatus();
}

void SetText(Value& object, std::string_view key, const std::string& text) {
  if (!text.empty()) object.Set(key, text);
}

void SetSecret(Value& object, std::string_view key, const std::string& text, Secrets secrets) {
  if (!text.empty()) object.Set(key, secrets == Secrets::kShown ? text : "REDACTED");
}

void SetData(Value& object, std::string_view key, const std::string& bytes, Secrets secrets) {
  if (bytes.empty()) return;
  object.Set(key, secrets == Secrets::kShown ? Base64Encode(bytes) : "DATA+OMITTED");
}

Value ClusterValue(const ClusterEntry& entry, Secrets secrets) {
  Value out = Value::Object();
  SetText(out, "certificate-authority", entry.certificate_authority);
  SetData(out, "certificate-authority-data", entry.certificate_authority_data, secrets);
  if (entry.insecure_skip_tls_verify) out.Set("insecure-skip-tls-verify", true);
  SetServers(out, entry.servers);
  SetText(out, "server", entry.server);
  SetText(out, "tls-server-name", entry.tls_server_name);
  return out;
}

Value UserValue(const UserEntry& entry, Secrets secrets) {
  Value out = Value::Object();
  SetText(out, "as", entry.as);
  if (!entry.as_groups.empty()) {
    Value groups = Value::Array();
    for (const std::string& group : entry.as_groups) groups.items().emplace_back(group);
    out.Set("as-groups", std::move(groups));
  }
  SetText(out, "client-certificate", entry.client_certificate);
  SetData(out, "client-certificate-data", entry.client_certificate_data, secrets);
  SetText(out, "client-key", entry.client_key);
  SetData(out, "client-key-data", entry.client_key_data, secrets);
  SetSecret(out, "token", entry.token, secrets);
  SetText(out, "tokenFile", entry.token_file);
  return out;
}

Value ContextValue(const ContextEntry& entry, Secrets) {
  Value out = Value::Object();
  SetText(out, "cluster", entry.cluster);
  SetText(out, "namespace", entry.namespace_);
  SetText(out, "user", entry.user);
  return out;
}

template <class T>
Value ListValue(const std::map<std::string, T>& entries,
                std::string_view member,
                Value (*write)(const T&, Secrets),
                Secrets secrets) {
  Value out = Value::Array();
  for (const auto& [name, entry] : entries) {
    Value item = Value::Object();
    item.Set("name", name);
    item.Set(member, write(entry, secrets));
    out.items().push_back(std::move(item));
  }
  return out;
}

}  // namespace

void SetServers(Value& cluster, const std::vector<std::string>& servers) {
  Value kept = Value::Array();
  if (const Value* extensions = cluster.Find("extensions");
      extensions != nullptr && extensions->is_array()) {
    for (const Value& item : extensions->items()) {
      if (item.GetString({"name"}) != kServersExtension) kept.items().push_back(item);
    }
  }
  if (!servers.empty()) {
    Value list = Value::Array();
    for (const std::string& server : servers) list.items().emplace_back(server);
    Value body = Value::Object();
    body.Set("servers", std::move(list));
    Value item = Value::Object();
    item.Set("name", kServersExtension);
    item.Set("extension", std::move(body));
    kept.items().push_back(std::move(item));
  }
  if (kept.items().empty()) {
    cluster.Remove("extensions");
  } else {
    cluster.Set("extensions", std::move(kept));
  }
}

Result<Kubeconfig> KubeconfigFromValue(const Value& value, std::string_view folder) {
  Kubeconfig out;
  if (value.is_null()) return out;  // an empty file
  if (!value.is_object()) return BadRequest("the file is not an object");
  Reader in(value, "kubeconfig", folder);
  out.current_context = in.Text("current-context");
  TRY_STATUS(in.status());
  TRY_STATUS(ReadList(value, "clusters", "cluster", folder, &ReadCluster, out.clusters));
  TRY_STATUS(ReadList(value, "users", "user", folder, &ReadUser, out.users));
  TRY_STATUS(ReadList(value, "contexts", "context", folder, &ReadContext, out.contexts));
  return out;
}

void MergeKubeconfig(Kubeconfig& into, const Kubeconfig& more) {
  if (into.current_context.empty()) into.current_context = more.current_context;
  into.clusters.insert(more.clusters.begin(), more.clusters.end());
  into.users.insert(more.users.begin(), more.users.end());
  into.contexts.insert(more.contexts.begin(), more.contexts.end());
}

Value KubeconfigToValue(const Kubeconfig& config, Secrets secrets) {
  Value out = Value::Object();
  out.Set("apiVersion", "v1");
  out.Set("kind", "Config");
  out.Set("clusters", ListValue(config.clusters, "cluster", &ClusterValue, secrets));
  out.Set("contexts", ListValue(config.contexts, "context", &ContextValue, secrets));
  out.Set("current-context", config.current_context);
  out.Set("users", ListValue(config.users, "user", &UserValue, secrets));
  return out;
}

}  // namespace berth::cli
