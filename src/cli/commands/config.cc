// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <array>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/strings.h"
#include "cli/arguments.h"
#include "cli/commands/flags.h"
#include "cli/commands/table.h"
#include "cli/failure.h"
#include "cli/files.h"
#include "cli/kubeconfig/kubeconfig.h"
#include "cli/render/output.h"
#include "cli/render/text_table.h"
#include "cli/session/session.h"
#include "meta/yaml.h"
#include "pki/private_file.h"

namespace berth::cli {
namespace {

using meta::Value;

Status NoContext(const Kubeconfig& config, const std::string& name) {
  std::vector<std::string> names;
  for (const auto& [known, entry] : config.contexts) names.push_back(known);
  std::string message = fmt::format("the kubeconfig has no context {}", Quote(name));
  if (const auto nearest = Nearest(name, names)) {
    message += fmt::format("; did you mean {}?", Quote(*nearest));
  }
  return Advise(NotFound(std::move(message)), "berth config get-contexts shows what there is");
}

// Only what the current context uses.
Kubeconfig Minified(const Kubeconfig& config, const std::string& context) {
  Kubeconfig out;
  out.current_context = context;
  const auto found = config.contexts.find(context);
  if (found == config.contexts.end()) return out;
  out.contexts.insert(*found);
  if (const auto at = config.clusters.find(found->second.cluster); at != config.clusters.end()) {
    out.clusters.insert(*at);
  }
  if (const auto at = config.users.find(found->second.user); at != config.users.end()) {
    out.users.insert(*at);
  }
  return out;
}

Status RunView(Session& session, const Arguments& arguments) {
  TRY(OutputFormat format, ParseOutputFormat(arguments.Text("output")));
  if (format.is_table()) format.kind = OutputKind::kYaml;
  TRY(Kubeconfig config, session.LoadConfig());
  if (arguments.Switch("minify")) {
    const std::string& chosen = arguments.Text("context");
    config = Minified(config, chosen.empty() ? config.current_context : chosen);
  }
  const auto secrets = arguments.Switch("raw") ? Secrets::kShown : Secrets::kRedacted;
  return PrintValue(session.environment(), format, KubeconfigToValue(config, secrets));
}

Status RunGetContexts(Session& session, const Arguments& arguments) {
  TRY(const Kubeconfig config, session.LoadConfig());
  TRY(const OutputFormat format, ParseOutputFormat(arguments.Text("output")));
  if (format.kind == OutputKind::kName) {
    for (const auto& [name, entry] : config.contexts) session.out() << Printable(name) << "\n";
    return OkStatus();
  }
  if (!format.is_table()) {
    const Value all = KubeconfigToValue(config, Secrets::kRedacted);
    return PrintValue(session.environment(), format, *all.Find("contexts"));
  }
  TextTable table({"Current", "Name", "Cluster", "AuthInfo", "Namespace"},
                  arguments.Switch("no-headers") ? TableHeader::kHidden : TableHeader::kShown);
  for (const auto& [name, entry] : config.contexts) {
    table.AddRow({name == config.current_context ? "*" : "",
                  name,
                  entry.cluster,
                  entry.user,
                  entry.namespace_});
  }
  if (table.empty()) session.err() << "No contexts found\n";
  session.out() << table.Flush();
  return OkStatus();
}

Status RunCurrentContext(Session& session, const Arguments&) {
  TRY(const Kubeconfig config, session.LoadConfig());
  if (config.current_context.empty()) {
    return Advise(NotFound("no current context is set"), "berth config use-context NAME");
  }
  session.out() << Printable(config.current_context) << "\n";
  return OkStatus();
}

// Changes one file and keeps everything in it that we do not know.
Status ChangeFile(const std::string& path, const std::function<void(Value&)>& change) {
  Value root = Value::Object();
  const auto content = ReadFile(path);
  if (content.ok()) {
    TRY(root, meta::ParseYaml(*content));
    if (root.is_null()) root = Value::Object();
    if (!root.is_object()) return BadRequest(fmt::format("{} is not an object", Printable(path)));
  } else if (!content.status().Is(Reason::kNotFound)) {
    return content.status();
  }
  change(root);
  // A link to the file stays a link.
  std::error_code ignored;
  const auto target = std::filesystem::weakly_canonical(path, ignored);
  return pki::WritePrivateFile(target.empty() ? path : target.string(), meta::WriteYaml(root));
}

Result<std::string> PathToChange(Session& session) {
  std::string path = FileToChange(session.kubeconfig_files());
  if (path.empty()) {
    return Advise(NotFound("there is no kubeconfig"),
                  "set KUBECONFIG, or start a server: berth up");
  }
  return path;
}

Status RunUseContext(Session& session, const Arguments& arguments) {
  if (arguments.words().size() != 1) {
    return Advise(BadRequest("one context is needed"), "berth config get-contexts shows them");
  }
  const std::string& name = arguments.words().front();
  TRY(const Kubeconfig config, session.LoadConfig());
  if (!config.contexts.contains(name)) return NoContext(config, name);
  TRY(const std::string path, PathToChange(session));
  TRY_STATUS(ChangeFile(path, [&name](Value& root) { root.Set("current-context", name); }));
  session.out() << fmt::format("Switched to context {}.\n", Quote(name));
  return OkStatus();
}

// The context's object inside the file, made if it is not there.
Value& ContextIn(Value& root, const std::string& name) {
  Value* list = root.Find("contexts");
  if (list == nullptr || !list->is_array()) list = &root.Set("contexts", Value::Array());
  Value* found = nullptr;
  for (Value& item : list->items()) {
    if (item.GetString({"name"}) == name) found = &item;
  }
  if (found == nullptr) {
    Value item = Value::Object();
    item.Set("name", name);
    list->items().push_back(std::move(item));
    found = &list->items().back();
  }
  Value* context = found->Find("context");
  if (context == nullptr || !context->is_object()) {
    context = &found->Set("context", Value::Object());
  }
  return *context;
}

Status RunSetContext(Session& session, const Arguments& arguments) {
  TRY(const Kubeconfig config, session.LoadConfig());
  const bool current = arguments.Switch("current");
  if (current != arguments.words().empty() || arguments.words().size() > 1) {
    return Advise(BadRequest("one context or --current is needed"),
                  "berth config set-context --current --namespace=prod");
  }
  const std::string name = current ? config.current_context : arguments.words().front();
  if (name.empty()) return NotFound("no current context is set");
  TRY(const std::string path, PathToChange(session));
  const auto change = [&arguments, &name](Value& root) {
    Value& context = ContextIn(root, name);
    for (const std::string_view field : {"cluster", "user", "namespace"}) {
      if (arguments.Given(field)) context.Set(field, arguments.Text(field));
    }
  };
  TRY_STATUS(ChangeFile(path, change));
  session.out() << fmt::format(
      "Context {} {}.\n", Quote(name), config.contexts.contains(name) ? "modified" : "created");
  return OkStatus();
}

// The servers that say in Leases where they are.
Result<std::vector<std::string>> AskForServers(Session& session) {
  TRY(Api * api, session.GetApi());
  const auto leases = api->Get("/apis/coordination.k8s.io/v1/namespaces/berth-system/leases");
  if (!leases.ok()) {
    return Advise(leases.status().Wrap("which servers there are"),
                  "name them: berth config set-servers URL URL");
  }
  std::vector<std::string> urls;
  const Value* items = leases->Find("items");
  if (items == nullptr || !items->is_array()) return urls;
  for (const Value& lease : items->items()) {
    if (!lease.GetString({"metadata", "name"}).starts_with("server-")) continue;
    const std::string_view url = lease.GetString({"metadata", "annotations", "berth.dev/url"});
    if (!url.empty()) urls.emplace_back(url);
  }
  return urls;
}

// The file that has the cluster: of several files the first.
Result<std::string> FileOfCluster(Session& session, const std::string& name) {
  for (const std::string& path : session.kubeconfig_files().paths) {
    const auto config = LoadKubeconfig({.origin = KubeconfigOrigin::kVariable, .paths = {path}});
    if (config.ok() && config->clusters.contains(name)) return path;
  }
  return Advise(NotFound(fmt::format("the kubeconfig has no cluster {}", Quote(name))),
                "berth config view shows what there is");
}

Status RunSetServers(Session& session, const Arguments& arguments) {
  TRY(const Kubeconfig config, session.LoadConfig());
  const std::string& asked = arguments.Text("context");
  const auto context = config.contexts.find(asked.empty() ? config.current_context : asked);
  std::string cluster = arguments.Text("cluster");
  if (cluster.empty() && context != config.contexts.end()) cluster = context->second.cluster;
  if (cluster.empty()) return NotFound("no current context is set");
  TRY(const std::string path, FileOfCluster(session, cluster));
  std::vector<std::string> urls = arguments.words();
  if (urls.empty()) {
    TRY(urls, AskForServers(session));
    if (urls.empty()) {
      return Advise(NotFound("the server tells of no others: it has its store for itself"),
                    "name them: berth config set-servers URL URL");
    }
  }
  // Checked and completed as --server is.
  TRY(const Connection named, ResolveConnection({}, {.server = Join(urls, ",")}));
  std::vector<std::string> servers = {named.server};
  servers.insert(servers.end(), named.others.begin(), named.others.end());
  const auto change = [&cluster, &servers](Value& root) {
    for (Value& item : root.Find("clusters")->items()) {
      Value* body = item.Find("cluster");
      if (item.GetString({"name"}) == cluster && body != nullptr) SetServers(*body, servers);
    }
  };
  TRY_STATUS(ChangeFile(path, change));
  session.out() << fmt::format(
      "Cluster {} has the servers {}.\n", Quote(cluster), Printable(Join(servers, ", ")));
  return OkStatus();
}

constexpr std::array kViewFlags = {
    Flag{.name = "raw", .help = "With keys and tokens."},
    Flag{.name = "minify", .help = "Only what the current context uses."},
    flags::kOutput,
};
constexpr std::array kListFlags = {flags::kOutput, flags::kNoHeaders};
constexpr std::array kSetFlags = {Flag{.name = "current", .help = "Change the current context."}};

constexpr std::array kChildren = {
    Command{.name = "view",
            .summary = "Show the merged kubeconfig, without secrets",
            .examples = "berth config view --minify",
            .flags = kViewFlags,
            .run = &RunView},
    Command{.name = "get-contexts",
            .summary = "List contexts",
            .examples = "berth config get-contexts",
            .flags = kListFlags,
            .run = &RunGetContexts},
    Command{.name = "current-context",
            .summary = "Show the current context",
            .examples = "berth config current-context",
            .run = &RunCurrentContext},
    Command{.name = "use-context",
            .usage = "NAME",
            .summary = "Make a context the current one",
            .examples = "berth config use-context berth",
            .words = Completion::kContexts,
            .run = &RunUseContext},
    Command{.name = "set-context",
            .usage = "NAME | --current",
            .summary = "Change a context's cluster, user or namespace",
            .examples = "berth config set-context --current --namespace=prod",
            .flags = kSetFlags,
            .words = Completion::kContexts,
            .run = &RunSetContext},
    Command{
        .name = "set-servers",
        .usage = "[URL...]",
        .summary = "Name all servers of a cluster, so that another one is asked when one is gone",
        .details = "Without URLs the server is asked which there are. kubectl goes on using the "
                   "one server "
                   "that it knows.",
        .examples = "berth config set-servers\n"
                    "berth config set-servers 10.0.0.1:7443 10.0.0.2:7443",
        .run = &RunSetServers},
};

}  // namespace

Command ConfigCommand() {
  return {.name = "config",
          .group = "Access",
          .summary = "Look at the kubeconfig and choose a context",
          .examples =
              "berth config get-contexts\n"
              "berth config use-context berth",
          .children = kChildren};
}

}  // namespace berth::cli
