// SPDX-License-Identifier: Apache-2.0
// How RocksDB is set up for a log of revisions, and its errors in our words.
#pragma once

#include <rocksdb/options.h>
#include <rocksdb/status.h>

#include <memory>
#include <string_view>

#include "base/status.h"
#include "store/rocks/rocks_store.h"

namespace berth::store {

rocksdb::Options MakeRocksOptions(const RocksOptions& options,
                                  std::shared_ptr<rocksdb::EventListener> listener);

// Makes the folder, readable by its owner only.
Status PrepareFolder(const RocksOptions& options);

// Unavailable, "data folder D: cannot write: no space left on device".
Status WriteError(std::string_view dir, const rocksdb::Status& status);
Status OpenError(std::string_view dir, const rocksdb::Status& status);
Status ReadError(std::string_view dir, const rocksdb::Status& status);

}  // namespace berth::store
