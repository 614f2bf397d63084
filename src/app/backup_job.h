// SPDX-License-Identifier: Apache-2.0
// Backups of a server's data into a file, from the machine that it runs on and while it runs; and
// the way back, into an embedded store or an etcd.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "app/restore.h"
#include "base/result.h"
#include "pki/revocation_list.h"
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

struct BackupRestoreOptions {
  std::string path;
  std::string passphrase;
  // kNo: an authority in the data folder that is another than the backup's is a Conflict.
  KeepAuthority keep = KeepAuthority::kNo;
  // Since the backup was made: void before anybody is served.
  std::vector<pki::Revocation> revoked = {};
};

// Like Restore (app/restore.h), from a file. The file is read whole before anything changes. An
// embedded store is set aside; an etcd has to be empty.
rt::Task<Result<Restored>> RestoreBackup(rt::AsioLoop& loop,
                                         DataPlace place,
                                         BackupRestoreOptions options);

}  // namespace berth::app
