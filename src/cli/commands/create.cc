// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <array>
#include <filesystem>
#include <utility>

#include "base/strings.h"
#include "cli/arguments.h"
#include "cli/commands/chosen.h"
#include "cli/commands/flags.h"
#include "cli/commands/placement.h"
#include "cli/commands/table.h"
#include "cli/failure.h"
#include "cli/files.h"
#include "cli/objects/failures.h"
#include "cli/objects/manifest.h"
#include "cli/session/session.h"

namespace berth::cli {
namespace {

using meta::Value;

Value NewObject(std::string_view api_version, std::string_view kind, std::string_view name) {
  Value metadata = Value::Object();
  metadata.Set("name", name);
  Value out = Value::Object();
  out.Set("apiVersion", api_version);
  out.Set("kind", kind);
  out.Set("metadata", std::move(metadata));
  return out;
}

// "--from-file=KEY=FILE", "--from-file=FILE" (the key is the file's name), "--from-literal=K=V".
Status ReadEntries(const Arguments& arguments, std::map<std::string, std::string>& out) {
  const auto add = [&out](std::string key, std::string content) -> Status {
    if (key.empty()) return BadRequest("a key is empty");
    const auto [at, added] = out.try_emplace(std::move(key), std::move(content));
    return added ? OkStatus()
                 : BadRequest(fmt::format("the key {} is given twice", Quote(at->first)));
  };
  for (const std::string& literal : arguments.List("from-literal")) {
    const size_t equals = literal.find('=');
    if (equals == std::string::npos) {
      return BadRequest(fmt::format("--from-literal: {} is not KEY=VALUE", Quote(literal)));
    }
    TRY_STATUS(add(literal.substr(0, equals), literal.substr(equals + 1)));
  }
  for (const std::string& source : arguments.List("from-file")) {
    const size_t equals = source.find('=');
    const std::string file = equals == std::string::npos ? source : source.substr(equals + 1);
    const std::string key = equals == std::string::npos
                                ? std::filesystem::path(file).filename().string()
                                : source.substr(0, equals);
    TRY(std::string content, ReadFile(file));
    TRY_STATUS(add(key, std::move(content)));
  }
  return OkStatus();
}

Result<std::string> OneName(const Arguments& arguments) {
  if (arguments.words().size() == 1) return arguments.words().front();
  return Advise(
      BadRequest(fmt::format("one name is needed, {} are given", arguments.words().size())),
      "see --help for an example");
}

Status CreateOne(Session& session, const Arguments& arguments, Value object) {
  const Manifest manifest{.object = std::move(object), .source = "command line"};
  TRY(Placement placement, PlaceManifest(session, manifest));
  return CreateObject(session, arguments, std::move(placement));
}

Status RunCreate(Session& session, const Arguments& arguments) {
  if (arguments.List("filename").empty()) {
    return Advise(BadRequest("nothing to create is given"),
                  "berth create -f FILE, or berth create --help");
  }
  TRY(const std::vector<Manifest> manifests, ManifestsOf(session, arguments));
  Failures failures(session.environment());
  for (const Manifest& manifest : manifests) {
    auto placement = PlaceManifest(session, manifest);
    Status status = placement.status();
    if (placement.ok()) status = CreateObject(session, arguments, *std::move(placement));
    if (status.Is(Reason::kUnavailable)) return status;
    failures.Add(status.Wrap(manifest.source));
  }
  return failures.Outcome();
}

Status RunCreateNamespace(Session& session, const Arguments& arguments) {
  TRY(const std::string name, OneName(arguments));
  return CreateOne(session, arguments, NewObject("v1", "Namespace", name));
}

Status RunCreateSecret(Session& session, const Arguments& arguments) {
  TRY(const std::string name, OneName(arguments));
  std::map<std::string, std::string> entries;
  TRY_STATUS(ReadEntries(arguments, entries));
  Value data = Value::Object();
  for (const auto& [key, content] : entries) data.Set(key, Base64Encode(content));
  Value secret = NewObject("v1", "Secret", name);
  if (!arguments.Text("type").empty()) secret.Set("type", arguments.Text("type"));
  secret.Set("data", std::move(data));
  return CreateOne(session, arguments, std::move(secret));
}

Status RunCreateConfigMap(Session& session, const Arguments& arguments) {
  TRY(const std::string name, OneName(arguments));
  std::map<std::string, std::string> entries;
  TRY_STATUS(ReadEntries(arguments, entries));
  Value data = Value::Object();
  Value binary = Value::Object();
  for (const auto& [key, content] : entries) {
    if (IsValidUtf8(content) && !content.contains('\0')) {
      data.Set(key, content);
    } else {
      binary.Set(key, Base64Encode(content));
    }
  }
  Value map = NewObject("v1", "ConfigMap", name);
  map.Set("data", std::move(data));
  if (!binary.members().empty()) map.Set("binaryData", std::move(binary));
  return CreateOne(session, arguments, std::move(map));
}

constexpr Flag kFromLiteral = {.name = "from-literal",
                               .kind = FlagKind::kList,
                               .value_name = "KEY=VALUE",
                               .help = "An entry and its value."};
constexpr Flag kFromFile = {.name = "from-file",
                            .kind = FlagKind::kList,
                            .value_name = "[KEY=]FILE",
                            .help = "An entry and the file with its value.",
                            .completion = Completion::kFiles};
constexpr std::array kFlags = {flags::kFilename,
                               flags::kRecursive,
                               flags::kDryRun,
                               flags::kValidate,
                               flags::kOutput,
                               flags::kFieldManager};
constexpr std::array kNamespaceFlags = {
    flags::kDryRun, flags::kValidate, flags::kOutput, flags::kFieldManager};
constexpr std::array kMapFlags = {kFromLiteral,
                                  kFromFile,
                                  flags::kDryRun,
                                  flags::kValidate,
                                  flags::kOutput,
                                  flags::kFieldManager};
constexpr std::array kSecretFlags = {kFromLiteral,
                                     kFromFile,
                                     Flag{.name = "type",
                                          .kind = FlagKind::kText,
                                          .value_name = "TYPE",
                                          .help = "Type of the secret."},
                                     flags::kDryRun,
                                     flags::kValidate,
                                     flags::kOutput,
                                     flags::kFieldManager};

constexpr std::array kSecretChildren = {
    Command{.name = "generic",
            .usage = "NAME",
            .summary = "Create a secret from values and files",
            .examples = "berth create secret generic login --from-literal=password=s3cret\n"
                        "berth create secret generic key --from-file=id_ed25519",
            .flags = kSecretFlags,
            .run = &RunCreateSecret},
};
constexpr Command kNamespace = {.name = "namespace",
                                .usage = "NAME",
                                .summary = "Create a namespace",
                                .examples = "berth create namespace team-a",
                                .flags = kNamespaceFlags,
                                .run = &RunCreateNamespace};
constexpr Command kConfigMap = {
    .name = "configmap",
    .usage = "NAME",
    .summary = "Create a config map from values and files",
    .examples = "berth create configmap settings --from-literal=level=info",
    .flags = kMapFlags,
    .run = &RunCreateConfigMap};

// The same by its kind's short name.
constexpr Command ShortNamed(Command command, std::string_view name) {
  command.name = name;
  command.visibility = Visibility::kHidden;
  return command;
}

constexpr std::array kChildren = {
    kNamespace,
    Command{.name = "secret",
            .summary = "Create a secret",
            .examples = "berth create secret generic login --from-literal=password=s3cret",
            .children = kSecretChildren},
    kConfigMap,
    ShortNamed(kNamespace, "ns"),
    ShortNamed(kConfigMap, "cm"),
};

}  // namespace

Command CreateCommand() {
  return {.name = "create",
          .group = "Change",
          .usage = "-f FILE",
          .summary = "Create objects that do not exist yet",
          .examples =
              "berth create -f web.yaml\n"
              "berth create namespace team-a\n"
              "berth create secret generic login --from-literal=password=s3cret",
          .flags = kFlags,
          .children = kChildren,
          .run = &RunCreate};
}

}  // namespace berth::cli
