// SPDX-License-Identifier: Apache-2.0
#include "store/rocks/meta_record.h"

#include <fmt/format.h>

#include "store/mvcc/crc32c.h"
#include "store/mvcc/record.h"

namespace berth::store {
namespace {

// Then the format version (4 bytes, little endian); what follows belongs to that version.
constexpr std::string_view kMagic = "BRTH";
constexpr size_t kHeadBytes = 8;
constexpr size_t kCrcBytes = 4;

Status Damaged(std::string_view dir) {
  return Internal(fmt::format("data folder {}: the description of the store is damaged", dir));
}

}  // namespace

std::string EncodeMeta(const MetaRecord& meta) {
  std::string out(kMagic);
  PutFixed32(out, kFormatVersion);
  PutVarint(out, static_cast<uint64_t>(meta.compacted.value));
  PutVarint(out, meta.store_id.size());
  out += meta.store_id;
  PutFixed32(out, ExtendCrc32c(0, out));
  return out;
}

Result<MetaRecord> DecodeMeta(std::string_view dir, std::string_view bytes) {
  if (bytes.size() < kHeadBytes + kCrcBytes || !bytes.starts_with(kMagic)) return Damaged(dir);
  const uint32_t version = GetFixed32(bytes.substr(kMagic.size()));
  if (version != kFormatVersion) {
    return Internal(fmt::format(
        "data folder {} has format version {}, this program supports version {}: use the program "
        "that wrote it, or another folder",
        dir,
        version,
        kFormatVersion));
  }
  const std::string_view body = bytes.substr(0, bytes.size() - kCrcBytes);
  if (ExtendCrc32c(0, body) != GetFixed32(bytes.substr(body.size()))) return Damaged(dir);
  std::string_view rest = body.substr(kHeadBytes);
  MetaRecord meta;
  uint64_t compacted = 0;
  uint64_t id_size = 0;
  if (!TakeVarint(rest, compacted) || !TakeVarint(rest, id_size) || id_size != rest.size()) {
    return Damaged(dir);
  }
  meta.compacted.value = static_cast<int64_t>(compacted);
  meta.store_id = rest;
  return meta;
}

}  // namespace berth::store
