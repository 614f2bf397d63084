// SPDX-License-Identifier: Apache-2.0
// What the log of a store holds: one Record per changed key, found by its Position.
//
// Encoded form (little endian, varints as in protobuf), the format of version kFormatVersion:
//   type (1 byte) | create_revision | version | lease | previous.revision | previous.sub (1 byte)
//   | key length | key | value | crc32c of the log key and everything before (4 bytes)
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/result.h"
#include "store/store.h"

namespace berth::store {

constexpr uint32_t kFormatVersion = 1;

// The place of a record in the log: its transaction's revision and its number inside it.
struct Position {
  Revision revision;
  uint8_t sub = 0;  // < kMaxTxnKeys
  constexpr auto operator<=>(const Position&) const = default;
};
static_assert(kMaxTxnKeys <= 256);

struct Record {
  Position at;
  Op::Type type = Op::Type::kPut;
  Position previous;  // the state of the key before; revision zero: it was absent
  std::string key;
  Bytes value;
  Revision create_revision;  // zero for kDelete, as version and lease
  int64_t version = 0;
  LeaseId lease;
};

// The key's state after a kPut.
KeyValue ToKeyValue(const Record& record);

// The log key: 8 bytes of revision, big endian, then sub. Sorts like Position.
constexpr size_t kPositionBytes = 9;
std::string EncodePosition(Position at);
// REQUIRES: bytes.size() == kPositionBytes.
Position DecodePosition(std::string_view bytes);

// A record is stored as head + value + tail, so that a writer copies the value once.
struct EncodedRecord {
  std::string head;
  std::string tail;
};
EncodedRecord EncodeRecord(const Record& record);
// Internal if the bytes are damaged; the caller says where they lie.
Result<Record> DecodeRecord(Position at, std::string_view bytes);

// Varints, for the other records of a log.
void PutVarint(std::string& out, uint64_t value);
// Takes a varint off the front; false if there is none.
bool TakeVarint(std::string_view& in, uint64_t& value);
void PutFixed32(std::string& out, uint32_t value);
// REQUIRES: in.size() >= 4.
uint32_t GetFixed32(std::string_view in);

}  // namespace berth::store
