// SPDX-License-Identifier: Apache-2.0
// Variables that a machine's EFI firmware has when it boots first. The interface has no field for
// them: they are an annotation of the machine, which other runtimes do not know and leave alone.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace berth::iri {

inline constexpr std::string_view kEfiVariablesAnnotation = "berth.dev/efi-variables";

// Far below the 32 KiB of a variable and the 256 KiB of all of them that OVMF has room for.
inline constexpr size_t kEfiVariablesMax = 32;
inline constexpr size_t kEfiNameMax = 128;  // bytes
inline constexpr size_t kEfiValueMax = 4096;
inline constexpr size_t kEfiValuesMax = 16 * 1024;  // of all together

struct EfiVariable {
  std::string name;   // UTF-8
  std::string uuid;   // of its vendor, "8be4df61-93ca-11d2-aa0d-00e098032b8c"
  std::string value;  // bytes, as they are
  bool operator==(const EfiVariable&) const = default;
};

// A line each, whatever is in them: "UUID NAME VALUE", percent-encoded.
std::string EfiVariablesText(std::span<const EfiVariable> variables);
// BadRequest, with which variable, field and limit, for anything that firmware could not have.
Result<std::vector<EfiVariable>> EfiVariablesOf(std::string_view text);

}  // namespace berth::iri
