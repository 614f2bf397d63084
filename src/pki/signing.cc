// SPDX-License-Identifier: Apache-2.0
#include "pki/internal/signing.h"

#include <fmt/core.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/pem.h>

#include "base/strings.h"
#include "pki/certificate_authority.h"
#include "pki/entropy.h"
#include "pki/pem.h"

namespace berth::pki {
namespace {

// RFC 5280 allows 20 bytes; 16 random ones never meet.
constexpr size_t kSerialBytes = 16;

// Not MBSTRING_UTF8: with that OpenSSL takes no more than the 64 bytes of X.520, which nobody
// checks who reads certificates, and names of pools are longer.
Status AddNamePart(X509_NAME* name, int field, const std::string& value) {
  if (value.empty() || value.size() > kNamePartBytesMax || !IsValidUtf8(value) ||
      value.find('\0') != std::string::npos) {
    return BadRequest(fmt::format("certificate name {}={}: must be 1 to {} bytes of text",
                                  OBJ_nid2sn(field),
                                  Quote(value),
                                  kNamePartBytesMax));
  }
  if (X509_NAME_add_entry_by_NID(name,
                                 field,
                                 V_ASN1_UTF8STRING,
                                 reinterpret_cast<const unsigned char*>(value.data()),
                                 static_cast<int>(value.size()),
                                 -1,
                                 0) != 1) {
    return OpensslError(fmt::format("certificate name {}={}", OBJ_nid2sn(field), Quote(value)));
  }
  return OkStatus();
}

Status SetSubject(X509* certificate, const CertificatePlan& plan) {
  X509_NAME* name = X509_get_subject_name(certificate);
  for (const auto& organization : plan.organizations) {
    TRY_STATUS(AddNamePart(name, NID_organizationName, organization));
  }
  return AddNamePart(name, NID_commonName, plan.common_name);
}

Status SetSerial(X509* certificate) {
  std::string bytes = SystemEntropy().Draw(kSerialBytes);
  bytes[0] = static_cast<char>((bytes[0] & 0x3f) | 0x40);  // positive, of constant length
  BignumHandle number(BN_bin2bn(reinterpret_cast<const unsigned char*>(bytes.data()),
                                static_cast<int>(bytes.size()),
                                nullptr));
  IntegerHandle serial(number ? BN_to_ASN1_INTEGER(number.get(), nullptr) : nullptr);
  if (!serial || X509_set_serialNumber(certificate, serial.get()) != 1) {
    return OpensslError("set serial number");
  }
  return OkStatus();
}

// `value` is one of our own literals; names from outside never pass through this syntax.
Status AddExtension(X509* certificate, X509* issuer, int nid, const char* value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  ExtensionHandle extension(X509V3_EXT_conf_nid(nullptr, &context, nid, value));
  if (!extension || X509_add_ext(certificate, extension.get(), -1) != 1) {
    return OpensslError(fmt::format("add certificate extension {}", OBJ_nid2sn(nid)));
  }
  return OkStatus();
}

GENERAL_NAME* DnsName(const std::string& text) {
  ASN1_IA5STRING* value = ASN1_IA5STRING_new();
  GENERAL_NAME* name = GENERAL_NAME_new();
  ASN1_STRING_set(value, text.data(), static_cast<int>(text.size()));
  GENERAL_NAME_set0_value(name, GEN_DNS, value);
  return name;
}

GENERAL_NAME* AddressName(const std::string& text) {
  ASN1_OCTET_STRING* value = a2i_IPADDRESS(text.c_str());
  if (value == nullptr) return nullptr;
  GENERAL_NAME* name = GENERAL_NAME_new();
  GENERAL_NAME_set0_value(name, GEN_IPADD, value);
  return name;
}

Status AddAlternativeNames(X509* certificate, const CertificatePlan& plan) {
  NamesHandle names(GENERAL_NAMES_new());
  for (const auto& dns : plan.dns_names) sk_GENERAL_NAME_push(names.get(), DnsName(dns));
  for (const auto& address : plan.addresses) {
    GENERAL_NAME* name = AddressName(address);
    if (name == nullptr) {
      ERR_clear_error();
      return BadRequest(fmt::format("certificate address {}: not an IP address", Quote(address)));
    }
    sk_GENERAL_NAME_push(names.get(), name);
  }
  if (sk_GENERAL_NAME_num(names.get()) == 0) return OkStatus();
  if (X509_add1_ext_i2d(certificate, NID_subject_alt_name, names.get(), 0, X509V3_ADD_DEFAULT) !=
      1) {
    return OpensslError("add alternative names");
  }
  return OkStatus();
}

Status AddExtensions(X509* certificate, X509* issuer, const CertificatePlan& plan) {
  const bool authority = plan.purpose == Purpose::kAuthority;
  TRY_STATUS(AddExtension(certificate,
                          issuer,
                          NID_basic_constraints,
                          authority ? "critical,CA:TRUE,pathlen:0" : "critical,CA:FALSE"));
  TRY_STATUS(
      AddExtension(certificate,
                   issuer,
                   NID_key_usage,
                   authority ? "critical,keyCertSign,cRLSign" : "critical,digitalSignature"));
  TRY_STATUS(AddExtension(certificate, issuer, NID_subject_key_identifier, "hash"));
  if (authority) return OkStatus();
  TRY_STATUS(AddExtension(certificate, issuer, NID_authority_key_identifier, "keyid:always"));
  TRY_STATUS(AddExtension(certificate,
                          issuer,
                          NID_ext_key_usage,
                          plan.purpose == Purpose::kServer ? "serverAuth" : "clientAuth"));
  return AddAlternativeNames(certificate, plan);
}

Result<std::string> ReadAll(BIO* bio) {
  char* data = nullptr;
  const long length = BIO_get_mem_data(bio, &data);
  if (length <= 0 || data == nullptr) return OpensslError("write PEM");
  return std::string(data, static_cast<size_t>(length));
}

}  // namespace

Status OpensslError(std::string_view doing) {
  const unsigned long code = ERR_peek_last_error();
  ERR_clear_error();
  const char* reason = ERR_reason_error_string(code);
  return Internal(fmt::format("{}: {}", doing, reason != nullptr ? reason : "failed in OpenSSL"));
}

Result<KeyHandle> NewKey() {
  KeyHandle key(EVP_EC_gen("P-256"));
  if (!key) return OpensslError("make a key");
  return key;
}

Result<std::string> KeyToPem(EVP_PKEY* key) {
  BioHandle bio(BIO_new(BIO_s_secmem()));
  if (!bio ||
      PEM_write_bio_PKCS8PrivateKey(bio.get(), key, nullptr, nullptr, 0, nullptr, nullptr) != 1) {
    return OpensslError("write a key");
  }
  return ReadAll(bio.get());
}

Result<KeyHandle> KeyFromPem(std::string_view pem) {
  // Our own decoder first: OpenSSL would ask the terminal for the password of an encrypted key.
  TRY(auto blocks, PemDecode(kPemPrivateKey, pem));
  if (blocks.empty()) return BadRequest("no PRIVATE KEY block");
  const auto* at = reinterpret_cast<const unsigned char*>(blocks[0].data());
  KeyHandle key(d2i_AutoPrivateKey(nullptr, &at, static_cast<long>(blocks[0].size())));
  if (!key) return OpensslError("read a key");
  return key;
}

Result<std::string> CertificateToPem(X509* certificate) {
  unsigned char* der = nullptr;
  const int length = i2d_X509(certificate, &der);
  if (length <= 0) return OpensslError("write a certificate");
  std::string_view bytes(reinterpret_cast<char*>(der), static_cast<size_t>(length));
  std::string pem = PemEncode(kPemCertificate, bytes);
  OPENSSL_free(der);
  return pem;
}

Result<X509Handle> CertificateFromPem(std::string_view pem) {
  TRY(auto blocks, PemDecode(kPemCertificate, pem));
  if (blocks.empty()) return BadRequest("no CERTIFICATE block");
  const auto* at = reinterpret_cast<const unsigned char*>(blocks[0].data());
  X509Handle certificate(d2i_X509(nullptr, &at, static_cast<long>(blocks[0].size())));
  if (!certificate) return OpensslError("read a certificate");
  return certificate;
}

Result<X509Handle> SignCertificate(const CertificatePlan& plan,
                                   EVP_PKEY* key,
                                   X509* issuer,
                                   EVP_PKEY* issuer_key) {
  X509Handle certificate(X509_new());
  X509* raw = certificate.get();
  if (raw == nullptr || X509_set_version(raw, X509_VERSION_3) != 1 ||
      X509_set_pubkey(raw, key) != 1 ||
      ASN1_TIME_set(X509_getm_notBefore(raw), plan.not_before.seconds()) == nullptr ||
      ASN1_TIME_set(X509_getm_notAfter(raw), plan.not_after.seconds()) == nullptr) {
    return OpensslError("begin a certificate");
  }
  TRY_STATUS(SetSerial(raw));
  TRY_STATUS(SetSubject(raw, plan));
  X509* signer = issuer != nullptr ? issuer : raw;
  if (X509_set_issuer_name(raw, X509_get_subject_name(signer)) != 1) {
    return OpensslError("set the issuer");
  }
  TRY_STATUS(AddExtensions(raw, signer, plan));
  if (X509_sign(raw, issuer_key, EVP_sha256()) == 0) return OpensslError("sign a certificate");
  return certificate;
}

}  // namespace berth::pki
