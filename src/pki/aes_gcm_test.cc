// SPDX-License-Identifier: Apache-2.0
// What is sealed opens with the same key, nonce and binding, and with nothing else.
#include "pki/aes_gcm.h"

#include <gtest/gtest.h>

#include <string>

#include "base/strings.h"

namespace berth::pki {
namespace {

const std::string kKey(kAesKeyBytes, 'k');
const std::string kNonce(kAesNonceBytes, 'n');

TEST(AesGcm, IsTheStandardsOne) {
  // NIST's test case 14 of GCM: a key and nonce of zeros, 16 zero bytes.
  const std::string key(kAesKeyBytes, '\0');
  const std::string nonce(kAesNonceBytes, '\0');
  EXPECT_EQ(HexEncode(AesGcmSeal(key, nonce, "", std::string(16, '\0'))),
            "cea7403d4d606b6e074ec5d3baf39d18d0d1c8a799996bf0265b98b5d48ab919");
}

TEST(AesGcm, OpensOnlyAsItWasSealed) {
  const std::string sealed = AesGcmSeal(kKey, kNonce, "object", "value");
  EXPECT_EQ(AesGcmOpen(kKey, kNonce, "object", sealed), "value");
  EXPECT_EQ(AesGcmOpen(std::string(kAesKeyBytes, 'x'), kNonce, "object", sealed), std::nullopt);
  EXPECT_EQ(AesGcmOpen(kKey, std::string(kAesNonceBytes, 'x'), "object", sealed), std::nullopt);
  EXPECT_EQ(AesGcmOpen(kKey, kNonce, "another", sealed), std::nullopt);
}

TEST(AesGcm, NoticesEveryFlippedBitAndEveryLostByte) {
  const std::string sealed = AesGcmSeal(kKey, kNonce, "", "a value");
  for (size_t bit = 0; bit < sealed.size() * 8; ++bit) {
    std::string flipped = sealed;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
    EXPECT_EQ(AesGcmOpen(kKey, kNonce, "", flipped), std::nullopt) << bit;
  }
  for (size_t size = 0; size < sealed.size(); ++size) {
    EXPECT_EQ(AesGcmOpen(kKey, kNonce, "", sealed.substr(0, size)), std::nullopt) << size;
  }
}

TEST(AesGcm, SealsNothingToo) {
  EXPECT_EQ(AesGcmOpen(kKey, kNonce, "b", AesGcmSeal(kKey, kNonce, "b", "")), "");
}

TEST(KeyFromPassphrase, DependsOnPassphraseAndSalt) {
  const auto key = KeyFromPassphrase("correct horse", "salt");
  ASSERT_TRUE(key.ok()) << key.status();
  EXPECT_EQ(key->size(), kAesKeyBytes);
  EXPECT_EQ(*key, KeyFromPassphrase("correct horse", "salt").value());
  EXPECT_NE(*key, KeyFromPassphrase("correct horsf", "salt").value());
  EXPECT_NE(*key, KeyFromPassphrase("correct horse", "malt").value());
}

}  // namespace
}  // namespace berth::pki
