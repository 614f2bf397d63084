// SPDX-License-Identifier: Apache-2.0
// Hashes and comparisons for secrets.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace berth::pki {

// 32 bytes.
std::string Sha256(std::string_view bytes);
// 64 characters, lower case.
std::string Sha256Hex(std::string_view bytes);

// HMAC with SHA-256: 32 bytes that only who has the key can make.
std::string HmacSha256(std::string_view key, std::string_view bytes);

// The same for one key and many messages: what follows from the key is computed once.
class HmacSha256Key {
 public:
  explicit HmacSha256Key(std::string_view key);
  ~HmacSha256Key();
  HmacSha256Key(const HmacSha256Key&) = delete;
  HmacSha256Key& operator=(const HmacSha256Key&) = delete;

  // Not from two threads at once.
  std::string CodeOf(std::string_view bytes) const;

 private:
  struct Context;
  const std::unique_ptr<Context> context_;
};

// Takes as long for a difference in the first byte as for one in the last. The lengths are not
// secret.
bool EqualConstantTime(std::string_view a, std::string_view b);

// RFC 4648 §5 without padding.
std::string Base64UrlEncode(std::string_view bytes);

}  // namespace berth::pki
