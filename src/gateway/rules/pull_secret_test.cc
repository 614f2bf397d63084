// SPDX-License-Identifier: Apache-2.0
// A host gets the credentials of the registries that it needs, and of no others.
#include "gateway/rules/pull_secret.h"

#include <gtest/gtest.h>

namespace berth::gateway {
namespace {

apis::k8s::Secret SecretOf(const std::string& text) {
  apis::k8s::Secret secret;
  secret.metadata.name = "pull";
  secret.type = "kubernetes.io/dockerconfigjson";
  secret.data[".dockerconfigjson"].bytes = text;
  return secret;
}

TEST(PullSecret, RegistriesAreThoseThatImagesNameThemselves) {
  EXPECT_EQ(RegistriesOf({"b.example:5000/os/demo:1", "demo", "a.example/x", "a.example/y", "://"}),
            (std::vector<std::string>{"a.example", "b.example:5000"}));
}

TEST(PullSecret, OnlyTheEntriesOfItsRegistriesGoAlong) {
  const auto secret = SecretOf(
      R"({"auths":{"https://A.example/v1/":{"auth":"YTph"},"b.example":{"auth":"YjpiYg=="}},)"
      R"("credsStore":"x"})");
  const auto found = PullSecretFor(secret, {"a.example"});
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(*found, R"({"auths":{"https://A.example/v1/":{"auth":"YTph"}}})");
  EXPECT_EQ(*PullSecretFor(secret, {"c.example"}), "");
}

TEST(PullSecret, WhatIsWrongIsSaidWithoutWhatIsSecret) {
  struct Case {
    std::string text;
    std::string says;
  };
  for (const Case& c : {Case{"hunter2", "no JSON with an object auths"},
                        Case{R"({"auths":["hunter2"]})", "no JSON with an object auths"},
                        Case{std::string(70'000, ' ') + "hunter2", "the limit is 65536"}}) {
    const auto found = PullSecretFor(SecretOf(c.text), {"a.example"});
    const std::string said(found.status().message());
    EXPECT_NE(said.find(c.says), std::string::npos) << said;
    EXPECT_NE(said.find("secret pull"), std::string::npos) << said;
    EXPECT_EQ(said.find("hunter2"), std::string::npos) << said;
  }
  apis::k8s::Secret other = SecretOf("{}");
  other.type = "Opaque";
  EXPECT_EQ(PullSecretFor(other, {}).status().message(),
            "secret pull is of type Opaque, not kubernetes.io/dockerconfigjson");
}

}  // namespace
}  // namespace berth::gateway
