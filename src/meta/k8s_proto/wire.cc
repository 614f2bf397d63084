// SPDX-License-Identifier: Apache-2.0
#include "meta/k8s_proto/wire.h"

#include <string>

namespace berth::meta {
namespace {

constexpr size_t kVarintBytesMax = 10;
constexpr uint64_t kFieldNumberMax = (uint64_t{1} << 29) - 1;

}  // namespace

Status InvalidProto(size_t offset, std::string_view why) {
  return BadRequest("invalid protobuf at byte " + std::to_string(offset) + ": " + std::string(why));
}

void WireReader::Advance(size_t count) {
  bytes_.remove_prefix(count);
  offset_ += count;
}

Result<uint64_t> WireReader::Varint() {
  uint64_t value = 0;
  for (size_t i = 0; i < kVarintBytesMax; ++i) {
    if (i == bytes_.size()) return InvalidProto(offset_ + i, "the body ends inside a number");
    const auto byte = static_cast<uint8_t>(bytes_[i]);
    // The tenth byte has room for one more bit.
    if (i + 1 == kVarintBytesMax && byte > 1) break;
    value |= static_cast<uint64_t>(byte & 0x7f) << (7 * i);
    if ((byte & 0x80) == 0) {
      Advance(i + 1);
      return value;
    }
  }
  return InvalidProto(offset_, "a number has more than 64 bits");
}

Result<WireTag> WireReader::Tag() {
  const size_t start = offset_;
  TRY(const uint64_t tag, Varint());
  const uint64_t number = tag >> 3;
  if (number == 0 || number > kFieldNumberMax) {
    return InvalidProto(start, std::to_string(number) + " is no field number");
  }
  const auto type = static_cast<uint8_t>(tag & 7);
  // 3 and 4 were groups; Kubernetes has none.
  if (type != 0 && type != 1 && type != 2 && type != 5) {
    return InvalidProto(start, "wire type " + std::to_string(type) + " is not supported");
  }
  return WireTag{.number = static_cast<uint32_t>(number),
                 .type = static_cast<WireType>(type),
                 .offset = start};
}

Result<uint64_t> WireReader::Fixed64() {
  if (bytes_.size() < sizeof(uint64_t)) {
    return InvalidProto(offset_, "the body ends inside a number");
  }
  uint64_t value = 0;
  for (size_t i = 0; i < sizeof(uint64_t); ++i) {
    value |= static_cast<uint64_t>(static_cast<uint8_t>(bytes_[i])) << (8 * i);
  }
  Advance(sizeof(uint64_t));
  return value;
}

Result<WireReader> WireReader::Bytes() {
  const size_t start = offset_;
  TRY(const uint64_t length, Varint());
  if (length > bytes_.size()) {
    return InvalidProto(start,
                        std::to_string(length) + " bytes are announced, " +
                            std::to_string(bytes_.size()) + " are left");
  }
  const WireReader inner(bytes_.substr(0, length), offset_);
  Advance(length);
  return inner;
}

Status WireReader::SkipBytes(size_t count) {
  if (bytes_.size() < count) return InvalidProto(offset_, "the body ends inside a number");
  Advance(count);
  return OkStatus();
}

Status WireReader::Skip(WireType type) {
  switch (type) {
    case WireType::kVarint: return Varint().status();
    case WireType::kFixed64: return SkipBytes(sizeof(uint64_t));
    case WireType::kBytes: return Bytes().status();
    case WireType::kFixed32: return SkipBytes(sizeof(uint32_t));
  }
  return InvalidProto(offset_, "unknown wire type");
}

}  // namespace berth::meta
