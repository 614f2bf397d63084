// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <optional>
#include <utility>

#include "app/backup/backup_file.h"
#include "app/backup/entry_rules.h"
#include "app/backup/internal/backup_format.h"
#include "pki/digest_stream.h"

namespace berth::app {
namespace {

bool TakeText(std::string_view& in, std::string_view& text) {
  uint64_t size = 0;
  if (!store::TakeVarint(in, size) || size > in.size()) return false;
  text = in.substr(0, size);
  in.remove_prefix(size);
  return true;
}

// Reads the bytes of a source piece by piece and opens its chunks.
class Chunks {
 public:
  explicit Chunks(BackupSource source) : source_(std::move(source)) {}

  Status ReadFront() {
    TRY(front_, ReadSome(kBackupFrontBytes));
    if (!front_.starts_with(kBackupMagic)) return BadRequest("this is not a backup of a server");
    if (front_.size() < kBackupFrontBytes) return BadRequest("its end is missing");
    const std::string_view behind = std::string_view(front_).substr(kBackupMagic.size());
    const uint32_t version = store::GetFixed32(behind);
    if (version != kBackupVersion) {
      return BadRequest(
          fmt::format("it has version {}, this program reads {}", version, kBackupVersion));
    }
    TRY(key_, source_.key(behind.substr(4)));
    return OkStatus();
  }

  // Appends what is in the next chunk. REQUIRES: !is_last().
  Status Next(std::string& plain) {
    TRY(const std::string head, ReadSome(5));
    if (head.size() < 5) return BadRequest("its end is missing");
    const uint32_t size = store::GetFixed32(std::string_view(head).substr(1));
    if (size < pki::kAesTagBytes || size > kChunkBytes + pki::kAesTagBytes) {
      return BadRequest(fmt::format("chunk {} is damaged", number_));
    }
    TRY(const std::string sealed, ReadSome(size));
    if (sealed.size() < size) return BadRequest("its end is missing");
    const std::optional<std::string> opened =
        pki::AesGcmOpen(key_, BackupNonce(number_), front_ + head[0], sealed);
    if (!opened && number_ == 0) {
      return BadRequest("the passphrase is wrong, or the file is damaged");
    }
    if (!opened) return BadRequest(fmt::format("chunk {} is damaged", number_));
    // Only the last one may be empty: a run of such chunks would be read for nothing.
    is_last_ = head[0] != '\0';
    if (opened->empty() && !is_last_) return BadRequest(fmt::format("chunk {} is empty", number_));
    ++number_;
    plain += *opened;
    return OkStatus();
  }
  bool is_last() const { return is_last_; }

  Result<bool> IsAtEnd() {
    TRY(const std::string behind, ReadSome(1));
    return behind.empty();
  }

 private:
  // Up to `size` bytes; fewer at the end.
  Result<std::string> ReadSome(size_t size) {
    std::string bytes(size, '\0');
    size_t have = 0;
    while (have < size) {
      TRY(const size_t count, source_.read(bytes.data() + have, size - have));
      if (count == 0) break;
      have += count;
    }
    bytes.resize(have);
    return bytes;
  }

  const BackupSource source_;
  std::string front_;
  std::string key_;
  uint64_t number_ = 0;  // of the next one
  bool is_last_ = false;
};

class EntryReader final : public BackupReader {
 public:
  explicit EntryReader(BackupSource source) : name_(source.name), chunks_(std::move(source)) {}

  Status ReadFront() { return Named(chunks_.ReadFront()); }

  Result<std::optional<BackupEntry>> Next() override {
    if (has_ended_) return std::optional<BackupEntry>();
    TRY_STATUS(failed_);
    Result<std::optional<BackupEntry>> next = TakeNext();
    if (!next.ok()) {
      failed_ = Named(next.status());
      return failed_;
    }
    has_ended_ = !next->has_value();
    return next;
  }

 private:
  Status Named(const Status& status) const {
    return status.Is(Reason::kBadRequest) ? status.Wrap("backup " + name_) : status;
  }

  Result<std::optional<BackupEntry>> TakeNext() {
    while (true) {
      std::string_view rest = std::string_view(plain_).substr(taken_);
      std::string_view entry;
      if (!rest.empty()) {
        const char type = rest.front();
        rest.remove_prefix(1);
        if (TakeText(rest, entry)) {
          taken_ = plain_.size() - rest.size();
          return type == kEndEntry ? TakeEnd(entry) : Take(type, entry);
        }
      }
      if (chunks_.is_last()) return BadRequest("its last entry is missing");
      plain_.erase(0, taken_);
      taken_ = 0;
      if (plain_.size() > kBackupEntryBytesMax + 16) return BadRequest("an entry is too long");
      TRY_STATUS(chunks_.Next(plain_));
    }
  }

  Result<std::optional<BackupEntry>> Take(char type, std::string_view entry) {
    ++entries_;
    digest_.Add(std::string_view(&type, 1));
    digest_.Add(entry);
    BackupEntry taken;
    if (type == kHeadEntry) {
      TRY_STATUS(TakeHead(entry, taken.head));
      return std::optional(std::move(taken));
    }
    if (type != kFileEntry && type != kValueEntry) {
      return BadRequest("it has an entry of an unknown type");
    }
    std::string_view name;
    std::string_view content;
    if (!TakeText(entry, name) || !TakeText(entry, content) || !entry.empty()) {
      return BadRequest("an entry is damaged");
    }
    if (type == kFileEntry) {
      taken.type = BackupEntry::Type::kFile;
      TRY_STATUS(rules_.CheckFile(name, content.size()));
    } else {
      taken.type = BackupEntry::Type::kValue;
      TRY_STATUS(rules_.CheckValue(name, content.size()));
    }
    taken.name = name;
    taken.content = content;
    return std::optional(std::move(taken));
  }

  Status TakeHead(std::string_view entry, BackupHead& head) {
    uint64_t revision = 0;
    uint64_t created = 0;
    if (!store::TakeVarint(entry, revision) || !store::TakeVarint(entry, created) ||
        !entry.empty()) {
      return BadRequest("its head is damaged");
    }
    head.revision = static_cast<int64_t>(revision);
    head.created = static_cast<int64_t>(created);
    return rules_.CheckHead(head.revision, head.created);
  }

  Result<std::optional<BackupEntry>> TakeEnd(std::string_view entry) {
    uint64_t entries = 0;
    const std::string digest = digest_.Hex();
    if (!store::TakeVarint(entry, entries) || entries != entries_ || entry != digest) {
      return BadRequest("its entries are not those that were written");
    }
    TRY(const bool is_at_end, chunks_.IsAtEnd());
    if (!chunks_.is_last() || taken_ != plain_.size() || !is_at_end) {
      return BadRequest("there is something behind its end");
    }
    TRY_STATUS(rules_.CheckEnd());
    return std::optional<BackupEntry>();
  }

  const std::string name_;
  Chunks chunks_;
  std::string plain_;  // of the chunks read so far, less what was given out
  size_t taken_ = 0;   // of plain_
  uint64_t entries_ = 0;
  pki::Sha256Stream digest_;
  EntryRules rules_;
  Status failed_;
  bool has_ended_ = false;
};

}  // namespace

Result<std::unique_ptr<BackupReader>> BackupReader::Open(BackupSource source) {
  auto reader = std::make_unique<EntryReader>(std::move(source));
  TRY_STATUS(reader->ReadFront());
  return std::unique_ptr<BackupReader>(std::move(reader));
}

}  // namespace berth::app
