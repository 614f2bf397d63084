// SPDX-License-Identifier: Apache-2.0
// Whole files, read with a limit. Errors name the file and the reason.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"

namespace berth::cli {

// 64 objects of the server's 1 MiB in one manifest; anything larger is not a manifest.
inline constexpr size_t kFileBytesMax = 64 << 20;

// NotFound if it does not exist; BadRequest above kFileBytesMax or if it is a folder.
Result<std::string> ReadFile(const std::string& path);
// A new file in `folder` (/tmp if empty), readable by its owner only, whose name ends in `suffix`;
// the caller removes it.
Result<std::string> MakePrivateTemporary(std::string_view folder,
                                         std::string_view suffix,
                                         std::string_view content);

}  // namespace berth::cli
