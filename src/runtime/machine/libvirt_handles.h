// SPDX-License-Identifier: Apache-2.0
// What libvirt gives us to free.
#pragma once

#include <cstdlib>
#include <memory>

#include "runtime/machine/libvirt_library.h"

namespace berth::runtime {

struct FreeDomain {
  void operator()(virDomainPtr domain) const { Libvirt().virDomainFree(domain); }
};
using DomainHandle = std::unique_ptr<virDomain, FreeDomain>;
struct FreeSecret {
  void operator()(virSecretPtr secret) const { Libvirt().virSecretFree(secret); }
};
using SecretHandle = std::unique_ptr<virSecret, FreeSecret>;
struct FreeText {
  void operator()(char* text) const { free(text); }
};
using TextHandle = std::unique_ptr<char, FreeText>;

}  // namespace berth::runtime
