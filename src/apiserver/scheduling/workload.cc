// SPDX-License-Identifier: Apache-2.0
#include "apiserver/scheduling/workload.h"

#include <utility>
#include <vector>

#include "apis/compute/machine.h"
#include "apiserver/http/body.h"
#include "base/strings.h"
#include "meta/json.h"
#include "meta/names.h"
#include "pki/digest.h"

namespace berth::apiserver {
namespace {

// How much of a text from outside an error repeats.
constexpr size_t kShownMax = 253;

std::string Shown(std::string_view text) { return Quote(text.substr(0, kShownMax)); }

// The first character that is not blank decides: JSON objects begin with a brace. YAML could read
// them too, but not as fast, nor with JSON's errors.
BodyForm FormOf(std::string_view manifest) {
  return Trim(manifest).starts_with('{') ? BodyForm::kJson : BodyForm::kYaml;
}

Status CheckSame(std::string_view field, std::string_view said, std::string_view asked) {
  if (said.empty() || said == asked) return OkStatus();
  return BadRequest("manifest: " + std::string(field) + ": " + Shown(said) + " is not " +
                    Shown(asked) + " of the request");
}

Status CheckUnmarked(const meta::ObjectMeta& metadata) {
  if (metadata.labels.contains(std::string(kInstanceIdLabel))) {
    return BadRequest("manifest: metadata.labels: " + std::string(kInstanceIdLabel) +
                      " is set by the server");
  }
  if (metadata.annotations.contains(std::string(kInstanceContentAnnotation))) {
    return BadRequest("manifest: metadata.annotations: " + std::string(kInstanceContentAnnotation) +
                      " is set by the server");
  }
  return OkStatus();
}

}  // namespace

Status CheckInstanceKey(std::string_view namespace_, std::string_view instance_id) {
  if (!meta::IsDnsLabel(namespace_)) {
    return BadRequest("namespace: " + Shown(namespace_) + " is not a DNS label");
  }
  if (!meta::IsDnsLabel(instance_id)) {
    return BadRequest("instance_id: " + Shown(instance_id) +
                      " is not a DNS label: at most 63 of a-z, 0-9 and -, not at the ends");
  }
  return OkStatus();
}

Result<meta::Object> ReadWorkload(const meta::Scheme& scheme,
                                  const client::ObjectKey& key,
                                  std::string_view manifest) {
  if (manifest.size() > kManifestBytesMax) {
    return Status(Reason::kRequestTooLarge,
                  "manifest: " + std::to_string(manifest.size()) + " bytes, the limit is " +
                      std::to_string(kManifestBytesMax));
  }
  const meta::KindInfo& kind = apis::compute::kMachineKind;
  const DecodeTarget target{
      .scheme = scheme, .kind = kind, .api_version = scheme.ApiVersionOf(kind)};
  std::vector<std::string> warnings;
  auto decoded = DecodeObjectBody(
      manifest, FormOf(manifest), meta::FieldValidation::kStrict, target, warnings);
  if (!decoded.ok()) return decoded.status().Wrap("manifest");
  apis::compute::Machine asked = decoded->as<apis::compute::Machine>();
  TRY_STATUS(CheckSame("metadata.name", asked.metadata.name, key.name));
  TRY_STATUS(CheckSame("metadata.namespace", asked.metadata.namespace_, key.namespace_));
  TRY_STATUS(CheckUnmarked(asked.metadata));
  // Only what a user decides is content: a manifest that was read back from the server, with its
  // status and versions, asks for the same as the one that was sent.
  apis::compute::Machine machine;
  machine.metadata.labels = std::move(asked.metadata.labels);
  machine.metadata.annotations = std::move(asked.metadata.annotations);
  machine.spec = std::move(asked.spec);
  std::string content;
  meta::EncodeJson(meta::TypeInfoOf<apis::compute::Machine>(), &machine, content);
  machine.metadata.namespace_ = key.namespace_;
  machine.metadata.name = key.name;
  machine.metadata.labels[std::string(kInstanceIdLabel)] = key.name;
  machine.metadata.annotations[std::string(kInstanceContentAnnotation)] = pki::Sha256Hex(content);
  return meta::Object::Of(kind, std::move(machine));
}

bool IsInstance(const meta::Object& machine) {
  const auto& labels = machine.metadata().labels;
  const auto label = labels.find(std::string(kInstanceIdLabel));
  return label != labels.end() && label->second == machine.metadata().name;
}

std::string_view ContentOf(const meta::Object& machine) {
  const auto& annotations = machine.metadata().annotations;
  const auto content = annotations.find(std::string(kInstanceContentAnnotation));
  return content == annotations.end() ? std::string_view() : std::string_view(content->second);
}

meta::Object Replaced(const meta::Object& current, const meta::Object& wanted) {
  meta::Object next = current;
  for (const auto& [key, value] : wanted.metadata().labels) next.metadata().labels[key] = value;
  for (const auto& [key, value] : wanted.metadata().annotations) {
    next.metadata().annotations[key] = value;
  }
  auto& spec = next.as<apis::compute::Machine>().spec;
  const auto pool = spec.machine_pool_ref;
  spec = wanted.as<apis::compute::Machine>().spec;
  // Set by the scheduler, and once: leaving it out is not asking for another.
  if (!spec.machine_pool_ref) spec.machine_pool_ref = pool;
  return next;
}

}  // namespace berth::apiserver
