// SPDX-License-Identifier: Apache-2.0
// Backups of a server's data into a file, from the machine that it runs on and while it runs; and
// the way back, into an embedded store or an etcd.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "app/restore.h"
#include "base/result.h"
#include "rt/asio/asio_loop.h"
#include "rt/task.h"
#include "store/etcd/etcd_options.h"

namespace berth::app {

// Where a server keeps what it knows.
struct DataPlace {
  std::string data_dir;
  std::string key_file;
  std::optional<store::EtcdOptions> etcd;  // none: embedded
};

struct BackupMade {
  int64_t revision = 0;
  uint64_t values = 0;
  uint64_t files = 0;
};

// Everything that was acknowledged before the call, as of one revision, and the authority and keys
// of the data folder. The server may run.
rt::Task<Result<BackupMade>> MakeBackup(rt::AsioLoop& loop,
                                        DataPlace place,
                                        std::string path,
                                        std::string passphrase);

enum class KeepAuthority : uint8_t { kNo, kYes };

// Like Restore (app/restore.h), from a file. The file is read whole before anything changes. An
// embedded store is set aside; an etcd has to be empty. Tokens are not restored: some may have been
// revoked since. kNo: an authority in the data folder that is another than the backup's is a
// Conflict.
rt::Task<Result<Restored>> RestoreBackup(rt::AsioLoop& loop,
                                         DataPlace place,
                                         std::string path,
                                         std::string passphrase,
                                         KeepAuthority keep);

}  // namespace berth::app
