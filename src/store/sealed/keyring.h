// SPDX-License-Identifier: Apache-2.0
// A Keyring holds the keys that values at rest are encrypted with. The first one encrypts, all of
// them decrypt. A value at rest:
//
//   magic (4 bytes) | id of the key (16) | nonce (12) | AES-256-GCM of the value | tag (16)
//
// with the value's key in the store as additional data. As text, one line per key: ID BASE64.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "pki/entropy.h"

namespace berth::store {

constexpr size_t kKeysMax = 32;
constexpr size_t kSealedMore = 4 + 16 + 12 + 16;  // bytes of a value at rest beyond the value

struct SealingKey {
  std::string id;  // 16 hexadecimal digits
  std::string secret;
};
SealingKey NewSealingKey(pki::Entropy& entropy);

class Keyring {
 public:
  // Errors name the line, never what it holds.
  static Result<Keyring> Parse(std::string_view text);
  // REQUIRES: at least one.
  explicit Keyring(std::vector<SealingKey> keys);
  std::string Format() const;

  const std::vector<SealingKey>& keys() const { return keys_; }
  const SealingKey& first() const { return keys_.front(); }
  const SealingKey* Find(std::string_view id) const;

  Bytes Seal(std::string_view store_key, std::string_view value) const;
  // What is not sealed is given back as it is. NotFound: none of the keys has this id. Internal: it
  // was changed, or belongs to another store key.
  Result<Bytes> Open(std::string_view store_key, Bytes value) const;

 private:
  std::vector<SealingKey> keys_;
};

// The id of the key that a value is sealed with; "" if it is not sealed.
std::string_view SealedWith(std::string_view value);

}  // namespace berth::store
