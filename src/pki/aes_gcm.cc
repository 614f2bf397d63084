// SPDX-License-Identifier: Apache-2.0
#include "pki/aes_gcm.h"

#include <openssl/evp.h>

#include <climits>
#include <memory>

#include "base/check.h"
#include "pki/internal/openssl_handles.h"
#include "pki/internal/signing.h"

namespace berth::pki {
namespace {

constexpr uint64_t kScryptCost = 1 << 15;
constexpr uint64_t kScryptBlock = 8;
constexpr uint64_t kScryptParallel = 1;
constexpr uint64_t kScryptMemory = 64 * 1024 * 1024;  // 128 * N * r = 32 MiB, and some more

using ContextHandle = std::unique_ptr<EVP_CIPHER_CTX, FreeWith<EVP_CIPHER_CTX_free>>;

const unsigned char* In(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}
unsigned char* Out(std::string& text) { return reinterpret_cast<unsigned char*>(text.data()); }

void CheckSizes(std::string_view key, std::string_view nonce, std::string_view bytes) {
  CHECK(key.size() == kAesKeyBytes && nonce.size() == kAesNonceBytes && bytes.size() < INT_MAX);
}

const EVP_CIPHER* Cipher() {
  static const EVP_CIPHER* const cipher = EVP_CIPHER_fetch(nullptr, "AES-256-GCM", nullptr);
  return cipher;
}

}  // namespace

std::string AesGcmSeal(std::string_view key,
                       std::string_view nonce,
                       std::string_view bound,
                       std::string_view plain) {
  CheckSizes(key, nonce, plain);
  const ContextHandle context(EVP_CIPHER_CTX_new());
  std::string sealed(plain.size(), '\0');
  std::string tag(kAesTagBytes, '\0');
  int size = 0;
  CHECK(context != nullptr &&
        EVP_EncryptInit_ex2(context.get(), Cipher(), In(key), In(nonce), nullptr) == 1 &&
        EVP_EncryptUpdate(
            context.get(), nullptr, &size, In(bound), static_cast<int>(bound.size())) == 1 &&
        EVP_EncryptUpdate(
            context.get(), Out(sealed), &size, In(plain), static_cast<int>(plain.size())) == 1 &&
        EVP_EncryptFinal_ex(context.get(), Out(tag), &size) == 1 &&
        EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_GCM_GET_TAG, kAesTagBytes, tag.data()) == 1);
  return sealed + tag;
}

std::optional<std::string> AesGcmOpen(std::string_view key,
                                      std::string_view nonce,
                                      std::string_view bound,
                                      std::string_view sealed) {
  if (sealed.size() < kAesTagBytes) return std::nullopt;
  CheckSizes(key, nonce, sealed);
  const std::string_view body = sealed.substr(0, sealed.size() - kAesTagBytes);
  std::string tag(sealed.substr(body.size()));
  const ContextHandle context(EVP_CIPHER_CTX_new());
  std::string plain(body.size(), '\0');
  std::string rest(kAesTagBytes, '\0');
  int size = 0;
  CHECK(context != nullptr &&
        EVP_DecryptInit_ex2(context.get(), Cipher(), In(key), In(nonce), nullptr) == 1 &&
        EVP_DecryptUpdate(
            context.get(), nullptr, &size, In(bound), static_cast<int>(bound.size())) == 1 &&
        EVP_DecryptUpdate(
            context.get(), Out(plain), &size, In(body), static_cast<int>(body.size())) == 1 &&
        EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_GCM_SET_TAG, kAesTagBytes, tag.data()) == 1);
  if (EVP_DecryptFinal_ex(context.get(), Out(rest), &size) != 1) return std::nullopt;
  return plain;
}

Result<std::string> KeyFromPassphrase(std::string_view passphrase, std::string_view salt) {
  std::string key(kAesKeyBytes, '\0');
  if (EVP_PBE_scrypt(passphrase.data(),
                     passphrase.size(),
                     In(salt),
                     salt.size(),
                     kScryptCost,
                     kScryptBlock,
                     kScryptParallel,
                     kScryptMemory,
                     Out(key),
                     key.size()) != 1) {
    return OpensslError("derive a key from the passphrase");
  }
  return key;
}

}  // namespace berth::pki
