// SPDX-License-Identifier: Apache-2.0
// The one record of a store's folder that says what the folder is.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "store/store.h"

namespace berth::store {

struct MetaRecord {
  std::string store_id;
  Revision compacted;
};

std::string EncodeMeta(const MetaRecord& meta);
// Errors name the folder; an unknown format version also what was found and what is supported.
Result<MetaRecord> DecodeMeta(std::string_view dir, std::string_view bytes);

}  // namespace berth::store
