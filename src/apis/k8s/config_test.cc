// SPDX-License-Identifier: Apache-2.0
// Defends the rules, defaults and columns of Secret and ConfigMap.
#include <gtest/gtest.h>

#include "apis/k8s/config_map.h"
#include "apis/k8s/config_rules.h"
#include "apis/k8s/secret.h"
#include "apis/testing/rules_of.h"

namespace berth::apis::k8s {
namespace {

using testing::CellOf;
using testing::Parse;

Secret ValidSecret() {
  return Parse<Secret>(R"({
    "metadata": {"name": "s"}, "data": {"a": "QQ==", "b": "Qg=="}, "stringData": {"b": "new"}})");
}

TEST(Secret, MovesTextToData) {
  const Secret secret = testing::WithDefaults(ValidSecret());
  EXPECT_EQ(secret.type, "Opaque");
  EXPECT_TRUE(secret.string_data.empty());
  EXPECT_EQ(secret.data.at("a").bytes, "A");
  EXPECT_EQ(secret.data.at("b").bytes, "new");
}

TEST(Secret, HasRules) {
  testing::ExpectRules<Secret>(
      ValidSecret(),
      {
          {"bad key", [](auto& s) { s.data["a/b"] = {}; }, {"Invalid data[a/b]"}},
          {"bad key as text", [](auto& s) { s.string_data[".."] = ""; }, {"Invalid data[..]"}},
          {"as large as may be",
           [](auto& s) { s.data = {{"a", {std::string(kConfigBytesMax, 'x')}}}; },
           {}},
          {"too large",
           [](auto& s) { s.data = {{"a", {std::string(kConfigBytesMax + 1, 'x')}}}; },
           {"TooLong data"}},
          {"certificate without parts",
           [](auto& s) { s.type = "kubernetes.io/tls"; },
           {"Required data[tls.crt]", "Required data[tls.key]"}},
          {"key without key",
           [](auto& s) { s.type = "kubernetes.io/ssh-auth"; },
           {"Required data[ssh-privatekey]"}},
          {"login with nothing",
           [](auto& s) { s.type = "kubernetes.io/basic-auth"; },
           {"Required data[username]"}},
          {"login with a password",
           [](auto& s) {
             s.type = "kubernetes.io/basic-auth";
             s.string_data["password"] = "p";
           },
           {}},
          {"registry",
           [](auto& s) { s.type = "kubernetes.io/dockerconfigjson"; },
           {"Required data[.dockerconfigjson]"}},
          {"older registry",
           [](auto& s) { s.type = "kubernetes.io/dockercfg"; },
           {"Required data[.dockercfg]"}},
          {"own type", [](auto& s) { s.type = "compute.ironcore.dev/ignition"; }, {}},
      });
}

TEST(Secret, KeepsItsTypeAndWhatIsImmutable) {
  testing::ExpectUpdateRules<Secret>(
      ValidSecret(),
      {
          {"another type", [](auto& s) { s.type = "other"; }, {"Invalid type"}},
          {"other data", [](auto& s) { s.string_data["c"] = "d"; }, {}},
          {"immutable now", [](auto& s) { s.immutable = true; }, {}},
      });
  Secret fixed = ValidSecret();
  fixed.immutable = true;
  testing::ExpectUpdateRules<Secret>(
      fixed,
      {
          {"other data", [](auto& s) { s.string_data["a"] = "d"; }, {"Forbidden data"}},
          {"mutable again", [](auto& s) { s.immutable = false; }, {"Forbidden immutable"}},
          {"unset", [](auto& s) { s.immutable.reset(); }, {"Forbidden immutable"}},
          {"labels", [](auto& s) { s.metadata.labels["a"] = "b"; }, {}},
      });
}

TEST(Secret, ShowsTypeAndNumberOfEntries) {
  const Secret secret = testing::WithDefaults(ValidSecret());
  EXPECT_EQ(CellOf(kSecretKind, "Type", &secret), "Opaque");
  EXPECT_EQ(CellOf(kSecretKind, "Data", &secret), "2");
}

ConfigMap ValidConfigMap() {
  return Parse<ConfigMap>(
      R"({"metadata": {"name": "c"}, "data": {"a": "x"}, "binaryData": {"b": "AAE="}})");
}

TEST(ConfigMap, HasRules) {
  testing::ExpectRules<ConfigMap>(
      ValidConfigMap(),
      {
          {"bad key", [](auto& c) { c.data["a b"] = ""; }, {"Invalid data[a b]"}},
          {"bad binary key",
           [](auto& c) { c.binary_data["a b"] = {}; },
           {"Invalid binaryData[a b]"}},
          {"key in both", [](auto& c) { c.data["b"] = ""; }, {"Invalid data[b]"}},
          {"too large together",
           [](auto& c) {
             c.data["a"] = std::string(kConfigBytesMax / 2, 'x');
             c.binary_data["b"] = {std::string(kConfigBytesMax / 2 + 1, 'x')};
           },
           {"TooLong data"}},
      });
}

TEST(ConfigMap, KeepsWhatIsImmutable) {
  ConfigMap fixed = ValidConfigMap();
  fixed.immutable = true;
  testing::ExpectUpdateRules<ConfigMap>(
      fixed,
      {
          {"text", [](auto& c) { c.data.clear(); }, {"Forbidden data"}},
          {"bytes", [](auto& c) { c.binary_data.clear(); }, {"Forbidden binaryData"}},
          {"mutable again", [](auto& c) { c.immutable.reset(); }, {"Forbidden immutable"}},
      });
  testing::ExpectUpdateRules<ConfigMap>(ValidConfigMap(),
                                        {{"anything", [](auto& c) { c.data.clear(); }, {}}});
}

TEST(ConfigMap, ShowsNumberOfEntries) {
  const ConfigMap object = ValidConfigMap();
  EXPECT_EQ(CellOf(kConfigMapKind, "Data", &object), "2");
}

}  // namespace
}  // namespace berth::apis::k8s
