// SPDX-License-Identifier: Apache-2.0
#include "app/backup/backup_contents.h"

#include <optional>
#include <utility>

#include "app/backup/restored_access.h"
#include "app/backup/state_copy.h"
#include "base/bytes.h"

namespace berth::app {

Result<BackupContents> CheckBackup(BackupReader& reader) {
  BackupContents contents;
  while (true) {
    TRY(std::optional<BackupEntry> entry, reader.Next());
    if (!entry.has_value()) return contents;
    if (entry->type == BackupEntry::Type::kHead) {
      contents.head = entry->head;
    } else if (entry->type == BackupEntry::Type::kFile) {
      contents.files.insert_or_assign(std::move(entry->name), std::move(entry->content));
    }
  }
}

rt::Task<Status> FillFromBackup(store::Store& store, BackupReader* reader) {
  StateWriter writer(store);
  while (true) {
    CO_TRY(std::optional<BackupEntry> entry, reader->Next());
    if (!entry.has_value()) break;
    if (entry->type != BackupEntry::Type::kValue || IsToken(entry->name)) continue;
    CO_TRY_STATUS(co_await writer.Add(std::move(entry->name), Bytes(entry->content)));
  }
  co_return co_await writer.Flush();
}

}  // namespace berth::app
