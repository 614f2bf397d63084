// SPDX-License-Identifier: Apache-2.0
#include "apiserver/http/negotiation.h"

#include <optional>

#include "base/strings.h"
#include "meta/k8s_proto/k8s_proto.h"

namespace berth::apiserver {
namespace {

std::string_view Parameter(std::string_view entry, std::string_view name) {
  for (const auto piece : Split(entry, ';')) {
    const auto trimmed = Trim(piece);
    const size_t equals = trimmed.find('=');
    if (equals != std::string_view::npos &&
        EqualsIgnoreCase(Trim(trimmed.substr(0, equals)), name)) {
      return Trim(trimmed.substr(equals + 1));
    }
  }
  return {};
}

// The form that one entry of an Accept header asks for, if we have it.
std::optional<AcceptedForm> FormOf(std::string_view entry) {
  const std::string type = MediaType(entry);
  if (type != "application/json" && type != "*/*" && type != "application/*") return std::nullopt;
  const auto as = Parameter(entry, "as");
  if (as.empty()) return AcceptedForm{};
  const auto version = Parameter(entry, "v");
  if (Parameter(entry, "g") != "meta.k8s.io" || (version != "v1" && version != "v1beta1")) {
    return std::nullopt;
  }
  AcceptedForm form{.shape = Shape::kObject, .meta_version = std::string(version)};
  if (as == "Table") {
    form.shape = Shape::kTable;
  } else if (as == "PartialObjectMetadata" || as == "PartialObjectMetadataList") {
    form.shape = Shape::kPartialMetadata;
  } else {
    return std::nullopt;
  }
  return form;
}

Status Unsupported(std::string_view content_type, std::string_view served) {
  return {Reason::kUnsupportedMediaType,
          "the body is " + Quote(content_type) + ", served are " + std::string(served)};
}

}  // namespace

std::string MediaType(std::string_view content_type) {
  return ToLower(Trim(content_type.substr(0, content_type.find(';'))));
}

bool Accepts(std::string_view accept, std::string_view media_type) {
  for (const auto entry : Split(accept, ',')) {
    if (MediaType(entry) == media_type) return true;
  }
  return false;
}

Result<AcceptedForm> NegotiateAccept(std::string_view accept) {
  if (Trim(accept).empty()) return AcceptedForm{};
  for (const auto entry : Split(accept, ',')) {
    if (auto form = FormOf(entry)) return *std::move(form);
  }
  return Status(
      Reason::kNotAcceptable,
      "none of " + Quote(accept) +
          " is served; application/json is, as object, as=Table or as=PartialObjectMetadata");
}

std::string AcceptedDiscovery(std::string_view accept) {
  for (const auto entry : Split(accept, ',')) {
    if (MediaType(entry) != "application/json") continue;
    const std::string_view as = Parameter(entry, "as");
    if (as.empty()) return "";
    const std::string_view version = Parameter(entry, "v");
    const bool is_known = as == "APIGroupDiscoveryList" &&
                          Parameter(entry, "g") == "apidiscovery.k8s.io" &&
                          (version == "v2" || version == "v2beta1");
    if (is_known) return std::string(version);
  }
  return "";
}

bool AsksForUsages(std::string_view accept) {
  const std::string_view first = accept.substr(0, accept.find(','));
  return MediaType(first) == "application/json" && Parameter(first, "as") == "UsageList" &&
         Parameter(first, "g") == "berth.dev" && Parameter(first, "v") == "v1alpha1";
}

Result<BodyForm> NegotiateBody(std::string_view content_type) {
  const std::string type = MediaType(content_type);
  // Clients that send no type (curl -d aside) mean JSON, as Kubernetes assumes too.
  if (type.empty() || type == "application/json" || type == "application/x-www-form-urlencoded") {
    return BodyForm::kJson;
  }
  if (type == "application/yaml" || type == "application/x-yaml" || type == "text/yaml") {
    return BodyForm::kYaml;
  }
  if (type == meta::kKubernetesProtoMediaType) return BodyForm::kProtobuf;
  return Unsupported(content_type,
                     "application/json, application/yaml and, for the kinds of Kubernetes, " +
                         std::string(meta::kKubernetesProtoMediaType));
}

Result<PatchForm> NegotiatePatch(std::string_view content_type) {
  const std::string type = MediaType(content_type);
  if (type == "application/json-patch+json") return PatchForm::kJsonPatch;
  if (type == "application/merge-patch+json") return PatchForm::kMergePatch;
  if (type == "application/strategic-merge-patch+json") return PatchForm::kStrategicMergePatch;
  if (type == "application/apply-patch+yaml") return PatchForm::kApply;
  return Unsupported(content_type,
                     "application/json-patch+json, application/merge-patch+json, "
                     "application/strategic-merge-patch+json and application/apply-patch+yaml");
}

}  // namespace berth::apiserver
