// SPDX-License-Identifier: Apache-2.0
#include "pki/digest.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/params.h>

#include "base/check.h"
#include "base/strings.h"

namespace berth::pki {

std::string Sha256(std::string_view bytes) {
  // Looking the algorithm up costs more than hashing a token, so it is looked up once.
  static const EVP_MD* algorithm = EVP_MD_fetch(nullptr, "SHA256", nullptr);
  std::string digest(32, '\0');
  unsigned int length = 0;
  CHECK(EVP_Digest(bytes.data(),
                   bytes.size(),
                   reinterpret_cast<unsigned char*>(digest.data()),
                   &length,
                   algorithm,
                   nullptr) == 1 &&
        length == digest.size());
  return digest;
}

std::string HmacSha256(std::string_view key, std::string_view bytes) {
  return HmacSha256Key(key).CodeOf(bytes);
}

struct HmacSha256Key::Context {
  EVP_MAC* algorithm = EVP_MAC_fetch(nullptr, "HMAC", nullptr);
  EVP_MAC_CTX* keyed = EVP_MAC_CTX_new(algorithm);
};

HmacSha256Key::HmacSha256Key(std::string_view key) : context_(std::make_unique<Context>()) {
  char digest[] = "SHA256";
  const OSSL_PARAM params[] = {OSSL_PARAM_construct_utf8_string("digest", digest, 0),
                               OSSL_PARAM_construct_end()};
  CHECK(context_->keyed != nullptr &&
        EVP_MAC_init(context_->keyed,
                     reinterpret_cast<const unsigned char*>(key.data()),
                     key.size(),
                     params) == 1);
}

HmacSha256Key::~HmacSha256Key() {
  EVP_MAC_CTX_free(context_->keyed);
  EVP_MAC_free(context_->algorithm);
}

std::string HmacSha256Key::CodeOf(std::string_view bytes) const {
  std::string code(32, '\0');
  size_t length = 0;
  // Without a key it begins anew with the one that it has.
  CHECK(EVP_MAC_init(context_->keyed, nullptr, 0, nullptr) == 1 &&
        EVP_MAC_update(context_->keyed,
                       reinterpret_cast<const unsigned char*>(bytes.data()),
                       bytes.size()) == 1 &&
        EVP_MAC_final(
            context_->keyed, reinterpret_cast<unsigned char*>(code.data()), &length, code.size()) ==
            1 &&
        length == code.size());
  return code;
}

std::string Sha256Hex(std::string_view bytes) { return HexEncode(Sha256(bytes)); }

bool EqualConstantTime(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

std::string Base64UrlEncode(std::string_view bytes) {
  std::string text = Base64Encode(bytes);
  while (text.ends_with('=')) text.pop_back();
  for (char& c : text) {
    if (c == '+') c = '-';
    if (c == '/') c = '_';
  }
  return text;
}

}  // namespace berth::pki
