// SPDX-License-Identifier: Apache-2.0
// Tokens are kept as Secrets of the system's namespace, with a hash in place of their text.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "cli/api/api.h"
#include "cli/api/resource.h"
#include "meta/value.h"
#include "pki/token.h"

namespace berth::cli {

Resource SecretResource();
const std::string& TokenNamespace();
meta::Value SecretValue(const pki::TokenSecret& secret, std::string_view type);
// Creates the Secret, and the namespace if somebody has deleted it.
Status StoreSecret(Api& api, const meta::Value& secret);

}  // namespace berth::cli
