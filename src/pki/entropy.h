// SPDX-License-Identifier: Apache-2.0
// Entropy is the only source of secrets: keys, tokens, serial numbers. Names and jitter come from
// base/random.h instead.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace berth::pki {

class Entropy {
 public:
  virtual ~Entropy() = default;
  // `count` unpredictable bytes.
  virtual std::string Draw(size_t count) = 0;
};

// OpenSSL's generator, seeded by the kernel. A machine that cannot give randomness ends the
// process: there is no safe way to go on. Safe to use from any thread.
Entropy& SystemEntropy();

// `length` characters of `alphabet`, each equally likely. REQUIRES: 1 to 256 characters.
std::string DrawText(Entropy& entropy, size_t length, std::string_view alphabet);

}  // namespace berth::pki
