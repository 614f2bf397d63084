// SPDX-License-Identifier: Apache-2.0
// A backup file. Of an odd first byte what follows is the file itself, from its first chunk on;
// else it is what is sealed in its chunks, of the size that a second byte says. A bit of the first
// byte puts an end behind it that fits, so that what follows the entries is reached: then they are
// a type, a name and a content between zero bytes each, and a head.
#include <memory>
#include <optional>
#include <string>

#include "app/backup/backup_contents.h"
#include "app/backup/fake_backup.h"
#include "app/backup/restored_access.h"
#include "app/backup/state_copy.h"
#include "base/check.h"
#include "rt/sim/run_task.h"
#include "rt/sim/sim_loop.h"
#include "store/memory/memory_store.h"
#include "test/fuzz/pieces.h"
#include "test/fuzz/targets.h"

namespace berth::fuzz {
namespace {

constexpr uint8_t kIsFile = 1;
constexpr uint8_t kHasEnd = 2;
constexpr uint8_t kIsHeadBig = 4;

std::string FileOf(std::string_view bytes) {
  const uint8_t choice = TakeByte(bytes);
  if ((choice & kIsFile) != 0) return app::FakeBackup::Front() + std::string(bytes);
  const size_t chunk_bytes = TakeByte(bytes) + size_t{1};
  app::FakeBackup backup;
  if ((choice & kHasEnd) == 0) {
    backup.AddBytes(bytes);
    return backup.Seal(chunk_bytes);
  }
  while (!bytes.empty()) {
    const auto type = static_cast<char>(TakeByte(bytes));
    const std::string_view name = TakeText(bytes);
    backup.AddText(type, name, TakeText(bytes));
  }
  backup.AddHead((choice & kIsHeadBig) != 0 ? uint64_t{1} << 63U : 17, 1'700'000'000);
  backup.AddEnd();
  return backup.Seal(chunk_bytes);
}

// How many values a restore has to put into a store; nullopt if the backup is refused.
std::optional<size_t> CountValues(const std::string& file) {
  const auto reader = app::BackupReader::Open(app::FakeBackup::Source(file));
  if (!reader.ok()) return std::nullopt;
  size_t values = 0;
  while (true) {
    const auto entry = (*reader)->Next();
    if (!entry.ok()) {
      CHECK(entry.status().Is(Reason::kBadRequest)) << entry.status();
      CHECK((*reader)->Next().status().message() == entry.status().message());
      return std::nullopt;
    }
    if (!entry->has_value()) return values;
    const app::BackupEntry& one = **entry;
    if (one.type == app::BackupEntry::Type::kValue && !app::IsToken(one.name)) ++values;
  }
}

}  // namespace

// What passes the check is taken by a store, whole.
void Backup(std::string_view bytes) {
  const std::string file = FileOf(bytes);
  const std::optional<size_t> values = CountValues(file);
  if (!values.has_value()) return;
  const auto checked = app::BackupReader::Open(app::FakeBackup::Source(file));
  CHECK(checked.ok() && app::CheckBackup(**checked).ok());
  rt::SimLoop loop(1);
  const auto memory = store::MemoryStore::Open(loop);
  const auto handle = memory->NewHandle();
  const auto reader = app::BackupReader::Open(app::FakeBackup::Source(file));
  CHECK(reader.ok());
  const Status filled = rt::RunTask(loop, app::FillFromBackup(*handle, reader->get()));
  CHECK(filled.ok()) << filled;
  CHECK(rt::RunTask(loop, app::SumState(*handle))->keys == *values);
}

}  // namespace berth::fuzz
