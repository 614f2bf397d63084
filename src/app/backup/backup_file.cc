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

#include "app/backup/entry_rules.h"
#include "app/backup/internal/backup_format.h"
#include "base/strings.h"
#include "net/owned_fd.h"
#include "pki/digest_stream.h"
#include "pki/entropy.h"

namespace berth::app {
namespace {

Status Failed(const std::string& doing, const std::string& path) {
  const int error = errno;
  return Unavailable(fmt::format("backup: {} {}: {}", doing, path, std::strerror(error)));
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
    TRY_STATUS(Named(rules_.CheckHead(head.revision, head.created)));
    std::string entry;
    store::PutVarint(entry, static_cast<uint64_t>(head.revision));
    store::PutVarint(entry, static_cast<uint64_t>(head.created));
    return Add(kHeadEntry, entry);
  }
  Status AddFile(std::string_view name, std::string_view content) override {
    TRY_STATUS(Named(rules_.CheckFile(name, content.size())));
    std::string entry;
    PutText(entry, name);
    PutText(entry, content);
    return Add(kFileEntry, entry);
  }
  Status AddValue(std::string_view key, std::string_view value) override {
    TRY_STATUS(Named(rules_.CheckValue(key, value.size())));
    std::string entry;
    PutText(entry, key);
    PutText(entry, value);
    return Add(kValueEntry, entry);
  }
  Status Finish() override {
    TRY_STATUS(Named(rules_.CheckEnd()));
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
  Status Named(const Status& status) const { return status.Wrap("backup " + path_); }
  Status Add(char type, std::string_view entry) {
    if (entry.size() > kBackupEntryBytesMax) {
      return BadRequest(fmt::format(
          "backup: an entry of {} bytes, the limit is {}", entry.size(), kBackupEntryBytesMax));
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
        key_, BackupNonce(chunks_++), front_ + last, std::string_view(pending_).substr(0, size));
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
  EntryRules rules_;
  bool finished_ = false;
};

}  // namespace

Result<std::unique_ptr<BackupWriter>> BackupWriter::Begin(const std::string& path,
                                                          std::string_view passphrase) {
  TRY_STATUS(CheckPassphrase(passphrase));
  std::error_code error;
  if (std::filesystem::exists(std::filesystem::symlink_status(path, error))) {
    return Conflict("backup: " + path + " is there already");
  }
  std::string front(kBackupMagic);
  store::PutFixed32(front, kBackupVersion);
  front += pki::SystemEntropy().Draw(kBackupSaltBytes);
  TRY(std::string key, pki::KeyFromPassphrase(passphrase, front.substr(kBackupMagic.size() + 4)));
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
  // Not waiting for somebody who writes into a pipe: a restore reads twice.
  const auto fd =
      std::make_shared<net::OwnedFd>(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat status{};
  if (fd->get() < 0 || fstat(fd->get(), &status) != 0) return Failed("open", path);
  if (!S_ISREG(status.st_mode)) return BadRequest("backup " + path + ": it is not a plain file");
  return Open({.name = path,
               .read = [fd, path](char* to, size_t size) -> Result<size_t> {
                 while (true) {
                   const ssize_t count = read(fd->get(), to, size);
                   if (count >= 0) return static_cast<size_t>(count);
                   if (errno != EINTR) return Failed("read", path);
                 }
               },
               .key = [phrase = std::string(passphrase)](
                          std::string_view salt) { return pki::KeyFromPassphrase(phrase, salt); }});
}

}  // namespace berth::app
