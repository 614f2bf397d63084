// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rocksdb/env.h>

#include <memory>

namespace berth::store {

// The machine's own files, each made readable and writable by its owner only, whatever the umask.
std::unique_ptr<rocksdb::Env> NewPrivateFilesEnv();

}  // namespace berth::store
