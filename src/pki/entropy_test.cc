// SPDX-License-Identifier: Apache-2.0
// Defends: secrets are drawn whole and without bias, digests are the published ones, comparison
// looks at every byte.
#include "pki/entropy.h"

#include <gtest/gtest.h>

#include <set>

#include "pki/digest.h"

namespace berth::pki {
namespace {

// Counts upwards, so that a test knows what is drawn.
class CountingEntropy final : public Entropy {
 public:
  std::string Draw(size_t count) override {
    std::string bytes;
    while (bytes.size() < count) bytes += static_cast<char>(next_++);
    return bytes;
  }

 private:
  unsigned char next_ = 0;
};

TEST(Entropy, DrawsAsManyBytesAsAskedForAndNeverTheSame) {
  std::set<std::string> seen;
  for (int i = 0; i < 100; ++i) {
    std::string bytes = SystemEntropy().Draw(32);
    EXPECT_EQ(bytes.size(), 32U);
    EXPECT_TRUE(seen.insert(bytes).second);
  }
}

TEST(Entropy, TextUsesEveryLetterEquallyOften) {
  CountingEntropy entropy;
  // 250 of 256 values are usable for ten letters; two rounds over all bytes give 50 of each.
  std::string text = DrawText(entropy, 500, "0123456789");
  ASSERT_EQ(text.size(), 500U);
  for (char letter : std::string("0123456789")) {
    EXPECT_EQ(std::count(text.begin(), text.end(), letter), 50) << letter;
  }
}

TEST(Digest, Sha256IsThePublishedFunction) {
  EXPECT_EQ(Sha256Hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(Sha256Hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(Digest, ComparisonSeesEveryDifference) {
  EXPECT_TRUE(EqualConstantTime("", ""));
  EXPECT_TRUE(EqualConstantTime("abc", "abc"));
  EXPECT_FALSE(EqualConstantTime("abc", "abd"));
  EXPECT_FALSE(EqualConstantTime("abc", "xbc"));
  EXPECT_FALSE(EqualConstantTime("abc", "ab"));
  EXPECT_FALSE(EqualConstantTime("abc", ""));
}

TEST(Digest, Base64UrlHasNoPaddingAndIsSafeInUrls) {
  EXPECT_EQ(Base64UrlEncode(""), "");
  EXPECT_EQ(Base64UrlEncode("\xfb\xff\xfe"), "-__-");
  EXPECT_EQ(Base64UrlEncode("a"), "YQ");
  EXPECT_EQ(Base64UrlEncode(std::string(32, 'x')).size(), 43U);
}

}  // namespace
}  // namespace berth::pki
