// SPDX-License-Identifier: Apache-2.0
#include "pki/digest_stream.h"

#include <openssl/evp.h>

#include "base/check.h"
#include "base/strings.h"

namespace berth::pki {

struct Sha256Stream::Body {
  EVP_MD_CTX* context = EVP_MD_CTX_new();
};

Sha256Stream::Sha256Stream() : body_(std::make_unique<Body>()) {
  CHECK(body_->context != nullptr);
  CHECK(EVP_DigestInit_ex(body_->context, EVP_sha256(), nullptr) == 1);
}
Sha256Stream::~Sha256Stream() { EVP_MD_CTX_free(body_->context); }

void Sha256Stream::Add(std::string_view bytes) {
  CHECK(EVP_DigestUpdate(body_->context, bytes.data(), bytes.size()) == 1);
}

std::string Sha256Stream::Hex() {
  std::string digest(32, '\0');
  unsigned int length = 0;
  CHECK(EVP_DigestFinal_ex(
            body_->context, reinterpret_cast<unsigned char*>(digest.data()), &length) == 1 &&
        length == digest.size());
  return HexEncode(digest);
}

}  // namespace berth::pki
