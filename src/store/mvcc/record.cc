// SPDX-License-Identifier: Apache-2.0
#include "store/mvcc/record.h"

#include "base/check.h"
#include "store/mvcc/crc32c.h"

namespace berth::store {
namespace {

constexpr size_t kCrcBytes = 4;
constexpr char kPutByte = 1;
constexpr char kDeleteByte = 2;

Status Damaged(std::string_view what) { return Internal("damaged record: " + std::string(what)); }

bool TakeInt(std::string_view& in, int64_t& value) {
  uint64_t raw = 0;
  if (!TakeVarint(in, raw)) return false;
  value = static_cast<int64_t>(raw);
  return value >= 0;
}

bool TakeByte(std::string_view& in, uint8_t& value) {
  if (in.empty()) return false;
  value = static_cast<uint8_t>(in.front());
  in.remove_prefix(1);
  return true;
}

bool TakeFields(std::string_view& in, Record& record) {
  uint64_t key_size = 0;
  if (!TakeInt(in, record.create_revision.value) || !TakeInt(in, record.version) ||
      !TakeInt(in, record.lease.value) || !TakeInt(in, record.previous.revision.value) ||
      !TakeByte(in, record.previous.sub) || !TakeVarint(in, key_size) || key_size > in.size()) {
    return false;
  }
  record.key = in.substr(0, key_size);
  in.remove_prefix(key_size);
  return true;
}

}  // namespace

KeyValue ToKeyValue(const Record& record) {
  return {.key = record.key,
          .value = record.value,
          .create_revision = record.create_revision,
          .mod_revision = record.at.revision,
          .version = record.version,
          .lease = record.lease};
}

std::string EncodePosition(Position at) {
  std::string out(kPositionBytes, '\0');
  auto revision = static_cast<uint64_t>(at.revision.value);
  for (size_t i = 8; i-- > 0; revision >>= 8) out[i] = static_cast<char>(revision & 0xff);
  out[8] = static_cast<char>(at.sub);
  return out;
}

Position DecodePosition(std::string_view bytes) {
  CHECK(bytes.size() == kPositionBytes) << bytes.size();
  uint64_t revision = 0;
  for (size_t i = 0; i < 8; ++i) revision = revision << 8 | static_cast<uint8_t>(bytes[i]);
  return {.revision = {static_cast<int64_t>(revision)}, .sub = static_cast<uint8_t>(bytes[8])};
}

void PutVarint(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>(value | 0x80));
  out.push_back(static_cast<char>(value));
}

bool TakeVarint(std::string_view& in, uint64_t& value) {
  value = 0;
  for (size_t i = 0; i < in.size() && i < 10; ++i) {
    const auto byte = static_cast<uint8_t>(in[i]);
    value |= static_cast<uint64_t>(byte & 0x7f) << (7 * i);
    if (byte < 0x80) {
      in.remove_prefix(i + 1);
      return true;
    }
  }
  return false;
}

void PutFixed32(std::string& out, uint32_t value) {
  for (int i = 0; i < 4; ++i, value >>= 8) out.push_back(static_cast<char>(value & 0xff));
}

uint32_t GetFixed32(std::string_view in) {
  CHECK(in.size() >= 4);
  uint32_t value = 0;
  for (size_t i = 4; i-- > 0;) value = value << 8 | static_cast<uint8_t>(in[i]);
  return value;
}

EncodedRecord EncodeRecord(const Record& record) {
  EncodedRecord out;
  out.head.reserve(48 + record.key.size());
  out.head.push_back(record.type == Op::Type::kPut ? kPutByte : kDeleteByte);
  PutVarint(out.head, static_cast<uint64_t>(record.create_revision.value));
  PutVarint(out.head, static_cast<uint64_t>(record.version));
  PutVarint(out.head, static_cast<uint64_t>(record.lease.value));
  PutVarint(out.head, static_cast<uint64_t>(record.previous.revision.value));
  out.head.push_back(static_cast<char>(record.previous.sub));
  PutVarint(out.head, record.key.size());
  out.head.append(record.key);
  uint32_t crc = ExtendCrc32c(0, EncodePosition(record.at));
  crc = ExtendCrc32c(crc, out.head);
  crc = ExtendCrc32c(crc, record.value.view());
  PutFixed32(out.tail, crc);
  return out;
}

Result<Record> DecodeRecord(Position at, std::string_view bytes) {
  if (bytes.size() < 1 + kCrcBytes) return Damaged("too short");
  std::string_view body = bytes.substr(0, bytes.size() - kCrcBytes);
  const uint32_t crc = ExtendCrc32c(ExtendCrc32c(0, EncodePosition(at)), body);
  if (crc != GetFixed32(bytes.substr(body.size()))) return Damaged("wrong checksum");
  Record record;
  record.at = at;
  const char type = body.front();
  body.remove_prefix(1);
  if (type != kPutByte && type != kDeleteByte) return Damaged("unknown type");
  record.type = type == kPutByte ? Op::Type::kPut : Op::Type::kDelete;
  if (!TakeFields(body, record)) return Damaged("fields are cut off");
  record.value = Bytes(body);
  return record;
}

}  // namespace berth::store
