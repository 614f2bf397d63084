// SPDX-License-Identifier: Apache-2.0
#include "app/backup/backup_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <optional>
#include <utility>

#include "base/strings.h"
#include "net/owned_fd.h"
#include "pki/aes_gcm.h"
#include "pki/digest_stream.h"
#include "pki/entropy.h"
#include "store/mvcc/record.h"
#include "store/store.h"

namespace berth::app {
namespace {

constexpr std::string_view kMagic = "BERTHBAK";
constexpr uint32_t kVersion = 1;
constexpr size_t kSaltBytes = 16;
constexpr size_t kFrontBytes = kMagic.size() + 4 + kSaltBytes;
// A private file is at most 1 MiB, a value a little more.
constexpr size_t kEntryBytesMax = store::kMaxValueBytes + store::kMaxKeyBytes + 64;

constexpr char kHeadEntry = 'H';
constexpr char kFileEntry = 'F';
constexpr char kValueEntry = 'K';
constexpr char kEndEntry = 'E';

Status Failed(const std::string& doing, const std::string& path) {
  const int error = errno;
  return Unavailable(fmt::format("backup: {} {}: {}", doing, path, std::strerror(error)));
}

std::string NonceOf(uint64_t number) {
  std::string nonce(pki::kAesNonceBytes, '\0');
  for (size_t i = 0; i < 8; ++i) {
    nonce[nonce.size() - 1 - i] = static_cast<char>((number >> (8 * i)) & 0xff);
  }
  return nonce;
}

void PutText(std::string& out, std::string_view text) {
  store::PutVarint(out, text.size());
  out += text;
}

bool TakeText(std::string_view& in, std::string_view& text) {
  uint64_t size = 0;
  if (!store::TakeVarint(in, size) || size > in.size()) return false;
  text = in.substr(0, size);
  in.remove_prefix(size);
  return true;
}

Status CheckPassphrase(std::string_view passphrase) {
  if (passphrase.size() >= kPassphraseMin) return OkStatus();
  return BadRequest(fmt::format(
      "the passphrase has {} bytes, at least {} are needed", passphrase.size(), kPassphraseMin));
}

class FileWriter final : public BackupWriter {
 public:
  FileWriter(std::string path, int fd, std::string front, std::string key)
      : path_(std::move(path)), fd_(fd), front_(std::move(front)), key_(std::move(key)) {}
  ~FileWriter() override {
    if (!finished_) unlink(Temporary(path_).c_str());
  }
  static std::string Temporary(const std::string& path) { return path + ".tmp"; }

  Status WriteFront() { return Write(front_); }
  Status AddHead(const BackupHead& head) override {
    std::string entry;
    store::PutVarint(entry, static_cast<uint64_t>(head.revision));
    store::PutVarint(entry, static_cast<uint64_t>(head.created));
    return Add(kHeadEntry, entry);
  }
  Status AddFile(std::string_view name, std::string_view content) override {
    std::string entry;
    PutText(entry, name);
    PutText(entry, content);
    return Add(kFileEntry, entry);
  }
  Status AddValue(std::string_view key, std::string_view value) override {
    std::string entry;
    PutText(entry, key);
    PutText(entry, value);
    return Add(kValueEntry, entry);
  }
  Status Finish() override {
    std::string entry;
    store::PutVarint(entry, entries_);
    entry += digest_.Hex();
    TRY_STATUS(Append(kEndEntry, entry));
    while (pending_.size() > kChunkBytes) TRY_STATUS(WriteChunk(kChunkBytes, '\0'));
    TRY_STATUS(WriteChunk(pending_.size(), '\1'));
    if (fsync(fd_.get()) != 0) return Failed("sync", path_);
    // Not over one that has come meanwhile.
    if (renameat2(AT_FDCWD, Temporary(path_).c_str(), AT_FDCWD, path_.c_str(), RENAME_NOREPLACE) !=
        0) {
      return Failed("put in place", path_);
    }
    finished_ = true;
    return SyncFolder();
  }

 private:
  Status Add(char type, std::string_view entry) {
    if (entry.size() > kEntryBytesMax) {
      return BadRequest(fmt::format(
          "backup: an entry of {} bytes, the limit is {}", entry.size(), kEntryBytesMax));
    }
    ++entries_;
    digest_.Add(std::string_view(&type, 1));
    digest_.Add(entry);
    return Append(type, entry);
  }
  Status Append(char type, std::string_view entry) {
    pending_ += type;
    PutText(pending_, entry);
    while (pending_.size() > kChunkBytes) TRY_STATUS(WriteChunk(kChunkBytes, '\0'));
    return OkStatus();
  }
  Status WriteChunk(size_t size, char last) {
    const std::string sealed = pki::AesGcmSeal(
        key_, NonceOf(chunks_++), front_ + last, std::string_view(pending_).substr(0, size));
    std::string chunk(1, last);
    store::PutFixed32(chunk, static_cast<uint32_t>(sealed.size()));
    chunk += sealed;
    pending_.erase(0, size);
    return Write(chunk);
  }
  Status Write(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t count = write(fd_.get(), bytes.data(), bytes.size());
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) return Failed("write", path_);
      bytes.remove_prefix(static_cast<size_t>(count));
    }
    return OkStatus();
  }
  Status SyncFolder() {
    std::string folder = std::filesystem::path(path_).parent_path().string();
    if (folder.empty()) folder = ".";
    const net::OwnedFd descriptor(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (descriptor.get() < 0 || fsync(descriptor.get()) != 0) return Failed("sync", folder);
    return OkStatus();
  }

  const std::string path_;
  const net::OwnedFd fd_;
  const std::string front_;
  const std::string key_;
  std::string pending_;
  uint64_t chunks_ = 0;
  uint64_t entries_ = 0;
  pki::Sha256Stream digest_;
  bool finished_ = false;
};

class FileReader final : public BackupReader {
 public:
  explicit FileReader(std::string path)
      : path_(std::move(path)), fd_(open(path_.c_str(), O_RDONLY | O_CLOEXEC)) {}

  Result<std::optional<BackupEntry>> Next() override {
    while (true) {
      std::string_view rest = std::string_view(plain_).substr(taken_);
      std::string_view entry;
      if (!rest.empty()) {
        const char type = rest.front();
        rest.remove_prefix(1);
        if (TakeText(rest, entry)) {
          taken_ = plain_.size() - rest.size();
          if (type == kEndEntry) return TakeEnd(entry);
          return Take(type, entry);
        }
      }
      if (is_last_) return Bad("its last entry is missing");
      plain_.erase(0, taken_);
      taken_ = 0;
      if (plain_.size() > kEntryBytesMax + 16) return Bad("an entry is too long");
      TRY(is_last_, ReadChunk());
    }
  }

  Status ReadFront(std::string_view passphrase) {
    if (fd_.get() < 0) return Failed("open", path_);
    TRY(front_, ReadSome(kFrontBytes));
    if (!front_.starts_with(kMagic)) return Bad("this is not a backup of a server");
    if (front_.size() < kFrontBytes) return Bad("its end is missing");
    const uint32_t version = store::GetFixed32(std::string_view(front_).substr(kMagic.size()));
    if (version != kVersion) {
      return Bad(fmt::format("it has version {}, this program reads {}", version, kVersion));
    }
    const std::string_view salt = std::string_view(front_).substr(kMagic.size() + 4);
    TRY(key_, pki::KeyFromPassphrase(passphrase, salt));
    return OkStatus();
  }

 private:
  Status Bad(std::string_view why) const {
    return BadRequest(fmt::format("backup {}: {}", path_, why));
  }
  // Up to `size` bytes; fewer at the end of the file.
  Result<std::string> ReadSome(size_t size) {
    std::string bytes(size, '\0');
    size_t have = 0;
    while (have < size) {
      const ssize_t count = read(fd_.get(), bytes.data() + have, size - have);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) return Failed("read", path_);
      if (count == 0) break;
      have += static_cast<size_t>(count);
    }
    bytes.resize(have);
    return bytes;
  }
  Result<bool> ReadChunk() {
    TRY(const std::string head, ReadSome(5));
    if (head.size() < 5) return Bad("its end is missing");
    const uint32_t size = store::GetFixed32(std::string_view(head).substr(1));
    if (size < pki::kAesTagBytes || size > kChunkBytes + pki::kAesTagBytes) {
      return Bad(fmt::format("chunk {} is damaged", chunks_));
    }
    TRY(const std::string sealed, ReadSome(size));
    if (sealed.size() < size) return Bad("its end is missing");
    const std::optional<std::string> plain =
        pki::AesGcmOpen(key_, NonceOf(chunks_), front_ + head[0], sealed);
    if (!plain && chunks_ == 0) return Bad("the passphrase is wrong, or the file is damaged");
    if (!plain) return Bad(fmt::format("chunk {} is damaged", chunks_));
    ++chunks_;
    plain_ += *plain;
    return head[0] != '\0';
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
    if (type != kFileEntry && type != kValueEntry) return Bad("it has an entry of an unknown type");
    std::string_view name;
    std::string_view content;
    if (!TakeText(entry, name) || !TakeText(entry, content)) return Bad("an entry is damaged");
    taken.type = type == kFileEntry ? BackupEntry::Type::kFile : BackupEntry::Type::kValue;
    taken.name = name;
    taken.content = content;
    return std::optional(std::move(taken));
  }
  Status TakeHead(std::string_view entry, BackupHead& head) const {
    uint64_t revision = 0;
    uint64_t created = 0;
    if (!store::TakeVarint(entry, revision) || !store::TakeVarint(entry, created)) {
      return Bad("its head is damaged");
    }
    head.revision = static_cast<int64_t>(revision);
    head.created = static_cast<int64_t>(created);
    return OkStatus();
  }
  Result<std::optional<BackupEntry>> TakeEnd(std::string_view entry) {
    uint64_t entries = 0;
    const std::string digest = digest_.Hex();
    if (!store::TakeVarint(entry, entries) || entries != entries_ || entry != digest) {
      return Bad("its entries are not those that were written");
    }
    TRY(const std::string behind, ReadSome(1));
    if (!is_last_ || taken_ != plain_.size() || !behind.empty()) {
      return Bad("there is something behind its end");
    }
    return std::optional<BackupEntry>();
  }

  const std::string path_;
  const net::OwnedFd fd_;
  std::string front_;
  std::string key_;
  std::string plain_;  // of the chunks read so far, less what was given out
  size_t taken_ = 0;   // of plain_
  uint64_t chunks_ = 0;
  uint64_t entries_ = 0;
  pki::Sha256Stream digest_;
  bool is_last_ = false;
};

}  // namespace

Result<std::unique_ptr<BackupWriter>> BackupWriter::Begin(const std::string& path,
                                                          std::string_view passphrase) {
  TRY_STATUS(CheckPassphrase(passphrase));
  std::error_code error;
  if (std::filesystem::exists(std::filesystem::symlink_status(path, error))) {
    return Conflict("backup: " + path + " is there already");
  }
  std::string front(kMagic);
  store::PutFixed32(front, kVersion);
  front += pki::SystemEntropy().Draw(kSaltBytes);
  TRY(std::string key, pki::KeyFromPassphrase(passphrase, front.substr(kMagic.size() + 4)));
  const std::string temporary = FileWriter::Temporary(path);
  unlink(temporary.c_str());
  const int fd = open(
      temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, S_IRUSR | S_IWUSR);
  if (fd < 0) return Failed("create", temporary);
  auto writer = std::make_unique<FileWriter>(path, fd, std::move(front), std::move(key));
  TRY_STATUS(writer->WriteFront());
  return std::unique_ptr<BackupWriter>(std::move(writer));
}

Result<std::unique_ptr<BackupReader>> BackupReader::Open(const std::string& path,
                                                         std::string_view passphrase) {
  auto reader = std::make_unique<FileReader>(path);
  TRY_STATUS(reader->ReadFront(passphrase));
  return std::unique_ptr<BackupReader>(std::move(reader));
}

}  // namespace berth::app
