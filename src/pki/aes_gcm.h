// SPDX-License-Identifier: Apache-2.0
// AES-256-GCM: bytes that only who has the key can read, and that nobody else can change unnoticed.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace berth::pki {

constexpr size_t kAesKeyBytes = 32;
constexpr size_t kAesNonceBytes = 12;
constexpr size_t kAesTagBytes = 16;

// As long as `plain` and kAesTagBytes more. `bound` is not part of it, but has to be the same to
// open it. A nonce must never come twice with one key. REQUIRES: key and nonce have their sizes.
std::string AesGcmSeal(std::string_view key,
                       std::string_view nonce,
                       std::string_view bound,
                       std::string_view plain);
// Nullopt if key, nonce, bound or a bit of it is another one.
std::optional<std::string> AesGcmOpen(std::string_view key,
                                      std::string_view nonce,
                                      std::string_view bound,
                                      std::string_view sealed);

// A key of kAesKeyBytes out of a passphrase, with scrypt (N = 2^15, r = 8, p = 1: 32 MiB and some
// 100 ms, so that guessing is dear).
Result<std::string> KeyFromPassphrase(std::string_view passphrase, std::string_view salt);

}  // namespace berth::pki
