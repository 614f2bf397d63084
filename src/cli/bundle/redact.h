// SPDX-License-Identifier: Apache-2.0
// Takes out of objects and texts what is nobody else's business, and leaves what helps.
#pragma once

#include <string>
#include <string_view>

#include "meta/value.h"

namespace berth::cli {

// An object of the API:
// - values of Secrets and ConfigMaps, and of annotations that are not the system's own, are
//   replaced by their size, their keys stay;
// - so are members whose name says so (password, token, passphrase, ...), the attributes by which
//   volumes and buckets are reached, and the values of EFI variables;
// - managedFields are left out;
// - every text is gone over by RedactText.
meta::Value Redact(meta::Value object);

// Takes out tokens of this system, those for joining too, bearer tokens, private keys, and what
// stands before the host of a URL (user and password), wherever they are in a text.
std::string RedactText(std::string_view text);

}  // namespace berth::cli
