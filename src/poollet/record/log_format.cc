// SPDX-License-Identifier: Apache-2.0
#include "poollet/record/log_format.h"

#include <fmt/core.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <optional>
#include <utility>

#include "berth/poollet/v1/record.pb.h"
#include "poollet/record/checksum.h"

namespace berth::poollet {
namespace {

namespace pb = ::berth::poollet::v1;

constexpr std::string_view kMagic = "BERTHREC";
constexpr std::string_view kEntryMagic = "\x9dREC";
constexpr size_t kHeaderSize = 12;
constexpr size_t kEntryHeaderSize = 12;

void PutU32(std::string& out, uint32_t value) {
  for (int shift = 0; shift < 32; shift += 8) out.push_back(static_cast<char>(value >> shift));
}

uint32_t GetU32(std::string_view bytes) {
  uint32_t value = 0;
  for (size_t i = 4; i-- > 0;) value = (value << 8) | static_cast<unsigned char>(bytes[i]);
  return value;
}

pb::Entry ToMessage(const RecordEntry& entry) {
  pb::Entry message;
  message.set_uid(entry.uid);
  message.set_incarnation(entry.placement.incarnation);
  message.set_placement(entry.placement.number);
  message.set_phase(static_cast<pb::Entry::Phase>(entry.phase));
  message.set_kind(std::string(fleet::NameOf(entry.kind)));
  message.set_pool_uid(entry.pool_uid);
  message.set_hash(entry.hash);
  message.set_assign(entry.assign);
  message.set_had_secrets(entry.had_secrets);
  message.mutable_amounts()->insert(entry.amounts.begin(), entry.amounts.end());
  message.set_create_begun(entry.create_begun);
  message.set_was_available(entry.was_available);
  message.set_runtime_id(entry.runtime_id);
  return message;
}

Result<fleet::ObjectKind> KindFromName(std::string_view name) {
  for (const auto kind : {fleet::ObjectKind::kMachine,
                          fleet::ObjectKind::kVolume,
                          fleet::ObjectKind::kBucket,
                          fleet::ObjectKind::kReservation,
                          fleet::ObjectKind::kVolumeSnapshot}) {
    if (fleet::NameOf(kind) == name) return kind;
  }
  return BadRequest(fmt::format("unknown kind \"{}\"", name));
}

Result<RecordEntry> FromMessage(const pb::Entry& message) {
  if (!pb::Entry::Phase_IsValid(message.phase())) {
    return BadRequest(fmt::format("unknown phase {}", static_cast<int>(message.phase())));
  }
  RecordEntry entry;
  entry.uid = message.uid();
  entry.placement = {.incarnation = message.incarnation(), .number = message.placement()};
  entry.phase = static_cast<Phase>(message.phase());
  TRY(entry.kind, KindFromName(message.kind()));
  entry.pool_uid = message.pool_uid();
  entry.hash = message.hash();
  entry.assign = message.assign();
  entry.had_secrets = message.had_secrets();
  entry.amounts.insert(message.amounts().begin(), message.amounts().end());
  entry.create_begun = message.create_begun();
  entry.was_available = message.was_available();
  entry.runtime_id = message.runtime_id();
  return entry;
}

pb::Host ToMessage(const RecordHost& host) {
  pb::Host message;
  message.set_cluster_id(host.cluster_id);
  for (const auto& server : host.servers) message.add_servers(server);
  message.set_term(host.term);
  message.set_incarnation(host.incarnation);
  message.set_revision(host.revision);
  for (const auto& pool : host.pools) {
    pb::Pool& out = *message.add_pools();
    out.set_kind(pool.kind);
    out.set_name(pool.name);
    out.set_uid(pool.uid);
    out.mutable_limits()->insert(pool.limits.begin(), pool.limits.end());
  }
  message.mutable_events_told()->insert(host.events_told.begin(), host.events_told.end());
  return message;
}

RecordHost FromMessage(const pb::Host& message) {
  RecordHost host;
  host.cluster_id = message.cluster_id();
  host.servers.assign(message.servers().begin(), message.servers().end());
  host.term = message.term();
  host.incarnation = message.incarnation();
  host.revision = message.revision();
  for (const auto& pool : message.pools()) {
    RecordPool out;
    out.kind = pool.kind();
    out.name = pool.name();
    out.uid = pool.uid();
    out.limits.insert(pool.limits().begin(), pool.limits().end());
    host.pools.push_back(std::move(out));
  }
  host.events_told.insert(message.events_told().begin(), message.events_told().end());
  return host;
}

// The same change gives the same bytes: maps are written in order.
std::string Serialize(const pb::Change& change) {
  std::string bytes;
  {
    google::protobuf::io::StringOutputStream stream(&bytes);
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);
    change.SerializeToCodedStream(&coded);
  }
  return bytes;
}

Result<RecordChange> DecodePayload(std::string_view payload) {
  pb::Change message;
  if (!message.ParseFromArray(payload.data(), static_cast<int>(payload.size()))) {
    return BadRequest("not a change");
  }
  RecordChange change;
  if (message.has_host()) change.host = FromMessage(message.host());
  for (const auto& put : message.puts()) {
    TRY(auto entry, FromMessage(put));
    change.puts.push_back(std::move(entry));
  }
  change.forgets.assign(message.forgets().begin(), message.forgets().end());
  return change;
}

// The payload of the entry at the beginning of `bytes`, if it is whole.
std::optional<std::string_view> WholeEntry(std::string_view bytes) {
  if (bytes.size() < kEntryHeaderSize || !bytes.starts_with(kEntryMagic)) return std::nullopt;
  const size_t length = GetU32(bytes.substr(4));
  if (length > kRecordEntryMax || length > bytes.size() - kEntryHeaderSize) return std::nullopt;
  const std::string_view payload = bytes.substr(kEntryHeaderSize, length);
  if (Crc32c(payload) != GetU32(bytes.substr(8))) return std::nullopt;
  return payload;
}

std::optional<size_t> NextWholeEntry(std::string_view bytes, size_t from) {
  while ((from = bytes.find(kEntryMagic, from)) != std::string_view::npos) {
    if (WholeEntry(bytes.substr(from)).has_value()) return from;
    ++from;
  }
  return std::nullopt;
}

Status CheckHeader(std::string_view name, std::string_view bytes) {
  if (bytes.size() < kHeaderSize || !bytes.starts_with(kMagic)) {
    return {Reason::kInvalid, fmt::format("{}: offset 0: not a poollet's record", name)};
  }
  const uint32_t version = GetU32(bytes.substr(kMagic.size()));
  if (version != kRecordVersion) {
    return {Reason::kInvalid,
            fmt::format(
                "{}: version {}, this poollet reads version {}", name, version, kRecordVersion)};
  }
  return OkStatus();
}

}  // namespace

void Apply(RecordState& state, const RecordChange& change) {
  if (change.host.has_value()) state.host = *change.host;
  for (const auto& put : change.puts) state.entries.insert_or_assign(put.uid, put);
  for (const auto& uid : change.forgets) state.entries.erase(uid);
}

std::string EncodeEntry(const RecordChange& change) {
  pb::Change message;
  if (change.host.has_value()) *message.mutable_host() = ToMessage(*change.host);
  for (const auto& put : change.puts) *message.add_puts() = ToMessage(put);
  for (const auto& uid : change.forgets) message.add_forgets(uid);
  const std::string payload = Serialize(message);
  std::string entry(kEntryMagic);
  PutU32(entry, static_cast<uint32_t>(payload.size()));
  PutU32(entry, Crc32c(payload));
  return entry + payload;
}

std::string EncodeFile(const RecordState& state) {
  std::string file(kMagic);
  PutU32(file, kRecordVersion);
  RecordChange host;
  host.host = state.host;
  file += EncodeEntry(host);
  for (const auto& [_, entry] : state.entries) {
    RecordChange change;
    change.puts.push_back(entry);
    file += EncodeEntry(change);
  }
  return file;
}

Result<ParsedRecord> ParseFile(std::string_view name, std::string_view bytes) {
  TRY_STATUS(CheckHeader(name, bytes));
  ParsedRecord parsed;
  size_t offset = kHeaderSize;
  while (offset < bytes.size()) {
    const auto payload = WholeEntry(bytes.substr(offset));
    if (!payload.has_value()) {
      if (const auto next = NextWholeEntry(bytes, offset + 1)) {
        return Status(Reason::kInvalid,
                      fmt::format("{}: offset {}: damaged entry before a whole one at offset {}",
                                  name,
                                  offset,
                                  *next));
      }
      parsed.cut_bytes = bytes.size() - offset;
      break;
    }
    const auto change = DecodePayload(*payload);
    if (!change.ok()) {
      return Status(Reason::kInvalid,
                    fmt::format("{}: offset {}: {}", name, offset, change.status().message()));
    }
    Apply(parsed.state, *change);
    offset += kEntryHeaderSize + payload->size();
  }
  parsed.valid_bytes = offset;
  return parsed;
}

}  // namespace berth::poollet
