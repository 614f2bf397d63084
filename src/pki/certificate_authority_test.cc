// SPDX-License-Identifier: Apache-2.0
// Defends: the authority survives restarts and crashes, refuses damaged or expired keys by name,
// and issues certificates that say exactly what was asked for.
#include "pki/certificate_authority.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "pki/internal/temp_folder.h"
#include "pki/kubeconfig.h"
#include "pki/pem.h"
#include "pki/private_file.h"

namespace berth::pki {
namespace {

const WallTime kNow = ParseRfc3339("2026-08-22T10:00:00Z").value();
const ServerNames kNames = ServerNamesFor("127.0.0.1", "build.example");

std::string DerOf(const std::string& pem) { return PemDecode(kPemCertificate, pem).value().at(0); }

std::string Slurp(const std::string& path) { return ReadPrivateFile(path).value(); }

TEST(CertificateAuthority, C38_IsMadeOnceAndLoadedAfterwards) {
  TempFolder folder;
  auto first = CertificateAuthority::LoadOrCreate(folder / "pki", kNow);
  ASSERT_TRUE(first.ok()) << first.status();
  auto second = CertificateAuthority::LoadOrCreate(folder / "pki", kNow + Duration::Hours(1));
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(first->certificate_pem(), second->certificate_pem());
  EXPECT_EQ(ModeOf(folder / "pki"), 0700U);
  EXPECT_EQ(ModeOf(folder / "pki/ca.pem"), 0600U);
  EXPECT_EQ(ModeOf(folder / "pki/ca.crt"), 0600U);
  auto facts = ParseCertificatePem(first->certificate_pem());
  ASSERT_TRUE(facts.ok());
  EXPECT_TRUE(facts->is_authority);
  EXPECT_FALSE(facts->for_clients);
  EXPECT_EQ(facts->not_before, kNow - kClockSkew);
  EXPECT_EQ(facts->not_after, kNow + kAuthorityLifetime);
}

TEST(CertificateAuthority, RestoresTheCertificateFileAfterACrashBetweenTheFiles) {
  TempFolder folder;
  auto first = CertificateAuthority::LoadOrCreate(folder / "pki", kNow);
  std::filesystem::remove(folder / "pki/ca.crt");
  auto second = CertificateAuthority::LoadOrCreate(folder / "pki", kNow);
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(Slurp(folder / "pki/ca.crt"), first->certificate_pem());
}

TEST(CertificateAuthority, C38_NeverReplacesAnAuthorityWhoseKeyIsMissing) {
  TempFolder folder;
  ASSERT_TRUE(CertificateAuthority::LoadOrCreate(folder / "pki", kNow).ok());
  std::filesystem::remove(folder / "pki/ca.pem");
  auto again = CertificateAuthority::LoadOrCreate(folder / "pki", kNow);
  ASSERT_FALSE(again.ok());
  EXPECT_NE(again.status().message().find("ca.pem is missing"), std::string::npos);
}

TEST(CertificateAuthority, C38_IsNotMadeWhereThatIsForbidden) {
  TempFolder folder;
  const std::string pki = folder / "pki";
  const auto refused = CertificateAuthority::LoadOrCreate(pki, kNow, NoAuthority::kIsRefused);
  EXPECT_EQ(refused.status().reason(), Reason::kNotFound);
  EXPECT_NE(refused.status().message().find("ca.pem is missing"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(pki)) << "and nothing is begun";
  const auto made = CertificateAuthority::LoadOrCreate(pki, kNow);
  const auto taken = CertificateAuthority::LoadOrCreate(pki, kNow, NoAuthority::kIsRefused);
  ASSERT_TRUE(taken.ok()) << taken.status();
  EXPECT_EQ(taken->certificate_pem(), made->certificate_pem());
}

struct Damage {
  std::string_view what;
  std::function<void(const std::string& folder, const std::string& other)> apply;
  std::string_view message;
};

TEST(CertificateAuthority, C38_RefusesDamageByNameAndWithoutShowingTheKey) {
  const Damage table[] = {
      {"open to others",
       [](auto& f, auto&) { chmod((f + "/ca.pem").c_str(), 0644); },
       "open to group or others"},
      {"no key",
       [](auto& f, auto&) {
         ASSERT_TRUE(WritePrivateFile(f + "/ca.pem", Slurp(f + "/ca.crt")).ok());
       },
       "no PRIVATE KEY block"},
      {"truncated",
       [](auto& f, auto&) {
         std::string text = Slurp(f + "/ca.pem");
         ASSERT_TRUE(WritePrivateFile(f + "/ca.pem", text.substr(0, text.size() - 60)).ok());
       },
       "has no end"},
      {"garbage",
       [](auto& f, auto&) { ASSERT_TRUE(WritePrivateFile(f + "/ca.pem", "\x01\x02garbage").ok()); },
       "no PRIVATE KEY block"},
      {"foreign key",
       [](auto& f, auto& other) {
         std::string foreign = Slurp(other + "/ca.pem");
         std::string key = foreign.substr(0, foreign.find("-----BEGIN CERTIFICATE"));
         ASSERT_TRUE(WritePrivateFile(f + "/ca.pem", key + Slurp(f + "/ca.crt")).ok());
       },
       "the key does not belong to the certificate"},
  };
  for (const auto& damage : table) {
    TempFolder folder;
    ASSERT_TRUE(CertificateAuthority::LoadOrCreate(folder / "pki", kNow).ok());
    ASSERT_TRUE(CertificateAuthority::LoadOrCreate(folder / "other", kNow).ok());
    damage.apply(folder / "pki", folder / "other");
    auto loaded = CertificateAuthority::LoadOrCreate(folder / "pki", kNow);
    ASSERT_FALSE(loaded.ok()) << damage.what;
    EXPECT_NE(loaded.status().message().find("ca.pem"), std::string::npos) << damage.what;
    EXPECT_NE(loaded.status().message().find(damage.message), std::string::npos)
        << damage.what << ": " << loaded.status();
    EXPECT_EQ(loaded.status().message().find("garbage"), std::string::npos);
  }
}

TEST(CertificateAuthority, RefusesALeafInItsPlace) {
  TempFolder folder;
  auto authority = CertificateAuthority::LoadOrCreate(folder / "pki", kNow);
  Credentials leaf = authority->IssueClient({.user = "eve"}, kNow).value();
  ASSERT_TRUE(WritePrivateFile(folder / "pki/ca.pem", leaf.key_pem + leaf.certificate_pem).ok());
  EXPECT_FALSE(CertificateAuthority::LoadOrCreate(folder / "pki", kNow).ok());
}

TEST(CertificateAuthority, RefusesToRunWhenExpired) {
  TempFolder folder;
  ASSERT_TRUE(CertificateAuthority::LoadOrCreate(folder / "pki", kNow).ok());
  auto late = CertificateAuthority::LoadOrCreate(folder / "pki", kNow + kAuthorityLifetime);
  ASSERT_FALSE(late.ok());
  EXPECT_NE(late.status().message().find("expired on 2036-08-19T10:00:00Z"), std::string::npos)
      << late.status();
}

TEST(CertificateAuthority, ClientCertificatesNameUserAndGroups) {
  TempFolder folder;
  auto authority = CertificateAuthority::LoadOrCreate(folder / "pki", kNow);
  ClientSubject subject{
      .user = "jürgen", .groups = {"ops", "dev=x,y"}, .lifetime = Duration::Hours(2)};
  auto credentials = authority->IssueClient(subject, kNow);
  ASSERT_TRUE(credentials.ok()) << credentials.status();
  auto client = ParseClientCertificate(DerOf(credentials->certificate_pem));
  ASSERT_TRUE(client.ok()) << client.status();
  EXPECT_EQ(client->user, "jürgen");
  EXPECT_EQ(client->groups, subject.groups);
  EXPECT_EQ(client->not_before, kNow - kClockSkew);
  EXPECT_EQ(client->not_after, kNow + Duration::Hours(2));
  EXPECT_EQ(client->serial.size(), 32U);
  EXPECT_TRUE(authority->HasSigned(credentials->certificate_pem));
}

TEST(CertificateAuthority, RefusesNamesThatDoNotFitACertificate) {
  TempFolder folder;
  auto authority = CertificateAuthority::LoadOrCreate(folder / "pki", kNow);
  for (const std::string& user : {std::string(),
                                  std::string(kNamePartBytesMax + 1, 'a'),
                                  std::string("a\0b", 3),
                                  std::string("\xff")}) {
    auto credentials = authority->IssueClient({.user = user}, kNow);
    ASSERT_FALSE(credentials.ok());
    EXPECT_TRUE(credentials.status().Is(Reason::kBadRequest));
  }
}

TEST(CertificateAuthority, SignsNamesThatAreLongerThanCustomaryOnes) {
  TempFolder folder;
  auto authority = CertificateAuthority::LoadOrCreate(folder / "pki", kNow);
  const std::string pool = "compute.ironcore.dev:system:machinepool:" + std::string(253, 'p');
  auto credentials = authority->IssueClient({.user = pool, .groups = {pool}}, kNow);
  ASSERT_TRUE(credentials.ok()) << credentials.status();
  const auto certificate = ParseCertificatePem(credentials->certificate_pem);
  ASSERT_TRUE(certificate.ok()) << certificate.status();
  EXPECT_EQ(certificate->common_name, pool);
  EXPECT_EQ(certificate->organizations, std::vector<std::string>{pool});
  EXPECT_TRUE(authority->HasSigned(credentials->certificate_pem));
  EXPECT_TRUE(authority->IssueClient({.user = std::string(kNamePartBytesMax, 'a')}, kNow).ok());
}

TEST(CertificateAuthority, NothingOutlivesTheAuthority) {
  TempFolder folder;
  auto authority = CertificateAuthority::LoadOrCreate(folder / "pki", kNow);
  WallTime late = kNow + kAuthorityLifetime - Duration::Hours(1);
  auto credentials = authority->IssueClient({.user = "a"}, late);
  EXPECT_EQ(ParseCertificatePem(credentials->certificate_pem)->not_after,
            kNow + kAuthorityLifetime);
}

TEST(CertificateAuthority, KnowsItsOwnCertificatesFromForeignOnes) {
  TempFolder folder;
  auto ours = CertificateAuthority::LoadOrCreate(folder / "a", kNow);
  auto theirs = CertificateAuthority::LoadOrCreate(folder / "b", kNow);
  auto foreign = theirs->IssueClient({.user = "a"}, kNow);
  EXPECT_FALSE(ours->HasSigned(foreign->certificate_pem));
  EXPECT_FALSE(ours->HasSigned("nonsense"));
}

TEST(CertificateAuthority, ServerCertificatesAreNoClientCertificates) {
  TempFolder folder;
  auto authority = CertificateAuthority::LoadOrCreate(folder / "pki", kNow);
  auto server = authority->ServerCredentials(kNames, kNow);
  ASSERT_TRUE(server.ok()) << server.status();
  auto facts = ParseCertificatePem(server->certificate_pem);
  EXPECT_EQ(facts->dns_names, (std::vector<std::string>{"build.example", "localhost"}));
  EXPECT_EQ(facts->addresses, (std::vector<std::string>{"127.0.0.1", "::1"}));
  EXPECT_TRUE(facts->for_servers);
  EXPECT_FALSE(ParseClientCertificate(DerOf(server->certificate_pem)).ok());
  EXPECT_FALSE(ParseClientCertificate(DerOf(authority->certificate_pem())).ok());
}

TEST(CertificateAuthority, C38_ServerCertificateIsKeptUntilThereIsAReasonToRenewIt) {
  TempFolder folder;
  auto authority = CertificateAuthority::LoadOrCreate(folder / "pki", kNow);
  const std::string path = folder / "pki/server.pem";
  auto serve = [&](const ServerNames& names, Duration after) {
    auto credentials = authority->ServerCredentials(names, kNow + after);
    EXPECT_TRUE(credentials.ok()) << credentials.status();
    EXPECT_EQ(ModeOf(path), 0600U);
    return credentials->certificate_pem;
  };
  const std::string first = serve(kNames, Duration::Seconds(0));
  EXPECT_EQ(serve(kNames, Duration::Hours(24 * 200)), first);
  const std::string renewed = serve(kNames, Duration::Hours(24 * 300));
  EXPECT_NE(renewed, first);
  const std::string moved = serve(ServerNamesFor("10.0.0.7", "build.example"), Duration::Hours(1));
  EXPECT_NE(moved, renewed);
  EXPECT_NE(serve(kNames, Duration::Hours(1)), moved);
}

TEST(CertificateAuthority, DamagedOrForeignServerCredentialsAreReplaced) {
  TempFolder folder;
  auto authority = CertificateAuthority::LoadOrCreate(folder / "a", kNow);
  auto other = CertificateAuthority::LoadOrCreate(folder / "b", kNow);
  ASSERT_TRUE(other->ServerCredentials(kNames, kNow).ok());
  const std::string path = folder / "a/server.pem";
  for (const std::string& text : {std::string("broken"), Slurp(folder / "b/server.pem")}) {
    ASSERT_TRUE(WritePrivateFile(path, text).ok());
    auto server = authority->ServerCredentials(kNames, kNow);
    ASSERT_TRUE(server.ok()) << server.status();
    EXPECT_TRUE(authority->HasSigned(server->certificate_pem));
  }
  auto before = authority->ServerCredentials(kNames, kNow);
  ASSERT_EQ(chmod(path.c_str(), 0644), 0);
  auto after = authority->ServerCredentials(kNames, kNow);
  EXPECT_NE(before->key_pem, after->key_pem) << "a key that others could read stays in use";
}

TEST(ServerNames, AreSortedUniqueAndWithoutWildcards) {
  ServerNames names =
      ServerNamesFor("0.0.0.0", "Build", {"10.0.0.1", "0:0:0:0:0:0:0:1", "[fe80::1]"});
  EXPECT_EQ(names.dns_names, (std::vector<std::string>{"build", "localhost"}));
  EXPECT_EQ(names.addresses, (std::vector<std::string>{"10.0.0.1", "127.0.0.1", "::1", "fe80::1"}));
  for (const auto& address : HostAddresses()) {
    EXPECT_EQ(ServerNamesFor("", "", {address}).dns_names.size(), 1U) << address;
  }
}

TEST(Certificate, GarbageIsAnErrorNotACrash) {
  TempFolder folder;
  auto authority = CertificateAuthority::LoadOrCreate(folder / "pki", kNow);
  const std::string der = DerOf(authority->IssueClient({.user = "a"}, kNow)->certificate_pem);
  for (size_t length = 0; length < der.size(); ++length) {
    EXPECT_FALSE(ParseClientCertificate(der.substr(0, length)).ok());
  }
  EXPECT_FALSE(ParseClientCertificate(der + "x").ok());
}

TEST(Pem, RoundTripsAndRefusesDamage) {
  const std::string bytes = std::string("\0\1\2", 3) + std::string(67, 'x');
  const std::string text = PemEncode("THING", bytes);
  EXPECT_EQ(PemDecode("THING", "intro\n" + text + text).value(),
            (std::vector<std::string>{bytes, bytes}));
  EXPECT_TRUE(PemDecode("OTHER", text).value().empty());
  EXPECT_FALSE(PemDecode("THING", text.substr(0, text.size() - 5)).ok());
  EXPECT_FALSE(PemDecode("THING", "-----BEGIN THING-----\n!!!\n-----END THING-----").ok());
}

TEST(Kubeconfig, EmbedsEverythingAndIsForItsOwnerOnly) {
  TempFolder folder;
  auto authority = CertificateAuthority::LoadOrCreate(folder / "pki", kNow);
  const std::string path = folder / "kubeconfig";
  ASSERT_TRUE(WriteAdminKubeconfig(path, "https://127.0.0.1:6443", *authority, kNow).ok());
  EXPECT_EQ(ModeOf(path), 0600U);
  const std::string text = Slurp(path);
  EXPECT_NE(text.find("    server: https://127.0.0.1:6443\n"), std::string::npos);
  EXPECT_NE(text.find("current-context: berth\n"), std::string::npos);
  EXPECT_NE(text.find("    namespace: default\n"), std::string::npos);
  EXPECT_NE(text.find("client-key-data: "), std::string::npos);
}

TEST(Kubeconfig, IsLeftAloneWhileItWorksAndReplacedWhenItDoesNot) {
  TempFolder folder;
  auto authority = CertificateAuthority::LoadOrCreate(folder / "pki", kNow);
  auto other = CertificateAuthority::LoadOrCreate(folder / "other", kNow);
  const std::string path = folder / "kubeconfig";
  auto write = [&](const std::string& url, const CertificateAuthority& by, WallTime now) {
    EXPECT_TRUE(WriteAdminKubeconfig(path, url, by, now).ok());
    return Slurp(path);
  };
  const std::string first = write("https://a", *authority, kNow);
  const std::string edited = first + "# a note of the user\n";
  ASSERT_TRUE(WritePrivateFile(path, edited).ok());
  EXPECT_EQ(write("https://a", *authority, kNow + Duration::Hours(24 * 200)), edited);
  EXPECT_NE(write("https://a", *authority, kNow + Duration::Hours(24 * 300)), edited);
  EXPECT_NE(write("https://b", *authority, kNow).find("server: https://b"), std::string::npos);
  const std::string before = write("https://b", *authority, kNow);
  EXPECT_NE(write("https://b", *other, kNow), before);
  ASSERT_EQ(chmod(path.c_str(), 0644), 0);
  write("https://b", *other, kNow);
  EXPECT_EQ(ModeOf(path), 0600U);
}

}  // namespace
}  // namespace berth::pki
