// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/strings.h"
#include "cli/arguments.h"
#include "cli/commands/flags.h"
#include "cli/commands/table.h"
#include "cli/render/output.h"
#include "cli/render/text_table.h"
#include "cli/session/session.h"

namespace berth::cli {
namespace {

using meta::Value;

Value Strings(const std::vector<std::string>& texts) {
  Value out = Value::Array();
  for (const std::string& text : texts) out.items().emplace_back(text);
  return out;
}

Value ResourceValue(const Resource& resource) {
  Value out = Value::Object();
  out.Set("name", resource.plural);
  out.Set("shortNames", Strings(resource.short_names));
  out.Set("apiVersion", resource.ApiVersion());
  out.Set("namespaced", resource.namespaced);
  out.Set("kind", resource.kind);
  out.Set("verbs", Strings(resource.verbs));
  out.Set("categories", Strings(resource.categories));
  if (!resource.alias_of.empty()) out.Set("aliasOf", resource.alias_of);
  return out;
}

bool Wanted(const Resource& resource, const Arguments& arguments) {
  if (arguments.Given("api-group") &&
      !EqualsIgnoreCase(resource.group, arguments.Text("api-group"))) {
    return false;
  }
  if (arguments.Given("namespaced") && resource.namespaced != arguments.Switch("namespaced")) {
    return false;
  }
  return std::ranges::all_of(arguments.List("verbs"),
                             [&resource](const std::string& verb) { return resource.Can(verb); });
}

void PrintTable(Session& session,
                const std::vector<Resource>& resources,
                const Arguments& arguments,
                bool wide) {
  std::vector<std::string> headers = {
      "Name", "ShortNames", "ApiVersion", "Namespaced", "Kind", "Alias of"};
  if (wide) headers.insert(headers.end(), {"Verbs", "Categories"});
  TextTable table(std::move(headers),
                  arguments.Switch("no-headers") ? TableHeader::kHidden : TableHeader::kShown);
  for (const Resource& resource : resources) {
    std::vector<std::string> cells = {resource.plural,
                                      Join(resource.short_names, ","),
                                      resource.ApiVersion(),
                                      resource.namespaced ? "true" : "false",
                                      resource.kind,
                                      resource.alias_of};
    if (wide) {
      cells.push_back(Join(resource.verbs, ","));
      cells.push_back(Join(resource.categories, ","));
    }
    table.AddRow(std::move(cells));
  }
  session.out() << table.Flush();
}

Status RunApiResources(Session& session, const Arguments& arguments) {
  TRY(const OutputFormat format, ParseOutputFormat(arguments.Text("output")));
  TRY(Discovery * discovery, session.GetDiscovery());
  TRY(std::vector<Resource> resources, discovery->All());
  std::erase_if(resources, [&arguments](const Resource& one) { return !Wanted(one, arguments); });
  if (format.is_table()) {
    PrintTable(session, resources, arguments, format.kind == OutputKind::kWide);
    return OkStatus();
  }
  if (format.kind == OutputKind::kName) {
    for (const Resource& resource : resources) {
      session.out() << Printable(resource.QualifiedPlural()) << "\n";
    }
    return OkStatus();
  }
  std::vector<Value> items;
  for (const Resource& resource : resources) items.push_back(ResourceValue(resource));
  return PrintValue(session.environment(), format, ListOf(std::move(items)));
}

Status RunApiVersions(Session& session, const Arguments& arguments) {
  TRY(const OutputFormat format, ParseOutputFormat(arguments.Text("output")));
  TRY(Discovery * discovery, session.GetDiscovery());
  TRY(const std::vector<GroupVersions> groups, discovery->Groups());
  std::vector<std::string> versions;
  for (const GroupVersions& group : groups) {
    for (const std::string& version : group.versions) {
      versions.push_back(group.group.empty() ? version
                                             : fmt::format("{}/{}", group.group, version));
    }
  }
  std::ranges::sort(versions);
  if (format.is_table()) {
    for (const std::string& version : versions) session.out() << Printable(version) << "\n";
    return OkStatus();
  }
  return PrintValue(session.environment(), format, Strings(versions));
}

constexpr std::array kResourceFlags = {
    Flag{.name = "api-group",
         .kind = FlagKind::kText,
         .value_name = "GROUP",
         .help = "Only kinds of this group."},
    Flag{.name = "namespaced", .help = "Only kinds in namespaces (=false: only the others)."},
    Flag{.name = "verbs",
         .kind = FlagKind::kCommaList,
         .value_name = "VERB",
         .help = "Only kinds with all these verbs."},
    flags::kNoHeaders,
    flags::kOutput,
};
constexpr std::array kVersionFlags = {flags::kOutput};

}  // namespace

Command ApiResourcesCommand() {
  return {.name = "api-resources",
          .group = "Server",
          .summary = "List the kinds that the server knows",
          .details =
              "A kind whose group is an alias shows the same objects as the group it is an "
              "alias of.",
          .examples =
              "berth api-resources\n"
              "berth api-resources --api-group=compute.ironcore.dev -o wide",
          .flags = kResourceFlags,
          .run = &RunApiResources};
}

Command ApiVersionsCommand() {
  return {.name = "api-versions",
          .group = "Server",
          .summary = "List the API groups and versions that the server knows",
          .examples = "berth api-versions",
          .flags = kVersionFlags,
          .run = &RunApiVersions};
}

}  // namespace berth::cli
