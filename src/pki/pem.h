// SPDX-License-Identifier: Apache-2.0
// PEM blocks: base64 between BEGIN and END lines.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace berth::pki {

inline constexpr std::string_view kPemCertificate = "CERTIFICATE";
inline constexpr std::string_view kPemPrivateKey = "PRIVATE KEY";

// "-----BEGIN label-----" with lines of 64 characters.
std::string PemEncode(std::string_view label, std::string_view der);

// The bytes of every block with that label, in order; text between blocks is ignored. BadRequest
// for a block that does not end or is not base64. The error never shows the text: it may be a key.
Result<std::vector<std::string>> PemDecode(std::string_view label, std::string_view text);

}  // namespace berth::pki
