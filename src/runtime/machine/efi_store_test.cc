// SPDX-License-Identifier: Apache-2.0
// Defends what is written into the store of OVMF's variables, byte by byte, and that a file that is
// none is left alone. That firmware and guests read it is shown by efi_test.py.
#include "runtime/machine/efi_store.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "base/strings.h"

namespace berth::runtime {
namespace {

constexpr const char* kUuid = "8be4df61-93ca-11d2-aa0d-00e098032b8c";
constexpr size_t kBegin = 0x48 + 28;

// As OVMF_VARS_4M.fd begins, with a store of 1 KiB and something behind it.
std::string Blank() {
  std::string file(16, '\0');
  const auto add = [&file](std::initializer_list<int> bytes) {
    for (const int byte : bytes) file.push_back(static_cast<char>(byte));
  };
  add({0x8d, 0x2b, 0xf1, 0xff, 0x96, 0x76, 0x8b, 0x4c});
  add({0xa9, 0x85, 0x27, 0x47, 0x07, 0x5b, 0x4f, 0x50});
  add({0x00, 0x08, 0, 0, 0, 0, 0, 0, '_', 'F', 'V', 'H', 0xff, 0xfe, 4, 0});
  add({0x48, 0, 0xaf, 0xb8, 0, 0, 0, 2, 1, 0, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0});
  add({0x78, 0x2c, 0xf3, 0xaa, 0x7b, 0x94, 0x9a, 0x43});
  add({0xa1, 0x80, 0x2e, 0x14, 0x4e, 0xc3, 0x77, 0x92});
  add({0x00, 0x04, 0, 0, 0x5a, 0xfe, 0, 0, 0, 0, 0, 0});
  file.resize(0x48 + 1024, '\xff');
  file.resize(2048, '\x42');
  return file;
}

iri::EfiVariable Variable(std::string name, std::string value) {
  return {.name = std::move(name), .uuid = kUuid, .value = std::move(value)};
}

TEST(EfiStore, AVariableIsWrittenAsEdk2ReadsIt) {
  const std::vector<iri::EfiVariable> wanted = {Variable("Ab", "xyz"),
                                                Variable("ß\U0001F600", "1")};
  const auto store = WithEfiVariables(Blank(), wanted);
  ASSERT_TRUE(store.ok()) << store.status();
  ASSERT_EQ(store->size(), Blank().size());
  EXPECT_EQ(store->substr(0, kBegin), Blank().substr(0, kBegin));
  EXPECT_EQ(HexEncode(store->substr(kBegin, 72)),
            "aa553f00"
            "07000000"
            "0000000000000000"
            "00000000000000000000000000000000"
            "00000000"
            "06000000"
            "03000000"
            "61dfe48bca93d211aa0d00e098032b8c"
            "410062000000"
            "78797a"
            "ffffff");
  const std::string second = store->substr(kBegin + 72);
  EXPECT_EQ(HexEncode(second.substr(0, 4)), "aa553f00");
  EXPECT_EQ(HexEncode(second.substr(60, 12)), "df003dd800de000031ffffff");
  EXPECT_EQ(store->substr(0x48 + 1024), Blank().substr(0x48 + 1024)) << "the rest is not ours";
}

TEST(EfiStore, AVariableReplacesItsFormerSelfAndOthersStay) {
  const std::vector<iri::EfiVariable> first = {Variable("A", "one"), Variable("B", "two")};
  std::string store = *WithEfiVariables(Blank(), first);
  const std::vector<iri::EfiVariable> second = {Variable("A", "three")};
  store = *WithEfiVariables(store, second);
  EXPECT_FALSE(store.contains("one"));
  EXPECT_TRUE(store.contains("two") && store.contains("three"));
  // Once more makes no difference, and what firmware has deleted goes.
  EXPECT_EQ(*WithEfiVariables(store, second), store);
  store[kBegin + 2] = '\x3c';
  store = *WithEfiVariables(store, second);
  EXPECT_FALSE(store.contains("two"));
  EXPECT_TRUE(store.contains("three"));
}

TEST(EfiStore, WhatDoesNotFitIsRefused) {
  const std::vector<iri::EfiVariable> large = {Variable("A", std::string(1000, 'v'))};
  const auto refused = WithEfiVariables(Blank(), large);
  EXPECT_EQ(refused.status().reason(), Reason::kTooManyRequests);
  EXPECT_TRUE(refused.status().message().contains("996")) << refused.status();
}

TEST(EfiStore, AFileThatIsNoStoreIsRefusedWhereverItIsCut) {
  const std::vector<iri::EfiVariable> some = {Variable("A", "v")};
  const std::string whole = *WithEfiVariables(Blank(), some);
  for (size_t size = 0; size < whole.size(); size += 7) {
    EXPECT_EQ(WithEfiVariables(whole.substr(0, size), some).status().reason(), Reason::kBadRequest)
        << size;
  }
  // Each byte of the heads that counts, and sizes that reach too far.
  for (const size_t at : {16, 35, 40, 49, 0x48, 0x48 + 18, 0x48 + 20, 0x48 + 21}) {
    std::string broken = whole;
    broken[at] = static_cast<char>(broken[at] ^ 0x7f);
    EXPECT_EQ(WithEfiVariables(broken, some).status().reason(), Reason::kBadRequest) << at;
  }
  std::string broken = whole;
  broken.replace(kBegin + 40, 4, "\xff\xff\xff\xff");
  EXPECT_EQ(WithEfiVariables(broken, some).status().reason(), Reason::kBadRequest);
}

TEST(EfiStore, DebiansOwnIsOne) {
  std::ifstream file("/usr/share/OVMF/OVMF_VARS_4M.fd", std::ios::binary);
  if (!file) GTEST_SKIP() << "no package ovmf";
  const std::string store((std::istreambuf_iterator<char>(file)), {});
  const std::vector<iri::EfiVariable> some = {Variable("A", "v")};
  const auto with = WithEfiVariables(store, some);
  ASSERT_TRUE(with.ok()) << with.status();
  EXPECT_EQ(with->size(), store.size());
}

}  // namespace
}  // namespace berth::runtime
