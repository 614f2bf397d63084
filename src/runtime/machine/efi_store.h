// SPDX-License-Identifier: Apache-2.0
// The file in which OVMF keeps its variables (OVMF_VARS*.fd): a firmware volume whose first part is
// a store of authenticated variables, as EDK II lays it out. Pure.
#pragma once

#include <span>
#include <string>

#include "base/result.h"
#include "iri/efi_variables.h"

namespace berth::runtime {

// The same store with these variables, in place of those of the same name and vendor; for the
// firmware and for the guest that it boots (non-volatile, boot and runtime access). BadRequest if
// `store` is no such file, TooManyRequests if it has no room.
Result<std::string> WithEfiVariables(std::string store,
                                     std::span<const iri::EfiVariable> variables);

}  // namespace berth::runtime
