// SPDX-License-Identifier: Apache-2.0
// The digest of parts is the digest of the whole.
#include "pki/digest_stream.h"

#include <gtest/gtest.h>

#include "base/strings.h"
#include "pki/digest.h"

namespace berth::pki {
namespace {

TEST(Sha256Stream, PartsGiveTheDigestOfTheWhole) {
  EXPECT_EQ(Sha256Stream().Hex(), Sha256Hex(""));
  Sha256Stream stream;
  std::string whole;
  for (int i = 0; i < 100; ++i) {
    const std::string part(static_cast<size_t>(i), static_cast<char>(i));
    stream.Add(part);
    whole += part;
  }
  EXPECT_EQ(stream.Hex(), Sha256Hex(whole));
}

// RFC 4231, test case 2; twice, since the key is kept.
TEST(HmacSha256Key, GivesTheCodeOfEveryMessageAsIfItWereTheFirst) {
  const HmacSha256Key key("Jefe");
  const std::string_view question = "what do ya want for nothing?";
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(HexEncode(key.CodeOf(question)),
              "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    EXPECT_EQ(key.CodeOf(""), HmacSha256("Jefe", ""));
    EXPECT_EQ(key.CodeOf(std::string(1000, 'x')), HmacSha256("Jefe", std::string(1000, 'x')));
  }
}

}  // namespace
}  // namespace berth::pki
