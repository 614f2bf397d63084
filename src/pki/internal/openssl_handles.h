// SPDX-License-Identifier: Apache-2.0
// Owners of OpenSSL objects, for the sources of this library only.
#pragma once

#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/evp.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <memory>

namespace berth::pki {

template <auto Free>
struct FreeWith {
  template <class T>
  void operator()(T* object) const {
    Free(object);
  }
};

using X509Handle = std::unique_ptr<X509, FreeWith<X509_free>>;
using KeyHandle = std::unique_ptr<EVP_PKEY, FreeWith<EVP_PKEY_free>>;
using BioHandle = std::unique_ptr<BIO, FreeWith<BIO_free_all>>;
using ExtensionHandle = std::unique_ptr<X509_EXTENSION, FreeWith<X509_EXTENSION_free>>;
using NamesHandle = std::unique_ptr<GENERAL_NAMES, FreeWith<GENERAL_NAMES_free>>;
using UsagesHandle = std::unique_ptr<EXTENDED_KEY_USAGE, FreeWith<EXTENDED_KEY_USAGE_free>>;
using ConstraintsHandle = std::unique_ptr<BASIC_CONSTRAINTS, FreeWith<BASIC_CONSTRAINTS_free>>;
using IntegerHandle = std::unique_ptr<ASN1_INTEGER, FreeWith<ASN1_INTEGER_free>>;
using BignumHandle = std::unique_ptr<BIGNUM, FreeWith<BN_free>>;

}  // namespace berth::pki
