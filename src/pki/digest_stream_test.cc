// SPDX-License-Identifier: Apache-2.0
// The digest of parts is the digest of the whole.
#include "pki/digest_stream.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace berth::pki
