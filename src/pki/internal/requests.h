// SPDX-License-Identifier: Apache-2.0
// Reading certificate requests, for the sources of this library only.
#pragma once

#include <openssl/x509.h>

#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "pki/internal/openssl_handles.h"

namespace berth::pki {

using RequestHandle = std::unique_ptr<X509_REQ, FreeWith<X509_REQ_free>>;

// A request whose signature and key are good.
Result<RequestHandle> ReadRequest(std::string_view request_pem);
// Hexadecimal SHA-256 of the key's SubjectPublicKeyInfo.
std::string KeyHashOf(EVP_PKEY* key);

}  // namespace berth::pki
