// SPDX-License-Identifier: Apache-2.0
#include "store/sealed/keyring.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/check.h"
#include "base/strings.h"
#include "pki/aes_gcm.h"

namespace berth::store {
namespace {

// An object at rest begins with 1, a record of ours with '{'.
constexpr std::string_view kMagic = "\xBE\x73\x76\x31";
constexpr size_t kIdBytes = 16;
constexpr size_t kHeadBytes = kMagic.size() + kIdBytes + pki::kAesNonceBytes;

bool IsId(std::string_view text) {
  return text.size() == kIdBytes && std::ranges::all_of(text, [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

}  // namespace

SealingKey NewSealingKey(pki::Entropy& entropy) {
  return {.id = HexEncode(entropy.Draw(kIdBytes / 2)), .secret = entropy.Draw(pki::kAesKeyBytes)};
}

Keyring::Keyring(std::vector<SealingKey> keys) : keys_(std::move(keys)) { CHECK(!keys_.empty()); }

Result<Keyring> Keyring::Parse(std::string_view text) {
  std::vector<SealingKey> keys;
  int number = 0;
  for (const std::string_view part : Split(text, '\n')) {
    ++number;
    const std::string_view line = Trim(part);
    if (line.empty() || line.starts_with('#')) continue;
    const size_t space = std::min(line.find(' '), line.size());
    const std::string_view id = line.substr(0, space);
    std::optional<std::string> secret = Base64Decode(Trim(line.substr(space)));
    if (!IsId(id) || !secret || secret->size() != pki::kAesKeyBytes) {
      return BadRequest(fmt::format(
          "line {} is not a key: 16 hexadecimal digits, a space, 32 bytes in base64", number));
    }
    if (std::ranges::find(keys, id, &SealingKey::id) != keys.end()) {
      return BadRequest(fmt::format("line {}: key {} is there twice", number, id));
    }
    keys.push_back({.id = std::string(id), .secret = *std::move(secret)});
  }
  if (keys.empty()) return BadRequest("there is no key in it");
  if (keys.size() > kKeysMax) {
    return BadRequest(fmt::format("{} keys are too many: the limit is {}", keys.size(), kKeysMax));
  }
  return Keyring(std::move(keys));
}

std::string Keyring::Format() const {
  std::string text =
      "# Keys of the values at rest. The first encrypts, all decrypt. Keep a copy.\n";
  for (const SealingKey& key : keys_) {
    text += fmt::format("{} {}\n", key.id, Base64Encode(key.secret));
  }
  return text;
}

const SealingKey* Keyring::Find(std::string_view id) const {
  const auto found = std::ranges::find(keys_, id, &SealingKey::id);
  return found == keys_.end() ? nullptr : &*found;
}

Bytes Keyring::Seal(std::string_view store_key, std::string_view value) const {
  const std::string nonce = pki::SystemEntropy().Draw(pki::kAesNonceBytes);
  const std::string sealed = pki::AesGcmSeal(first().secret, nonce, store_key, value);
  return Bytes::Concat({kMagic, first().id, nonce, sealed});
}

Result<Bytes> Keyring::Open(std::string_view store_key, Bytes value) const {
  const std::string_view id = SealedWith(value.view());
  if (id.empty()) return value;
  const SealingKey* const key = Find(id);
  if (key == nullptr) {
    return NotFound(fmt::format(
        "{} is encrypted with key {}, which is not there", Quote(store_key), Printable(id)));
  }
  const std::string_view nonce = value.view().substr(kMagic.size() + kIdBytes, pki::kAesNonceBytes);
  const std::optional<std::string> plain =
      pki::AesGcmOpen(key->secret, nonce, store_key, value.view().substr(kHeadBytes));
  if (plain.has_value()) return Bytes(*plain);
  return Internal(fmt::format(
      "{} cannot be decrypted with key {}: it was damaged, or written as another object",
      Quote(store_key),
      id));
}

std::string_view SealedWith(std::string_view value) {
  if (value.size() < kHeadBytes + pki::kAesTagBytes || !value.starts_with(kMagic)) return {};
  return value.substr(kMagic.size(), kIdBytes);
}

}  // namespace berth::store
