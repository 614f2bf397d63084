// SPDX-License-Identifier: Apache-2.0
// Reading certificate requests, for the sources of this library only.
#pragma once

#include <openssl/x509.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "pki/internal/openssl_handles.h"

namespace berth::pki {

using RequestHandle = std::unique_ptr<X509_REQ, FreeWith<X509_REQ_free>>;

// A request whose signature and key are good.
Result<RequestHandle> ReadRequest(std::string_view request_pem);
// Every value of one kind in a name, as UTF-8.
Result<std::vector<std::string>> NameParts(const X509_NAME* name, int nid);
// Hexadecimal SHA-256 of the key's SubjectPublicKeyInfo.
std::string KeyHashOf(EVP_PKEY* key);

}  // namespace berth::pki
