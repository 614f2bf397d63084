// SPDX-License-Identifier: Apache-2.0
#include "runtime/volume/oci_manifest.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "base/strings.h"
#include "meta/json.h"

namespace berth::runtime {
namespace {

using meta::Value;

constexpr std::string_view kIndexType = "application/vnd.oci.image.index.v1+json";
constexpr std::string_view kRefName = "org.opencontainers.image.ref.name";
// The newer and the older name of the same thing.
constexpr std::array<std::string_view, 2> kRootDiskTypes = {
    "application/vnd.ironcore.image.rootfs",
    "application/vnd.ironcore.image.rootfs.v1alpha1.rootfs"};

Result<OciDescriptor> DescriptorOf(const Value& value) {
  OciDescriptor descriptor;
  descriptor.media_type = value.GetString({"mediaType"});
  descriptor.digest = Sha256Of(value.GetString({"digest"}));
  if (descriptor.digest.empty()) {
    return BadRequest("digest " + Quote(value.GetString({"digest"})) + " is not one of sha256");
  }
  const Value* const size = value.Find("size");
  if (size == nullptr || !size->is_int() || size->as_int() < 0) {
    return BadRequest("sha256:" + descriptor.digest + " has no size");
  }
  descriptor.size = size->as_int();
  descriptor.architecture = value.GetString({"platform", "architecture"});
  descriptor.tag = value.GetString({"annotations", kRefName});
  return descriptor;
}

Result<std::vector<OciDescriptor>> DescriptorsAt(std::string_view json, std::string_view key) {
  TRY(const Value root, meta::ParseJson(json, kOciDocumentBytesMax));
  const Value* const list = root.Find(key);
  if (list == nullptr || !list->is_array()) {
    return BadRequest(fmt::format("no list {} in it", key));
  }
  std::vector<OciDescriptor> descriptors;
  for (const Value& item : list->items()) {
    TRY(OciDescriptor descriptor, DescriptorOf(item));
    descriptors.push_back(std::move(descriptor));
  }
  return descriptors;
}

}  // namespace

bool OciDescriptor::is_index() const { return media_type == kIndexType; }

bool IsRootDisk(std::string_view media_type) {
  return std::ranges::find(kRootDiskTypes, media_type) != kRootDiskTypes.end();
}

Result<std::vector<OciDescriptor>> ParseOciIndex(std::string_view json) {
  return DescriptorsAt(json, "manifests");
}

Result<OciDescriptor> RootDiskOf(std::string_view manifest_json) {
  TRY(const auto layers, DescriptorsAt(manifest_json, "layers"));
  const OciDescriptor* found = nullptr;
  for (const OciDescriptor& layer : layers) {
    if (!IsRootDisk(layer.media_type)) continue;
    if (found != nullptr) return BadRequest("two root file systems in one image");
    found = &layer;
  }
  if (found == nullptr) {
    return BadRequest(
        fmt::format("no layer of type {}: not an image with a disk", kRootDiskTypes.front()));
  }
  return *found;
}

Result<OciDescriptor> ChooseEntry(const std::vector<OciDescriptor>& entries,
                                  const ImageReference& reference,
                                  std::string_view architecture) {
  std::vector<OciDescriptor> meant;
  for (const OciDescriptor& entry : entries) {
    const bool is_meant = !reference.digest.empty()
                              ? entry.digest == reference.digest
                              : reference.tag.empty() || entry.tag == reference.tag;
    if (is_meant) meant.push_back(entry);
  }
  if (meant.size() == 1) return meant.front();
  if (meant.empty()) return NotFound("no entry of this tag or digest");
  return ChoosePlatform(meant, architecture);
}

Result<OciDescriptor> ChoosePlatform(const std::vector<OciDescriptor>& entries,
                                     std::string_view architecture) {
  const OciDescriptor* found = nullptr;
  for (const OciDescriptor& entry : entries) {
    if (entry.architecture != architecture) continue;
    if (found != nullptr) {
      return BadRequest(fmt::format("several entries for architecture {}", architecture));
    }
    found = &entry;
  }
  if (found == nullptr) {
    return NotFound(fmt::format("nothing for architecture {}", Quote(architecture)));
  }
  return *found;
}

}  // namespace berth::runtime
