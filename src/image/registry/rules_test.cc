// SPDX-License-Identifier: Apache-2.0
// Credentials, challenges and addresses: text of somebody else's, read without surprises.
#include <gtest/gtest.h>

#include "base/strings.h"
#include "image/registry/address_rules.h"
#include "image/registry/challenge.h"
#include "image/registry/credentials.h"

namespace berth::image {
namespace {

TEST(RegistryCredentials, AreThoseOfTheHostAlone) {
  const std::string config = R"({"auths":{"https://registry.example:5000/v1/":{"auth":")" +
                             Base64Encode("anna:pass:word") +
                             R"("},"other.example":{"username":"bob","password":"b"}}})";
  const auto found = CredentialsFor(config, "registry.example:5000");
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->user, "anna");
  EXPECT_EQ(found->password, "pass:word");
  EXPECT_EQ(found->BasicHeader(), "Basic " + Base64Encode("anna:pass:word"));
  EXPECT_EQ(CredentialsFor(config, "other.example")->user, "bob");
  EXPECT_TRUE(CredentialsFor(config, "registry.example")->empty());
  EXPECT_TRUE(CredentialsFor(config, "example:5000")->empty());
}

TEST(RegistryCredentials, P9_ErrorsSayNothingSecret) {
  for (const std::string text :
       {"hunter2", "{}", R"({"auths":7})", R"({"auths":{"r.example":{"auth":"hunter2"}}})"}) {
    const auto found = CredentialsFor(text, "r.example");
    ASSERT_EQ(found.status().reason(), Reason::kBadRequest) << text;
    EXPECT_EQ(found.status().message().find("hunter2"), std::string_view::npos) << found.status();
  }
}

TEST(RegistryChallenge, IsReadWithItsQuotes) {
  const Challenge bearer = ParseChallenge(
      "Bearer realm=\"https://auth.example/token\", service=registry.example,"
      "scope=\"repository:a/b:pull,push\"");
  EXPECT_EQ(bearer,
            (Challenge{.kind = Challenge::Kind::kBearer,
                       .realm = "https://auth.example/token",
                       .service = "registry.example",
                       .scope = "repository:a/b:pull,push"}));
  EXPECT_EQ(*TokenUrl(bearer, "a/b"),
            "https://auth.example/token?service=registry.example&"
            "scope=repository%3Aa%2Fb%3Apull%2Cpush");
  EXPECT_EQ(ParseChallenge("basic realm=\"x\"").kind, Challenge::Kind::kBasic);
  EXPECT_EQ(ParseChallenge("Negotiate").kind, Challenge::Kind::kUnknown);
  for (const std::string_view odd :
       {"", "Bearer", "Bearer realm", "Bearer realm=\"", "Bearer =,,="}) {
    EXPECT_EQ(TokenUrl(ParseChallenge(odd), "a").status().reason(), Reason::kBadRequest) << odd;
  }
  EXPECT_FALSE(TokenUrl(ParseChallenge("Bearer realm=\"http://auth.example/\""), "a").ok());
}

TEST(RegistryChallenge, ATokenIsOneWord) {
  EXPECT_EQ(*ParseToken(R"({"token":"abc"})"), "abc");
  EXPECT_EQ(*ParseToken(R"({"access_token":"abc"})"), "abc");
  EXPECT_FALSE(ParseToken(R"({"token":"a\r\nX-Evil: 1"})").ok());
  EXPECT_FALSE(ParseToken("nonsense").ok());
}

TEST(RegistryAddresses, P9_PrivateOnesNeedTheOperator) {
  for (const std::string_view address : {"127.0.0.1",
                                         "10.1.2.3",
                                         "169.254.169.254",
                                         "192.168.1.1",
                                         "100.64.0.1",
                                         "0.0.0.0",
                                         "::1",
                                         "::ffff:127.0.0.1",
                                         "fe80::1",
                                         "fd00::1",
                                         "fe80::1%eth0",
                                         "nonsense"}) {
    EXPECT_FALSE(IsPublicAddress(address)) << address;
  }
  EXPECT_TRUE(IsPublicAddress("8.8.8.8"));
  EXPECT_TRUE(IsPublicAddress("2606:4700::1111"));
  const AddressRules rules{.trusted = {"registry.example:5000"}};
  EXPECT_TRUE(rules.Check("registry.example:5000", "10.0.0.1").ok());
  EXPECT_EQ(rules.Check("registry.example", "10.0.0.1").reason(), Reason::kForbidden);
  EXPECT_TRUE(rules.Check("quay.example", "8.8.8.8").ok());
}

}  // namespace
}  // namespace berth::image
