// SPDX-License-Identifier: Apache-2.0
// Defends: what TLS checks in a handshake holds for our certificates, for their own purpose only.
#include <gtest/gtest.h>
#include <openssl/x509_vfy.h>

#include "pki/certificate_authority.h"
#include "pki/internal/openssl_handles.h"
#include "pki/internal/signing.h"
#include "pki/internal/temp_folder.h"

namespace berth::pki {
namespace {

const WallTime kNow = ParseRfc3339("2026-08-22T10:00:00Z").value();

using StoreHandle = std::unique_ptr<X509_STORE, FreeWith<X509_STORE_free>>;
using CheckHandle = std::unique_ptr<X509_STORE_CTX, FreeWith<X509_STORE_CTX_free>>;

// X509_V_OK, or why the certificate is refused at that time.
int Verify(const std::string& authority, const std::string& leaf, int purpose, WallTime now) {
  StoreHandle store(X509_STORE_new());
  X509Handle trusted = CertificateFromPem(authority).value();
  X509Handle certificate = CertificateFromPem(leaf).value();
  X509_STORE_add_cert(store.get(), trusted.get());
  CheckHandle check(X509_STORE_CTX_new());
  X509_STORE_CTX_init(check.get(), store.get(), certificate.get(), nullptr);
  X509_STORE_CTX_set_purpose(check.get(), purpose);
  X509_STORE_CTX_set_time(check.get(), 0, now.seconds());
  X509_STORE_CTX_set_flags(check.get(), X509_V_FLAG_X509_STRICT);
  return X509_verify_cert(check.get()) == 1 ? X509_V_OK : X509_STORE_CTX_get_error(check.get());
}

TEST(Verification, CertificatesVerifyForTheirOwnPurposeTimeAndAuthorityOnly) {
  TempFolder folder;
  auto ours = CertificateAuthority::LoadOrCreate(folder / "a", kNow).value();
  auto theirs = CertificateAuthority::LoadOrCreate(folder / "b", kNow).value();
  const std::string client = ours.IssueClient({.user = "ann"}, kNow)->certificate_pem;
  const std::string server = ours.IssueServer(ServerNamesFor("", "host"), kNow)->certificate_pem;
  struct Case {
    const std::string& authority;
    const std::string& leaf;
    int purpose;
    WallTime now;
    int expected;
  };
  const WallTime late = kNow + kClientLifetime + Duration::Seconds(1);
  const WallTime early = kNow - kClockSkew - Duration::Seconds(1);
  for (const Case& c :
       {Case{ours.certificate_pem(), client, X509_PURPOSE_SSL_CLIENT, kNow, X509_V_OK},
        Case{ours.certificate_pem(), server, X509_PURPOSE_SSL_SERVER, kNow, X509_V_OK},
        Case{ours.certificate_pem(), client, X509_PURPOSE_SSL_CLIENT, kNow - kClockSkew, X509_V_OK},
        Case{ours.certificate_pem(),
             client,
             X509_PURPOSE_SSL_SERVER,
             kNow,
             X509_V_ERR_INVALID_PURPOSE},
        Case{ours.certificate_pem(),
             server,
             X509_PURPOSE_SSL_CLIENT,
             kNow,
             X509_V_ERR_INVALID_PURPOSE},
        Case{ours.certificate_pem(),
             client,
             X509_PURPOSE_SSL_CLIENT,
             late,
             X509_V_ERR_CERT_HAS_EXPIRED},
        Case{ours.certificate_pem(),
             client,
             X509_PURPOSE_SSL_CLIENT,
             early,
             X509_V_ERR_CERT_NOT_YET_VALID},
        Case{theirs.certificate_pem(),
             client,
             X509_PURPOSE_SSL_CLIENT,
             kNow,
             X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY}}) {
    EXPECT_EQ(Verify(c.authority, c.leaf, c.purpose, c.now), c.expected)
        << X509_verify_cert_error_string(c.expected);
  }
}

}  // namespace
}  // namespace berth::pki
