// SPDX-License-Identifier: Apache-2.0
#include "runtime/machine/machine_record.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/check.h"
#include "base/strings.h"
#include "iri/wire/json.h"
#include "meta/json.h"

namespace berth::runtime {
namespace {

using meta::Value;

// The format of the text; a later version is refused, not guessed at.
constexpr int kRecordVersion = 1;

std::string_view EndKindName(GuestEnd::Kind kind) {
  switch (kind) {
    case GuestEnd::Kind::kShutDown: return "shutdown";
    case GuestEnd::Kind::kFailed: return "failed";
    case GuestEnd::Kind::kNone: break;
  }
  return "none";
}

std::optional<GuestEnd::Kind> EndKindOf(std::string_view name) {
  using Kind = GuestEnd::Kind;
  for (const Kind kind : {Kind::kNone, Kind::kShutDown, Kind::kFailed}) {
    if (EndKindName(kind) == name) return kind;
  }
  return std::nullopt;
}

Value EndValue(const GuestEnd& end) {
  Value value = Value::Object();
  value.Set("kind", EndKindName(end.kind));
  value.Set("reason", end.reason);
  value.Set("message", end.message);
  value.Set("micros", end.time.micros());
  return value;
}

Result<GuestEnd> EndOf(const Value& root) {
  GuestEnd end;
  const auto kind = EndKindOf(root.GetString({"end", "kind"}));
  if (!kind.has_value()) return BadRequest("end: unknown kind");
  end.kind = *kind;
  end.reason = root.GetString({"end", "reason"});
  end.message = root.GetString({"end", "message"});
  const Value* const micros = root.Get({"end", "micros"});
  if (micros == nullptr || !micros->is_int()) return BadRequest("end: no time");
  end.time = WallTime::FromMicros(micros->as_int());
  return end;
}

// Names and amounts.
template <class Amounts>
Result<Amounts> AmountsOf(const Value& root, const std::string& field) {
  const Value* const members = root.Find(field);
  if (members == nullptr || !members->is_object()) return BadRequest("no " + field);
  Amounts amounts;
  for (const Value::Member& member : members->members()) {
    if (!member.value.is_int() || member.value.as_int() < 0) {
      return BadRequest(field + ": " + Quote(member.key) + " is no amount");
    }
    amounts.emplace(member.key, member.value.as_int());
  }
  return amounts;
}

Value AmountsValue(const auto& amounts) {
  Value value = Value::Object();
  for (const auto& [name, amount] : amounts) value.Set(name, amount);
  return value;
}

}  // namespace

std::string ToText(const MachineRecord& record) {
  CHECK(!HasSecrets(record.object.spec)) << "a secret is never written down";
  CHECK(record.object.status == iri::MachineStatus()) << "a status is never written down";
  Value root = Value::Object();
  root.Set("version", kRecordVersion);
  root.Set("owner", record.owner);
  const Result<Value> object = meta::ParseJson(iri::ToJson(record.object));
  CHECK(object.ok()) << object.status();
  root.Set("machine", *object);
  root.Set("resources", AmountsValue(record.resources));
  if (!record.image_sized.empty()) root.Set("imageSized", AmountsValue(record.image_sized));
  if (record.media_bytes > 0) root.Set("mediaBytes", record.media_bytes);
  root.Set("startedIn", record.started_in);
  if (record.has_ignition) root.Set("hasIgnition", true);
  if (!record.efi_written.empty()) root.Set("efiWritten", record.efi_written);
  root.Set("end", EndValue(record.end));
  return meta::WriteJson(root);
}

Result<MachineRecord> MachineRecordOf(std::string_view text) {
  TRY(const Value root, meta::ParseJson(text));
  const Value* const version = root.Find("version");
  if (version == nullptr || !version->is_int() || version->as_int() != kRecordVersion) {
    return BadRequest("not a record of version " + std::to_string(kRecordVersion));
  }
  const Value* const object = root.Find("machine");
  if (object == nullptr) return BadRequest("no machine in the record");
  MachineRecord record;
  record.owner = root.GetString({"owner"});
  TRY(record.object, iri::MachineFromJson(meta::WriteJson(*object)));
  if (record.object.metadata.id.empty()) return BadRequest("the machine has no id");
  TRY(record.resources, AmountsOf<iri::ResourceVector>(root, "resources"));
  if (root.Find("imageSized") != nullptr) {
    TRY(record.image_sized, (AmountsOf<std::map<std::string, int64_t>>(root, "imageSized")));
  }
  if (const Value* const media = root.Find("mediaBytes"); media != nullptr) {
    if (!media->is_int() || media->as_int() < 0) return BadRequest("mediaBytes is no amount");
    record.media_bytes = media->as_int();
  }
  record.started_in = root.GetString({"startedIn"});
  const Value* const ignition = root.Find("hasIgnition");
  record.has_ignition = ignition != nullptr && ignition->is_bool() && ignition->as_bool();
  record.efi_written = root.GetString({"efiWritten"});
  TRY(record.end, EndOf(root));
  return record;
}

iri::MachineSpec TakeSecrets(iri::MachineSpec& spec) {
  iri::MachineSpec secrets;
  secrets.ignition_data = std::exchange(spec.ignition_data, {});
  for (iri::MachineVolume& volume : spec.volumes) {
    if (!volume.connection.has_value()) continue;
    iri::VolumeConnection taken;
    taken.secret_data = std::exchange(volume.connection->secret_data, {});
    taken.encryption_data = std::exchange(volume.connection->encryption_data, {});
    if (taken == iri::VolumeConnection()) continue;
    iri::MachineVolume& part = secrets.volumes.emplace_back();
    part.name = volume.name;
    part.connection = std::move(taken);
  }
  return secrets;
}

iri::MachineSpec WithSecrets(iri::MachineSpec spec, const iri::MachineSpec& secrets) {
  spec.ignition_data = secrets.ignition_data;
  for (iri::MachineVolume& volume : spec.volumes) {
    const auto part = std::ranges::find(secrets.volumes, volume.name, &iri::MachineVolume::name);
    if (!volume.connection.has_value() || part == secrets.volumes.end()) continue;
    volume.connection->secret_data = part->connection->secret_data;
    volume.connection->encryption_data = part->connection->encryption_data;
  }
  return spec;
}

bool HasSecrets(const iri::MachineSpec& spec) {
  iri::MachineSpec copy = spec;
  return TakeSecrets(copy) != iri::MachineSpec();
}

bool LacksIgnition(const MachineRecord& record, const iri::MachineSpec& secrets) {
  return record.has_ignition && secrets.ignition_data.empty();
}

}  // namespace berth::runtime
