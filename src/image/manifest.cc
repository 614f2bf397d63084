// SPDX-License-Identifier: Apache-2.0
#include "image/manifest.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/strings.h"
#include "meta/json.h"

namespace berth::image {
namespace {

using meta::Value;

constexpr std::string_view kRefName = "org.opencontainers.image.ref.name";
constexpr size_t kDescriptorsMax = 1024;

// The newer and the older names of the same things.
struct KnownType {
  std::string_view media_type;
  Part part;
};
constexpr std::array kKnownTypes = {
    KnownType{"application/vnd.ironcore.image.rootfs", Part::kRootDisk},
    KnownType{"application/vnd.ironcore.image.disk.img", Part::kRootDisk},
    KnownType{"application/vnd.ironcore.image.rootfs.v1alpha1.rootfs", Part::kRootDisk},
    KnownType{"application/vnd.ironcore.image.kernel", Part::kKernel},
    KnownType{"application/vnd.ironcore.image.vmlinuz.v1alpha1.vmlinuz", Part::kKernel},
    KnownType{"application/vnd.ironcore.image.initramfs", Part::kInitramfs},
    KnownType{"application/vnd.ironcore.image.initramfs.v1alpha1.initramfs", Part::kInitramfs},
    KnownType{"application/vnd.ironcore.image.cmdline", Part::kCommandLine},
    KnownType{"application/vnd.ironcore.image.uki", Part::kUki},
    KnownType{"application/vnd.ironcore.image.iso", Part::kIso},
    KnownType{"application/vnd.ironcore.image.squashfs", Part::kSquashfs},
    KnownType{"application/vnd.ironcore.image.squashfs.v1alpha1.squashfs", Part::kSquashfs},
};
// Layers of this family are for machines: one of them that is overlooked is one that is missed.
constexpr std::string_view kFamily = "application/vnd.ironcore.image.";

struct KnownPacking {
  std::string_view suffix;
  Packing packing;
};
constexpr std::array kKnownPackings = {KnownPacking{"+gzip", Packing::kGzip},
                                       KnownPacking{"+zstd", Packing::kZstd}};

// The media type of what comes out.
std::string_view Inner(std::string_view media_type) {
  for (const KnownPacking& known : kKnownPackings) {
    if (media_type.ends_with(known.suffix)) {
      return media_type.substr(0, media_type.size() - known.suffix.size());
    }
  }
  return media_type;
}

struct PartRule {
  std::string_view name;
  std::string_view short_name;
  int64_t bytes_max;
  bool may_be_packed = true;
};
PartRule RuleOf(Part part) {
  switch (part) {
    case Part::kRootDisk: return {"root disk", "disk", INT64_MAX};
    case Part::kKernel: return {"kernel", "kernel", kKernelBytesMax};
    case Part::kInitramfs: return {"initramfs", "initramfs", kInitramfsBytesMax};
    case Part::kUki: return {"unified kernel image", "uki", kUkiBytesMax};
    // What is in them is packed already.
    case Part::kIso: return {"CD image", "iso", INT64_MAX, false};
    case Part::kSquashfs: return {"squashfs", "squashfs", INT64_MAX, false};
    case Part::kCommandLine: break;
  }
  return {"command line", "cmdline", kCommandLineBytesMax, false};
}

// A type from outside, in a message.
std::string TypeText(std::string_view media_type) {
  constexpr size_t kShownMax = 120;
  return Quote(media_type.substr(0, kShownMax));
}

// A layer that is one of those that machines are made of, or nothing for one of something else.
Result<std::optional<Part>> PartOf(const Descriptor& layer) {
  const std::string_view type = Inner(layer.media_type);
  const auto* const known = std::ranges::find(kKnownTypes, type, &KnownType::media_type);
  if (known != kKnownTypes.end()) return std::optional(known->part);
  if (!layer.media_type.starts_with(kFamily)) return std::optional<Part>();
  return BadRequest(
      fmt::format("a layer of type {} is not supported: rootfs, kernel, initramfs, cmdline, uki, "
                  "iso and squashfs of {} are",
                  TypeText(layer.media_type),
                  kFamily.substr(0, kFamily.size() - 1)));
}

Status CheckLayer(const Descriptor& layer, const PartRule& rule) {
  if (!rule.may_be_packed && layer.packing() != Packing::kNone) {
    return BadRequest(fmt::format(
        "a {} of type {}: it is read as it is, not packed", rule.name, TypeText(layer.media_type)));
  }
  if (layer.size > rule.bytes_max) {
    return BadRequest(fmt::format(
        "a {} of {} bytes, at most {} are read", rule.name, layer.size, rule.bytes_max));
  }
  return OkStatus();
}

// What nobody gets because of what is beside it, or is not.
void LeaveOut(Manifest& manifest) {
  const bool has_kernel = manifest.kernel.has_value();
  const bool has_any = has_kernel || manifest.uki.has_value();
  const std::pair<Part, bool> unused[] = {{Part::kUki, has_kernel},
                                          {Part::kIso, has_kernel},
                                          {Part::kInitramfs, !has_kernel},
                                          {Part::kSquashfs, !has_any}};
  for (const auto& [part, is_unused] : unused) {
    if (!is_unused || !manifest.At(part).has_value()) continue;
    manifest.At(part).reset();
    manifest.unused.push_back(part);
  }
}

// REQUIRES: LeaveOut was here.
Status CheckBoots(const Manifest& manifest, const std::vector<std::string>& types) {
  if (manifest.root_disk.has_value() || manifest.kernel.has_value() || manifest.uki.has_value() ||
      manifest.iso.has_value()) {
    return OkStatus();
  }
  constexpr size_t kNamedMax = 4;
  std::string found;
  for (size_t i = 0; i < std::min(types.size(), kNamedMax); ++i) {
    found += (i == 0 ? "" : ", ") + TypeText(types[i]);
  }
  return BadRequest(
      fmt::format("nothing that a machine boots: its layers are of type {}{}; one of {}, {}, {} or "
                  "{} is needed",
                  found.empty() ? "none" : found,
                  types.size() > kNamedMax ? " and others" : "",
                  MediaTypeOf(Part::kKernel),
                  MediaTypeOf(Part::kUki),
                  MediaTypeOf(Part::kRootDisk),
                  MediaTypeOf(Part::kIso)));
}

Result<Descriptor> DescriptorOf(const Value& value) {
  Descriptor descriptor;
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

Result<std::vector<Descriptor>> DescriptorsAt(const Value& root, std::string_view key) {
  const Value* const list = root.Find(key);
  if (list == nullptr || !list->is_array()) {
    return BadRequest(fmt::format("no list {} in it", key));
  }
  if (list->items().size() > kDescriptorsMax) {
    return BadRequest(fmt::format(
        "{} {} in it, at most {} are read", list->items().size(), key, kDescriptorsMax));
  }
  std::vector<Descriptor> descriptors;
  for (const Value& item : list->items()) {
    TRY(Descriptor descriptor, DescriptorOf(item));
    descriptors.push_back(std::move(descriptor));
  }
  return descriptors;
}

Value ValueOf(const Descriptor& descriptor) {
  Value value = Value::Object();
  value.Set("mediaType", descriptor.media_type);
  value.Set("digest", "sha256:" + descriptor.digest);
  value.Set("size", descriptor.size);
  if (!descriptor.architecture.empty()) {
    Value platform = Value::Object();
    platform.Set("architecture", descriptor.architecture);
    platform.Set("os", "linux");
    value.Set("platform", std::move(platform));
  }
  if (!descriptor.tag.empty()) {
    Value annotations = Value::Object();
    annotations.Set(kRefName, descriptor.tag);
    value.Set("annotations", std::move(annotations));
  }
  return value;
}

Value Document(std::string_view media_type) {
  Value document = Value::Object();
  document.Set("schemaVersion", 2);
  document.Set("mediaType", media_type);
  return document;
}

}  // namespace

std::string_view MediaTypeOf(Part part) {
  return std::ranges::find(kKnownTypes, part, &KnownType::part)->media_type;
}

bool Descriptor::is_index() const {
  return media_type == kIndexType ||
         media_type == "application/vnd.docker.distribution.manifest.list.v2+json";
}

Packing Descriptor::packing() const {
  for (const KnownPacking& known : kKnownPackings) {
    if (media_type.ends_with(known.suffix)) return known.packing;
  }
  return Packing::kNone;
}

std::optional<Descriptor>& Manifest::At(Part part) {
  switch (part) {
    case Part::kRootDisk: return root_disk;
    case Part::kKernel: return kernel;
    case Part::kInitramfs: return initramfs;
    case Part::kUki: return uki;
    case Part::kIso: return iso;
    case Part::kSquashfs: return squashfs;
    case Part::kCommandLine: break;
  }
  return command_line;
}

std::vector<Descriptor> Manifest::parts() const {
  std::vector<Descriptor> there;
  for (const auto* part :
       {&config, &root_disk, &kernel, &initramfs, &command_line, &uki, &iso, &squashfs}) {
    if (part->has_value()) there.push_back(**part);
  }
  return there;
}

std::string Manifest::PartsText() const {
  std::string text;
  const auto add = [](std::string& list, Part part) {
    list += (list.empty() ? "" : ",") + std::string(RuleOf(part).short_name);
  };
  if (kernel.has_value()) add(text, Part::kKernel);
  if (uki.has_value()) add(text, Part::kUki);
  if (root_disk.has_value()) add(text, Part::kRootDisk);
  if (iso.has_value()) add(text, Part::kIso);
  if (squashfs.has_value()) add(text, Part::kSquashfs);
  std::string left_out;
  for (const Part part : unused) add(left_out, part);
  return left_out.empty() ? text : text + " (unused: " + left_out + ")";
}

Result<std::vector<Descriptor>> ParseIndex(std::string_view json) {
  TRY(const Value root, meta::ParseJson(json, kDocumentBytesMax));
  return DescriptorsAt(root, "manifests");
}

Result<Manifest> ParseManifest(std::string_view json) {
  TRY(const Value root, meta::ParseJson(json, kDocumentBytesMax));
  TRY(std::vector<Descriptor> layers, DescriptorsAt(root, "layers"));
  Manifest manifest;
  std::vector<std::string> types;
  for (Descriptor& layer : layers) {
    types.push_back(layer.media_type);
    TRY(const std::optional<Part> part, PartOf(layer));
    if (!part.has_value()) continue;
    const PartRule rule = RuleOf(*part);
    std::optional<Descriptor>& place = manifest.At(*part);
    if (place.has_value()) return BadRequest(fmt::format("two layers are a {}", rule.name));
    TRY_STATUS(CheckLayer(layer, rule));
    place = std::move(layer);
  }
  LeaveOut(manifest);
  TRY_STATUS(CheckBoots(manifest, types));
  // Container images have one that says nothing about kernels, perhaps of no bytes.
  if (const Value* const config = root.Find("config");
      config != nullptr && config->GetString({"mediaType"}) == kConfigType) {
    TRY(manifest.config, DescriptorOf(*config));
    if (manifest.config->size > static_cast<int64_t>(kDocumentBytesMax)) {
      return BadRequest(fmt::format(
          "a config of {} bytes, at most {} are read", manifest.config->size, kDocumentBytesMax));
    }
  }
  return manifest;
}

Result<std::string> ParseConfig(std::string_view json) {
  TRY(const Value root, meta::ParseJson(json, kDocumentBytesMax));
  return std::string(root.GetString({"commandLine"}));
}

std::string IndexText(const std::vector<Descriptor>& entries) {
  Value index = Document(kIndexType);
  Value list = Value::Array();
  for (const Descriptor& entry : entries) list.Append(ValueOf(entry));
  index.Set("manifests", std::move(list));
  return meta::WriteJson(index);
}

std::string ManifestText(const Manifest& manifest) {
  Value document = Document(kManifestType);
  if (manifest.config.has_value()) document.Set("config", ValueOf(*manifest.config));
  Value layers = Value::Array();
  for (const auto* part : {&manifest.root_disk,
                           &manifest.kernel,
                           &manifest.initramfs,
                           &manifest.command_line,
                           &manifest.uki,
                           &manifest.iso,
                           &manifest.squashfs}) {
    if (part->has_value()) layers.Append(ValueOf(**part));
  }
  document.Set("layers", std::move(layers));
  return meta::WriteJson(document);
}

std::string ConfigText(std::string_view command_line) {
  Value config = Value::Object();
  if (!command_line.empty()) config.Set("commandLine", command_line);
  return meta::WriteJson(config);
}

Result<Descriptor> ChooseEntry(const std::vector<Descriptor>& entries,
                               const Reference& reference,
                               std::string_view architecture) {
  std::vector<Descriptor> meant;
  for (const Descriptor& entry : entries) {
    const bool is_meant = !reference.digest.empty()
                              ? entry.digest == reference.digest
                              : reference.tag.empty() || entry.tag == reference.tag;
    if (is_meant) meant.push_back(entry);
  }
  if (meant.size() == 1) return meant.front();
  if (meant.empty()) return NotFound("no entry of this tag or digest");
  return ChoosePlatform(meant, architecture);
}

Result<Descriptor> ChoosePlatform(const std::vector<Descriptor>& entries,
                                  std::string_view architecture) {
  const Descriptor* found = nullptr;
  for (const Descriptor& entry : entries) {
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

}  // namespace berth::image
