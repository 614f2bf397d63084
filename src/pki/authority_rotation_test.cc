// SPDX-License-Identifier: Apache-2.0
// Defends: an authority is changed step by step, each of which is whole on the disk; what is
// derived from it stays the same; who signs what follows the steps.
#include <gtest/gtest.h>

#include "base/strings.h"
#include "pki/certificate_authority.h"
#include "pki/certificate_request.h"
#include "pki/internal/temp_folder.h"
#include "pki/kubeconfig.h"
#include "pki/pem.h"
#include "pki/private_file.h"

namespace berth::pki {
namespace {

const WallTime kNow = ParseRfc3339("2026-08-22T10:00:00Z").value();
const ServerNames kNames = ServerNamesFor("127.0.0.1", "build.example");
constexpr Duration kSettle = Duration::Seconds(5);
constexpr Duration kGrace = Duration::Hours(24);

Rotation Plan(const std::string& id) {
  return {.id = id, .signs_from = kNow + kSettle, .switch_after = kNow + kGrace};
}

class AuthorityRotation : public testing::Test {
 protected:
  CertificateAuthority Load(WallTime now = kNow) {
    return CertificateAuthority::LoadOrCreate(folder_ / "pki", now).value();
  }
  static std::string IssuerOfClient(const CertificateAuthority& authority, WallTime now) {
    const auto client = authority.IssueClient({.user = "jane", .groups = {}}, now).value();
    return ParseCertificatePem(client.certificate_pem)->issuer;
  }
  static std::string IssuerOfServer(const CertificateAuthority& authority) {
    return ParseCertificatePem(authority.ServerCredentials(kNames, kNow)->certificate_pem)->issuer;
  }
  static void Rotate(CertificateAuthority& authority) {
    ASSERT_TRUE(authority.Replace(authority.Rotated(Plan("one"), kNow).value(), kNow).ok());
  }

  TempFolder folder_;
};

TEST_F(AuthorityRotation, ClientsComeFromTheNextOneFirstAndTheServerAfterTheSwitch) {
  auto authority = Load();
  const std::string old = authority.names().at(0);
  EXPECT_EQ(authority.rotation(), nullptr);
  EXPECT_FALSE(authority.Switched().ok());
  EXPECT_FALSE(authority.Retired("x").ok());
  Rotate(authority);
  ASSERT_EQ(authority.names().size(), 2U);
  const std::string next = authority.names()[1];
  EXPECT_NE(next, old);
  EXPECT_EQ(authority.names()[0], old);
  ASSERT_NE(authority.rotation(), nullptr);
  EXPECT_EQ(authority.rotation()->switch_after, kNow + kGrace);
  EXPECT_EQ(IssuerOfClient(authority, kNow), old);  // other servers do not know the next one yet
  EXPECT_EQ(IssuerOfClient(authority, kNow + kSettle), next);
  EXPECT_EQ(authority.SigningName(kNow + kSettle), next);
  EXPECT_EQ(IssuerOfServer(authority), old);
  EXPECT_EQ(PemDecode(kPemCertificate, authority.certificate_pem())->size(), 2U);
  EXPECT_TRUE(authority.Rotated(Plan("two"), kNow).status().Is(Reason::kConflict));

  ASSERT_TRUE(authority.Replace(authority.Switched().value(), kNow).ok());
  EXPECT_TRUE(authority.is_switched());
  EXPECT_EQ(authority.names(), (std::vector<std::string>{next, old}));
  EXPECT_EQ(IssuerOfServer(authority), next);
  EXPECT_EQ(IssuerOfClient(authority, kNow), next);
  EXPECT_FALSE(authority.Switched().ok());

  ASSERT_TRUE(authority.Replace(authority.Retired("three").value(), kNow).ok());
  EXPECT_EQ(authority.names(), (std::vector<std::string>{next}));
  EXPECT_EQ(authority.last_change(), "three");
  EXPECT_FALSE(authority.is_switched());
  // And again.
  EXPECT_TRUE(authority.Rotated(Plan("four"), kNow).ok());
}

TEST_F(AuthorityRotation, RetiringBeforeTheSwitchLeavesTheNextOne) {
  auto authority = Load();
  Rotate(authority);
  const std::string next = authority.names()[1];
  ASSERT_TRUE(authority.Replace(authority.Retired("now").value(), kNow).ok());
  EXPECT_EQ(authority.names(), (std::vector<std::string>{next}));
  EXPECT_EQ(IssuerOfServer(authority), next);
}

TEST_F(AuthorityRotation, EveryStepIsWholeOnTheDiskAndPrivate) {
  auto authority = Load();
  const auto same_after_a_restart = [&] {
    auto again = Load();
    EXPECT_EQ(again.text(), authority.text());
    EXPECT_EQ(again.names(), authority.names());
    EXPECT_EQ(again.certificate_pem(), authority.certificate_pem());
    EXPECT_EQ(again.last_change(), authority.last_change());
    EXPECT_EQ(again.rotation() == nullptr, authority.rotation() == nullptr);
    EXPECT_EQ(ReadPrivateFile(folder_ / "pki/ca.crt").value(), authority.certificate_pem());
    EXPECT_EQ(ModeOf(folder_ / "pki/ca.pem"), 0600U);
  };
  Rotate(authority);
  same_after_a_restart();
  ASSERT_TRUE(authority.Replace(authority.Switched().value(), kNow).ok());
  same_after_a_restart();
  // The last one's key is gone: whoever reads the file later cannot sign with it.
  EXPECT_EQ(PemDecode(kPemPrivateKey, authority.text())->size(), 1U);
  ASSERT_TRUE(authority.Replace(authority.Retired("r").value(), kNow).ok());
  same_after_a_restart();
}

TEST_F(AuthorityRotation, WhatIsDerivedStaysWhatItWas) {
  auto authority = Load();
  const std::string secret = authority.DeriveSecret("berth placement proof");
  const std::string before = authority.text();
  EXPECT_NE(secret, authority.DeriveSecret("another purpose"));
  Rotate(authority);
  EXPECT_EQ(authority.DeriveSecret("berth placement proof"), secret);
  ASSERT_TRUE(authority.Replace(authority.Switched().value(), kNow).ok());
  EXPECT_EQ(authority.DeriveSecret("berth placement proof"), secret);
  ASSERT_TRUE(authority.Replace(authority.Retired("r").value(), kNow).ok());
  EXPECT_EQ(authority.DeriveSecret("berth placement proof"), secret);
  EXPECT_EQ(Load().DeriveSecret("berth placement proof"), secret);
  // That is also how a server knows that a text is of its own cluster.
  EXPECT_EQ(CertificateAuthority::Compare(before, authority.text()), std::strong_ordering::less);
  EXPECT_EQ(CertificateAuthority::Compare(before, before), std::strong_ordering::equal);
  TempFolder other;
  const auto stranger = CertificateAuthority::LoadOrCreate(other / "pki", kNow).value();
  EXPECT_EQ(CertificateAuthority::Compare(before, stranger.text()), std::nullopt);
  EXPECT_EQ(CertificateAuthority::Compare(before, "rubbish"), std::nullopt);
}

// Made with openssl; the expected value with HMAC-SHA256 of the key's DER, as servers did that knew
// no seeds.
constexpr std::string_view kKnownAuthority =
    "-----BEGIN PRIVATE KEY-----\n"
    "MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgW+nWtUY1Bkj21Ov0\n"
    "5pa4mfCh10PHm3/2gFx+BNe8UK2hRANCAATsi3tPFx6QcTpWjRDEQjbUbMsSi7Ty\n"
    "9R/L0FQ7+en1xQah5ELwMcdZ2JZFH84zgSNmZo+1kjtbusErOK7OEG5T\n"
    "-----END PRIVATE KEY-----\n"
    "-----BEGIN CERTIFICATE-----\n"
    "MIIBkDCCATagAwIBAgIUDHVSwTN4Ivzah/0WPAlXrd2kqAowCgYIKoZIzj0EAwIw\n"
    "HDEaMBgGA1UEAwwRYmVydGgtY2EtMDAwMDAwMDEwHhcNMjYxMTE2MTUxODUxWhcN\n"
    "NDYxMTExMTUxODUxWjAcMRowGAYDVQQDDBFiZXJ0aC1jYS0wMDAwMDAwMTBZMBMG\n"
    "ByqGSM49AgEGCCqGSM49AwEHA0IABOyLe08XHpBxOlaNEMRCNtRsyxKLtPL1H8vQ\n"
    "VDv56fXFBqHkQvAxx1nYlkUfzjOBI2Zmj7WSO1u6wSs4rs4QblOjVjBUMB0GA1Ud\n"
    "DgQWBBQOM3UHxYgCCQ8CnijbFKC+RisWVDAfBgNVHSMEGDAWgBQOM3UHxYgCCQ8C\n"
    "nijbFKC+RisWVDASBgNVHRMBAf8ECDAGAQH/AgEAMAoGCCqGSM49BAMCA0gAMEUC\n"
    "IQCqKzgd+ScdGgo5/CZBNhaETQGY2bZFCrbjqdMHcTz1rAIgb/wcDq/mN+SgRBu1\n"
    "QC9lNTYakoKtqU0qQsujA5sfWXo=\n"
    "-----END CERTIFICATE-----\n";

TEST_F(AuthorityRotation, WhatIsDerivedIsWhatOlderServersDerived) {
  const WallTime later = ParseRfc3339("2027-01-01T00:00:00Z").value();
  ASSERT_TRUE(EnsurePrivateFolder(folder_ / "pki").ok());
  ASSERT_TRUE(WritePrivateFile(folder_ / "pki/ca.pem", kKnownAuthority).ok());
  auto authority = Load(later);
  const std::string known = "3c08812dfaf2c2f5eab85e215c99b974fafdaab22f38742259288e62f121d3a0";
  EXPECT_EQ(HexEncode(authority.DeriveSecret("berth placement proof")), known);
  EXPECT_EQ(authority.text(), kKnownAuthority);  // not touched by a start
  ASSERT_TRUE(authority.Replace(authority.Rotated(Plan("a"), later).value(), later).ok());
  ASSERT_TRUE(authority.Replace(authority.Retired("b").value(), later).ok());
  EXPECT_EQ(HexEncode(Load(later).DeriveSecret("berth placement proof")), known);
}

TEST_F(AuthorityRotation, BothPinsAreKnownUntilTheEnd) {
  auto authority = Load();
  const std::string old = CertificatePin(authority.certificate_pem()).value();
  Rotate(authority);
  EXPECT_TRUE(authority.HasPin(old));
  ASSERT_TRUE(authority.Replace(authority.Switched().value(), kNow).ok());
  EXPECT_TRUE(authority.HasPin(old));
  EXPECT_TRUE(authority.HasPin(CertificatePin(authority.certificate_pem()).value()));
  ASSERT_TRUE(authority.Replace(authority.Retired("r").value(), kNow).ok());
  EXPECT_FALSE(authority.HasPin(old));
}

TEST_F(AuthorityRotation, TheAdministratorsKubeconfigFollows) {
  auto authority = Load();
  const std::string path = folder_ / "kubeconfig";
  const auto write = [&](WallTime now) {
    EXPECT_TRUE(WriteAdminKubeconfig(path, "https://s", authority, now).ok());
    return ReadPrivateFile(path).value();
  };
  const std::string first = write(kNow);
  Rotate(authority);
  const std::string second = write(kNow + kSettle);
  EXPECT_NE(first, second);
  EXPECT_EQ(write(kNow + kSettle), second);
  ASSERT_TRUE(authority.Replace(authority.Switched().value(), kNow).ok());
  const std::string third = write(kNow + kSettle);
  EXPECT_NE(third, second);
  EXPECT_EQ(write(kNow + kSettle), third);
}

TEST_F(AuthorityRotation, WhatIsNoAuthorityIsNotTakenOver) {
  auto authority = Load();
  Rotate(authority);
  const std::string good = authority.text();
  for (const std::string& bad :
       {std::string(), std::string("x"), good.substr(0, good.size() / 3), good + good}) {
    EXPECT_FALSE(authority.Replace(bad, kNow).ok());
    EXPECT_EQ(ReadPrivateFile(folder_ / "pki/ca.pem").value(), good);
  }
  EXPECT_EQ(authority.text(), good);
}

}  // namespace
}  // namespace berth::pki
