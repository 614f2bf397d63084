// SPDX-License-Identifier: Apache-2.0
// Defends that variables of firmware arrive as they were sent, and that bad ones are named.
#include "iri/efi_variables.h"

#include <gtest/gtest.h>

namespace berth::iri {
namespace {

constexpr const char* kUuid = "8be4df61-93ca-11d2-aa0d-00e098032b8c";

TEST(EfiVariables, WhateverIsInThemArrives) {
  const std::vector<EfiVariable> sent = {
      {.name = "Boot Order", .uuid = kUuid, .value = std::string("\0\n %\xff", 5)},
      {.name = "Größe", .uuid = kUuid, .value = "x"},
  };
  const auto read = EfiVariablesOf(EfiVariablesText(sent));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, sent);
  EXPECT_TRUE(EfiVariablesOf("")->empty());
  EXPECT_EQ(EfiVariablesOf("8BE4DF61-93CA-11D2-AA0D-00E098032B8C A v")->front().uuid, kUuid);
}

TEST(EfiVariables, WhatFirmwareCannotHaveIsNamed) {
  struct Case {
    std::vector<EfiVariable> variables;
    std::string says;
  };
  const EfiVariable good{.name = "A", .uuid = kUuid, .value = "v"};
  const auto with = [&good](auto change) {
    EfiVariable bad = good;
    change(bad);
    return std::vector<EfiVariable>{{.name = "first", .uuid = kUuid, .value = "v"}, bad};
  };
  const std::vector<EfiVariable> many(33, good);
  std::vector<EfiVariable> large;
  for (int i = 0; i < 5; ++i) {
    large.push_back({.name = std::to_string(i), .uuid = kUuid, .value = std::string(4096, 'v')});
  }
  for (const Case& c : {
           Case{with([](auto& v) { v.uuid = "8be4df61"; }), "efiVars[1]: uuid \"8be4df61\" of"},
           Case{with([](auto& v) { v.uuid[8] = '0'; }), "efiVars[1]: uuid"},
           Case{with([](auto& v) { v.name = ""; }), "efiVars[1]: name is empty"},
           Case{with([](auto& v) { v.name = std::string(129, 'n'); }), "129 bytes, 128 are"},
           Case{with([](auto& v) { v.name = "a\nb"; }), "characters that no name has"},
           Case{with([](auto& v) { v.name = "\xff"; }), "characters that no name has"},
           Case{with([](auto& v) { v.value = ""; }), "value of \"A\" is empty"},
           Case{with([](auto& v) { v.value = std::string(4097, 'v'); }), "4097 bytes, 4096 are"},
           Case{with([](auto& v) { v.name = "first"; }), "\"first\" is there twice"},
           Case{many, "is there twice"},
           Case{large, "more than 16384 bytes"},
       }) {
    const auto read = EfiVariablesOf(EfiVariablesText(c.variables));
    EXPECT_EQ(read.status().reason(), Reason::kBadRequest);
    EXPECT_TRUE(read.status().message().contains(c.says)) << read.status();
  }
  std::string many_names;
  for (int i = 0; i < 33; ++i) many_names += std::string(kUuid) + " n" + std::to_string(i) + " v\n";
  EXPECT_TRUE(EfiVariablesOf(many_names).status().message().contains("32 are the most"));
  for (const char* text : {"x", "a b", "a b c d", "%zz b c", "%4 b c"}) {
    EXPECT_FALSE(EfiVariablesOf(text).ok()) << text;
  }
}

}  // namespace
}  // namespace berth::iri
