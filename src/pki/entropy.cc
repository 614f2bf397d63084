// SPDX-License-Identifier: Apache-2.0
#include "pki/entropy.h"

#include <openssl/rand.h>

#include <cstdint>

#include "base/check.h"

namespace berth::pki {
namespace {

class OpensslEntropy final : public Entropy {
 public:
  std::string Draw(size_t count) override {
    std::string bytes(count, '\0');
    CHECK(RAND_bytes(reinterpret_cast<unsigned char*>(bytes.data()), static_cast<int>(count)) == 1)
        << "the machine gives no randomness";
    return bytes;
  }
};

}  // namespace

Entropy& SystemEntropy() {
  static OpensslEntropy entropy;
  return entropy;
}

std::string DrawText(Entropy& entropy, size_t length, std::string_view alphabet) {
  CHECK(!alphabet.empty() && alphabet.size() <= 256) << "alphabet of " << alphabet.size();
  // Bytes above the largest multiple of the alphabet are drawn again: taking them modulo would make
  // its first letters likelier.
  const size_t usable = 256 - 256 % alphabet.size();
  std::string text;
  while (text.size() < length) {
    for (char byte : entropy.Draw(length)) {
      auto value = static_cast<uint8_t>(byte);
      if (value < usable && text.size() < length) text += alphabet[value % alphabet.size()];
    }
  }
  return text;
}

}  // namespace berth::pki
