// SPDX-License-Identifier: Apache-2.0
#include "pki/certificate_request.h"

#include <fmt/core.h>

#include "pki/digest.h"
#include "pki/internal/requests.h"
#include "pki/internal/signing.h"
#include "pki/pem.h"

namespace berth::pki {
namespace {

constexpr std::string_view kPemRequest = "CERTIFICATE REQUEST";
constexpr size_t kRequestBytesMax = 16 * 1024;  // RSA 4096 with its signature is 1.6 KiB
constexpr int kRsaBitsMin = 2048;
constexpr int kRsaBitsMax = 4096;

Status CheckKey(EVP_PKEY* key) {
  switch (EVP_PKEY_get_base_id(key)) {
    case EVP_PKEY_ED25519: return OkStatus();
    case EVP_PKEY_EC: {
      const int bits = EVP_PKEY_get_bits(key);
      if (bits == 256 || bits == 384) return OkStatus();
      return BadRequest(
          fmt::format("certificate request: a curve of {} bits, not 256 or 384", bits));
    }
    case EVP_PKEY_RSA: {
      const int bits = EVP_PKEY_get_bits(key);
      if (bits >= kRsaBitsMin && bits <= kRsaBitsMax) return OkStatus();
      return BadRequest(fmt::format("certificate request: an RSA key of {} bits, not {} to {}",
                                    bits,
                                    kRsaBitsMin,
                                    kRsaBitsMax));
    }
    default: return BadRequest("certificate request: a kind of key that is not accepted");
  }
}

Result<std::string> RequestFor(EVP_PKEY* key) {
  RequestHandle request(X509_REQ_new());
  if (!request || X509_REQ_set_version(request.get(), X509_REQ_VERSION_1) != 1 ||
      X509_REQ_set_pubkey(request.get(), key) != 1) {
    return OpensslError("begin a certificate request");
  }
  const EVP_MD* digest = EVP_PKEY_get_base_id(key) == EVP_PKEY_ED25519 ? nullptr : EVP_sha256();
  if (X509_REQ_sign(request.get(), key, digest) == 0) {
    return OpensslError("sign a certificate request");
  }
  unsigned char* der = nullptr;
  const int length = i2d_X509_REQ(request.get(), &der);
  if (length <= 0) return OpensslError("write a certificate request");
  std::string pem =
      PemEncode(kPemRequest, {reinterpret_cast<const char*>(der), static_cast<size_t>(length)});
  OPENSSL_free(der);
  return pem;
}

}  // namespace

Result<RequestHandle> ReadRequest(std::string_view request_pem) {
  if (request_pem.size() > kRequestBytesMax) {
    return BadRequest(fmt::format("certificate request: {} bytes, at most {} are read",
                                  request_pem.size(),
                                  kRequestBytesMax));
  }
  TRY(auto blocks, PemDecode(kPemRequest, request_pem));
  if (blocks.size() != 1) {
    return BadRequest(fmt::format("certificate request: {} blocks instead of one", blocks.size()));
  }
  const auto* begin = reinterpret_cast<const unsigned char*>(blocks[0].data());
  const auto* at = begin;
  RequestHandle request(d2i_X509_REQ(nullptr, &at, static_cast<long>(blocks[0].size())));
  EVP_PKEY* key = request ? X509_REQ_get0_pubkey(request.get()) : nullptr;
  if (key == nullptr || at != begin + blocks[0].size()) {
    (void)OpensslError("");  // forgets what OpenSSL noted
    return BadRequest("certificate request: not a PKCS#10 request");
  }
  TRY_STATUS(CheckKey(key));
  if (X509_REQ_verify(request.get(), key) != 1) {
    (void)OpensslError("");
    return BadRequest("certificate request: its own key has not signed it");
  }
  return request;
}

std::string KeyHashOf(EVP_PKEY* key) {
  unsigned char* der = nullptr;
  const int length = i2d_PUBKEY(key, &der);
  if (length <= 0) return {};
  std::string hash = Sha256Hex({reinterpret_cast<const char*>(der), static_cast<size_t>(length)});
  OPENSSL_free(der);
  return hash;
}

Result<NewRequest> MakeRequest() {
  NewRequest made;
  TRY(KeyHandle key, NewKey());
  TRY(made.request_pem, RequestFor(key.get()));
  TRY(made.key_pem, KeyToPem(key.get()));
  return made;
}

Result<std::string> MakeRequestFor(std::string_view key_pem) {
  TRY(KeyHandle key, KeyFromPem(key_pem));
  return RequestFor(key.get());
}

Result<std::string> RequestKeyHash(std::string_view request_pem) {
  TRY(RequestHandle request, ReadRequest(request_pem));
  return KeyHashOf(X509_REQ_get0_pubkey(request.get()));
}

Result<RequestedSubject> ReadRequestedSubject(std::string_view request_pem) {
  TRY(RequestHandle request, ReadRequest(request_pem));
  const X509_NAME* name = X509_REQ_get_subject_name(request.get());
  TRY(std::vector<std::string> users, NameParts(name, NID_commonName));
  RequestedSubject subject;
  TRY(subject.groups, NameParts(name, NID_organizationName));
  if (users.size() == 1) subject.user = std::move(users.front());
  STACK_OF(X509_EXTENSION)* extensions = X509_REQ_get_extensions(request.get());
  subject.has_alternative_names = X509v3_get_ext_by_NID(extensions, NID_subject_alt_name, -1) >= 0;
  sk_X509_EXTENSION_pop_free(extensions, X509_EXTENSION_free);
  return subject;
}

Result<std::string> CertificatePin(std::string_view certificate_pem) {
  TRY(auto blocks, PemDecode(kPemCertificate, certificate_pem));
  if (blocks.empty()) return BadRequest("no CERTIFICATE block");
  return "sha256:" + Sha256Hex(blocks[0]);
}

}  // namespace berth::pki
