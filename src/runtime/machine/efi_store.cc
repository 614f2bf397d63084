// SPDX-License-Identifier: Apache-2.0
#include "runtime/machine/efi_store.h"

#include <cstdint>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include "base/strings.h"

namespace berth::runtime {
namespace {

// Of the firmware volume's header.
constexpr size_t kVolumeGuidAt = 16;
constexpr size_t kVolumeSizeAt = 32;
constexpr size_t kSignatureAt = 40;
constexpr size_t kHeaderSizeAt = 48;
constexpr size_t kVolumeHeaderMin = 56;
constexpr std::string_view kSignature = "_FVH";
constexpr std::string_view kNvDataVolume = "fff12b8d-7696-4c8b-a985-2747075b4f50";
// Of the store's header, behind it.
constexpr size_t kStoreSizeAt = 16;
constexpr size_t kStoreFormatAt = 20;
constexpr size_t kStoreHeaderBytes = 28;
constexpr std::string_view kAuthenticatedStore = "aaf32c78-947b-439a-a180-2e144ec37792";
constexpr std::string_view kFormattedAndHealthy = "\x5a\xfe";
// Of a variable's header: start, state, attributes, count, time, key, sizes, vendor.
constexpr size_t kStateAt = 2;
constexpr size_t kAttributesAt = 4;
constexpr size_t kNameSizeAt = 36;
constexpr size_t kDataSizeAt = 40;
constexpr size_t kVendorAt = 44;
constexpr size_t kVariableHeaderBytes = 60;
constexpr uint16_t kVariableStart = 0x55aa;
constexpr uint8_t kAdded = 0x3f;
constexpr uint8_t kBeingReplaced = 0x3e;  // the old one still counts
constexpr uint32_t kAttributes = 7;       // non-volatile, boot services, runtime
constexpr size_t kAlignment = 4;
constexpr char kErased = '\xff';

template <class T>
T ReadNumber(std::string_view bytes, size_t at) {
  T value = 0;
  std::memcpy(&value, bytes.data() + at, sizeof(value));  // x86's order is the format's
  return value;
}

template <class T>
void PutNumber(std::string& bytes, size_t at, T value) {
  std::memcpy(bytes.data() + at, &value, sizeof(value));
}

size_t Aligned(size_t at) { return (at + kAlignment - 1) / kAlignment * kAlignment; }

int Digit(char c) { return c <= '9' ? c - '0' : c - 'a' + 10; }

// 16 bytes; its first three groups are numbers, low byte first. REQUIRES: lower case, checked.
std::string GuidBytes(std::string_view uuid) {
  std::string bytes;
  for (size_t i = 0; i < uuid.size(); i += 2) {
    if (uuid[i] == '-') ++i;
    bytes.push_back(static_cast<char>(Digit(uuid[i]) * 16 + Digit(uuid[i + 1])));
  }
  std::swap(bytes[0], bytes[3]);
  std::swap(bytes[1], bytes[2]);
  std::swap(bytes[4], bytes[5]);
  std::swap(bytes[6], bytes[7]);
  return bytes;
}

void PutUnit(std::string& out, uint32_t unit) {
  out.push_back(static_cast<char>(unit & 0xff));
  out.push_back(static_cast<char>(unit >> 8 & 0xff));
}

// UTF-16 with its zero, as firmware has names. REQUIRES: valid UTF-8.
std::string NameBytes(std::string_view name) {
  std::string out;
  for (size_t i = 0; i < name.size();) {
    const auto first = static_cast<unsigned char>(name[i]);
    const size_t length = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    uint32_t code = length == 1 ? first : first & (0x7fU >> length);
    for (size_t k = 1; k < length; ++k) {
      code = code << 6 | (static_cast<unsigned char>(name[i + k]) & 0x3f);
    }
    i += length;
    if (code < 0x10000) {
      PutUnit(out, code);
    } else {
      PutUnit(out, 0xd800 + ((code - 0x10000) >> 10));
      PutUnit(out, 0xdc00 + ((code - 0x10000) & 0x3ff));
    }
  }
  PutUnit(out, 0);
  return out;
}

std::string Encoded(const iri::EfiVariable& variable) {
  const std::string name = NameBytes(variable.name);
  std::string bytes(kVariableHeaderBytes, '\0');
  PutNumber(bytes, 0, kVariableStart);
  PutNumber(bytes, kStateAt, kAdded);
  PutNumber(bytes, kAttributesAt, kAttributes);
  PutNumber(bytes, kNameSizeAt, static_cast<uint32_t>(name.size()));
  PutNumber(bytes, kDataSizeAt, static_cast<uint32_t>(variable.value.size()));
  bytes.replace(kVendorAt, 16, GuidBytes(variable.uuid));
  return bytes + name + variable.value;
}

// Vendor and name.
std::string KeyOf(std::string_view entry) {
  const size_t name_size = ReadNumber<uint32_t>(entry, kNameSizeAt);
  return std::string(entry.substr(kVendorAt, 16)) +
         std::string(entry.substr(kVariableHeaderBytes, name_size));
}

struct Region {
  size_t begin = 0;  // of the variables
  size_t end = 0;
};

Result<Region> RegionOf(std::string_view store) {
  const Status broken = BadRequest("not a store of OVMF's authenticated variables");
  if (store.size() < kVolumeHeaderMin || store.substr(kSignatureAt, 4) != kSignature ||
      store.substr(kVolumeGuidAt, 16) != GuidBytes(kNvDataVolume)) {
    return broken;
  }
  const auto volume = ReadNumber<uint64_t>(store, kVolumeSizeAt);
  const size_t at = ReadNumber<uint16_t>(store, kHeaderSizeAt);
  if (volume > store.size() || at < kVolumeHeaderMin || at + kStoreHeaderBytes > volume) {
    return broken;
  }
  const size_t size = ReadNumber<uint32_t>(store, at + kStoreSizeAt);
  if (store.substr(at, 16) != GuidBytes(kAuthenticatedStore) ||
      store.substr(at + kStoreFormatAt, 2) != kFormattedAndHealthy || size < kStoreHeaderBytes ||
      size > volume - at) {
    return broken;
  }
  return Region{.begin = Aligned(at + kStoreHeaderBytes), .end = at + size};
}

// Those that count, as they are.
Result<std::vector<std::string_view>> Entries(std::string_view store, Region region) {
  std::vector<std::string_view> entries;
  size_t at = region.begin;
  while (at + kVariableHeaderBytes <= region.end &&
         ReadNumber<uint16_t>(store, at) == kVariableStart) {
    const uint64_t size = kVariableHeaderBytes + ReadNumber<uint32_t>(store, at + kNameSizeAt) +
                          uint64_t{ReadNumber<uint32_t>(store, at + kDataSizeAt)};
    if (size > region.end - at) return BadRequest("a variable reaches beyond the store");
    const auto state = static_cast<uint8_t>(store[at + kStateAt]);
    if (state == kAdded || state == kBeingReplaced) entries.push_back(store.substr(at, size));
    at = Aligned(at + size);
  }
  return entries;
}

}  // namespace

Result<std::string> WithEfiVariables(std::string store,
                                     std::span<const iri::EfiVariable> variables) {
  TRY(const Region region, RegionOf(store));
  TRY(const auto entries, Entries(store, region));
  std::vector<std::string> added;
  for (const iri::EfiVariable& variable : variables) added.push_back(Encoded(variable));
  std::string packed;
  const auto append = [&packed](std::string_view entry) {
    packed.append(entry);
    packed.resize(Aligned(packed.size()), kErased);
  };
  for (const std::string_view entry : entries) {
    bool is_replaced = false;
    for (const std::string& one : added) is_replaced = is_replaced || KeyOf(one) == KeyOf(entry);
    if (!is_replaced) append(entry);
  }
  for (const std::string& one : added) append(one);
  const size_t room = region.end - region.begin;
  if (packed.size() > room) {
    return Status(Reason::kTooManyRequests,
                  "EFI variables of " + std::to_string(packed.size()) +
                      " bytes do not fit into the " + std::to_string(room) +
                      " of the firmware's store");
  }
  packed.resize(room, kErased);
  store.replace(region.begin, room, packed);
  return store;
}

}  // namespace berth::runtime
