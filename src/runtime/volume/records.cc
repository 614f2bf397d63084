// SPDX-License-Identifier: Apache-2.0
#include "runtime/volume/records.h"

#include "base/check.h"
#include "base/strings.h"
#include "iri/wire/json.h"
#include "meta/json.h"

namespace berth::runtime {
namespace {

using meta::Value;

// The format of the file; a later version is refused, not guessed at.
constexpr int kVersion = 1;

std::string Begin(std::string_view kind, const std::string& object_json, DiskFormat format) {
  std::string text = "{\"version\":" + std::to_string(kVersion) + ",\"kind\":";
  meta::AppendJsonString(kind, text);
  text += ",\"format\":";
  meta::AppendJsonString(DiskFormatName(format), text);
  return text + ",\"object\":" + object_json;
}

struct Parsed {
  Value root;
  std::string object_json;
  DiskFormat format = DiskFormat::kQcow2;
};

Result<Parsed> Parse(std::string_view text, std::string_view kind) {
  Parsed parsed;
  TRY(parsed.root, meta::ParseJson(text));
  const Value* const version = parsed.root.Find("version");
  if (version == nullptr || !version->is_int() || version->as_int() != kVersion) {
    return BadRequest("not a record of version " + std::to_string(kVersion));
  }
  if (parsed.root.GetString({"kind"}) != kind) {
    return BadRequest("not the record of a " + std::string(kind));
  }
  const auto format = DiskFormatOf(parsed.root.GetString({"format"}));
  if (!format.has_value()) return BadRequest("unknown disk format");
  parsed.format = *format;
  const Value* const object = parsed.root.Find("object");
  if (object == nullptr) return BadRequest("no object in it");
  parsed.object_json = meta::WriteJson(*object);
  return parsed;
}

Result<int64_t> BytesAt(const Value& root, std::string_view key) {
  const Value* const value = root.Find(key);
  if (value == nullptr || !value->is_int() || value->as_int() < 0) {
    return BadRequest(std::string(key) + " is no number of bytes");
  }
  return value->as_int();
}

}  // namespace

int64_t ChargeOf(const VolumeRecord& record) {
  return std::max(WholeSectors(record.object.spec.storage_bytes), record.disk_bytes);
}

int64_t ChargeOf(const SnapshotRecord& record) {
  switch (record.object.state) {
    case iri::SnapshotState::kReady: return record.taken_bytes;
    case iri::SnapshotState::kFailed: return 0;
    default: return record.object.size_bytes;
  }
}

std::string ToText(const VolumeRecord& record) {
  CHECK(record.object.spec.encryption.empty()) << "a key is never written down";
  CHECK(record.object.status == iri::VolumeStatus()) << "a status is never written down";
  std::string text = Begin("Volume", iri::ToJson(record.object), record.format);
  text += ",\"diskBytes\":" + std::to_string(record.disk_bytes);
  text += std::string(",\"needsKey\":") + (record.needs_key ? "true" : "false");
  return text + "}\n";
}

std::string ToText(const SnapshotRecord& record) {
  std::string text = Begin("VolumeSnapshot", iri::ToJson(record.object), record.format);
  return text + ",\"takenBytes\":" + std::to_string(record.taken_bytes) + "}\n";
}

Result<VolumeRecord> VolumeRecordOf(std::string_view text) {
  TRY(const Parsed parsed, Parse(text, "Volume"));
  VolumeRecord record;
  TRY(record.object, iri::VolumeFromJson(parsed.object_json));
  record.format = parsed.format;
  TRY(record.disk_bytes, BytesAt(parsed.root, "diskBytes"));
  const Value* const needs_key = parsed.root.Find("needsKey");
  record.needs_key = needs_key != nullptr && needs_key->is_bool() && needs_key->as_bool();
  return record;
}

Result<SnapshotRecord> SnapshotRecordOf(std::string_view text) {
  TRY(const Parsed parsed, Parse(text, "VolumeSnapshot"));
  SnapshotRecord record;
  TRY(record.object, iri::VolumeSnapshotFromJson(parsed.object_json));
  record.format = parsed.format;
  TRY(record.taken_bytes, BytesAt(parsed.root, "takenBytes"));
  return record;
}

}  // namespace berth::runtime
