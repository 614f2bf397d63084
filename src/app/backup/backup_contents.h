// SPDX-License-Identifier: Apache-2.0
// What a restore takes out of a backup: first everything but the values, while all of it is
// checked, then the values, into a store.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "app/backup/backup_file.h"
#include "base/result.h"
#include "rt/task.h"
#include "store/store.h"

namespace berth::app {

struct BackupContents {
  BackupHead head;
  std::map<std::string, std::string, std::less<>> files;
};

// Reads to the end; at most kBackupFilesBytesMax stay in memory. Errors are the reader's.
Result<BackupContents> CheckBackup(BackupReader& reader);

// Puts every value but tokens into the store. REQUIRES: the backup was checked.
rt::Task<Status> FillFromBackup(store::Store& store, BackupReader* reader);

}  // namespace berth::app
