// SPDX-License-Identifier: Apache-2.0
// Protobuf's wire format, read from a view. Every error names the byte, counted from the start of
// the whole body.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace berth::meta {

enum class WireType : uint8_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

struct WireTag {
  uint32_t number = 0;
  WireType type = WireType::kVarint;
  size_t offset = 0;  // of the tag itself
};

Status InvalidProto(size_t offset, std::string_view why);

class WireReader {
 public:
  WireReader() = default;
  // `offset` is where `bytes` starts in the body. The bytes outlive the reader.
  WireReader(std::string_view bytes, size_t offset) : bytes_(bytes), offset_(offset) {}

  bool done() const { return bytes_.empty(); }
  size_t offset() const { return offset_; }
  // What has not been read yet.
  std::string_view rest() const { return bytes_; }

  // REQUIRES: !done().
  Result<WireTag> Tag();
  Result<uint64_t> Varint();
  Result<uint64_t> Fixed64();
  // A length and that many bytes.
  Result<WireReader> Bytes();
  Status Skip(WireType type);

 private:
  void Advance(size_t count);
  Status SkipBytes(size_t count);

  std::string_view bytes_;
  size_t offset_ = 0;
};

}  // namespace berth::meta
