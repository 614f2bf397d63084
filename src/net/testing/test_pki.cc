// SPDX-License-Identifier: Apache-2.0
#include "net/testing/test_pki.h"

#include <arpa/inet.h>
#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <array>

#include "base/check.h"

namespace berth::net {
namespace {

struct KeyFree {
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
};
struct CertificateFree {
  void operator()(X509* certificate) const { X509_free(certificate); }
};
struct BioFree {
  void operator()(BIO* bio) const { BIO_free(bio); }
};
using KeyPtr = std::unique_ptr<EVP_PKEY, KeyFree>;
using CertificatePtr = std::unique_ptr<X509, CertificateFree>;
using BioPtr = std::unique_ptr<BIO, BioFree>;

KeyPtr NewKey() {
  KeyPtr key(EVP_EC_gen("P-256"));
  CHECK(key != nullptr);
  return key;
}

std::string TextOf(BIO* bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  return {data, static_cast<size_t>(size)};
}

std::string PemOf(X509* certificate) {
  const BioPtr bio(BIO_new(BIO_s_mem()));
  CHECK(PEM_write_bio_X509(bio.get(), certificate) == 1);
  return TextOf(bio.get());
}

std::string PemOf(EVP_PKEY* key) {
  const BioPtr bio(BIO_new(BIO_s_mem()));
  CHECK(PEM_write_bio_PrivateKey(bio.get(), key, nullptr, nullptr, 0, nullptr, nullptr) == 1);
  return TextOf(bio.get());
}

void AddExtension(X509* certificate, X509* issuer, int nid, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str());
  CHECK(extension != nullptr) << value;
  X509_add_ext(certificate, extension, -1);
  X509_EXTENSION_free(extension);
}

bool IsNumericAddress(const std::string& name) {
  std::array<unsigned char, 16> address{};
  return ::inet_pton(AF_INET, name.c_str(), address.data()) == 1 ||
         ::inet_pton(AF_INET6, name.c_str(), address.data()) == 1;
}

}  // namespace

class TestPki::Body {
 public:
  Body(const std::string& name, Validity validity) : key_(NewKey()) {
    certificate_ = NewCertificate(name, key_.get(), validity);
    X509_set_issuer_name(certificate_.get(), X509_get_subject_name(certificate_.get()));
    AddExtension(certificate_.get(), certificate_.get(), NID_basic_constraints, "critical,CA:TRUE");
    AddExtension(
        certificate_.get(), certificate_.get(), NID_key_usage, "critical,keyCertSign,cRLSign");
    AddExtension(certificate_.get(), certificate_.get(), NID_subject_key_identifier, "hash");
    CHECK(X509_sign(certificate_.get(), key_.get(), EVP_sha256()) > 0);
  }

  struct Wish {
    std::string common_name;
    std::string usage;  // serverAuth or clientAuth
    std::string alternative_names;
    Validity validity;
  };
  TestIdentity Issue(const Wish& wish) {
    const KeyPtr key = NewKey();
    const CertificatePtr certificate = NewCertificate(wish.common_name, key.get(), wish.validity);
    X509* issued = certificate.get();
    X509_set_issuer_name(issued, X509_get_subject_name(certificate_.get()));
    AddExtension(issued, certificate_.get(), NID_basic_constraints, "critical,CA:FALSE");
    AddExtension(issued, certificate_.get(), NID_ext_key_usage, wish.usage);
    if (!wish.alternative_names.empty()) {
      AddExtension(issued, certificate_.get(), NID_subject_alt_name, wish.alternative_names);
    }
    CHECK(X509_sign(issued, key_.get(), EVP_sha256()) > 0);
    return {.certificate_pem = PemOf(issued), .key_pem = PemOf(key.get())};
  }

  std::string ca_pem() const { return PemOf(certificate_.get()); }

 private:
  CertificatePtr NewCertificate(const std::string& name, EVP_PKEY* key, Validity validity) {
    CertificatePtr certificate(X509_new());
    X509_set_version(certificate.get(), X509_VERSION_3);
    ASN1_INTEGER_set(X509_get_serialNumber(certificate.get()), ++serial_);
    X509_gmtime_adj(X509_getm_notBefore(certificate.get()), validity.from.seconds());
    X509_gmtime_adj(X509_getm_notAfter(certificate.get()), validity.until.seconds());
    X509_set_pubkey(certificate.get(), key);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate.get()),
                               "CN",
                               MBSTRING_UTF8,
                               reinterpret_cast<const unsigned char*>(name.c_str()),
                               -1,
                               -1,
                               0);
    return certificate;
  }

  KeyPtr key_;
  CertificatePtr certificate_;
  long serial_ = 0;
};

TestPki::TestPki(const std::string& name) : TestPki(name, {.until = Duration::Hours(48)}) {}
TestPki::TestPki(const std::string& name, Validity validity)
    : body_(std::make_unique<Body>(name, validity)), ca_pem_(body_->ca_pem()) {}
TestPki::~TestPki() = default;

TestIdentity TestPki::IssueServer(const std::vector<std::string>& names, Validity validity) {
  std::string alternatives;
  for (const std::string& name : names) {
    if (!alternatives.empty()) alternatives += ",";
    alternatives += (IsNumericAddress(name) ? "IP:" : "DNS:") + name;
  }
  return body_->Issue({.common_name = names.front(),
                       .usage = "serverAuth",
                       .alternative_names = alternatives,
                       .validity = validity});
}

TestIdentity TestPki::IssueClient(const std::string& common_name, Validity validity) {
  return body_->Issue({.common_name = common_name, .usage = "clientAuth", .validity = validity});
}

}  // namespace berth::net
