// SPDX-License-Identifier: Apache-2.0
// A FakeBackup is a backup that no writer makes: any entries, in chunks of any size, sealed with a
// key that everybody knows.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "app/backup/backup_file.h"
#include "app/backup/internal/backup_format.h"
#include "pki/aes_gcm.h"
#include "pki/digest_stream.h"
#include "store/mvcc/record.h"

namespace berth::app {

class FakeBackup {
 public:
  static constexpr std::string_view kKey = "a key of 32 bytes for tests only";

  // A whole entry, whatever it is.
  void AddEntry(char type, std::string_view body) {
    ++entries_;
    digest_.Add(std::string_view(&type, 1));
    digest_.Add(body);
    Append(type, body);
  }
  void AddText(char type, std::string_view name, std::string_view content) {
    std::string body;
    PutText(body, name);
    PutText(body, content);
    AddEntry(type, body);
  }
  void AddHead(uint64_t revision, uint64_t created) {
    std::string body;
    store::PutVarint(body, revision);
    store::PutVarint(body, created);
    AddEntry('H', body);
  }
  // What stands between entries, or is none.
  void AddBytes(std::string_view plain) { plain_ += plain; }
  // The entry that counts and sums up the others. Once.
  void AddEnd() {
    std::string body;
    store::PutVarint(body, entries_);
    Append('E', body + digest_.Hex());
  }

  static std::string Front() {
    std::string front(kBackupMagic);
    store::PutFixed32(front, kBackupVersion);
    return front + "salt of 16 bytes";
  }
  // The chunks of the file, which begins with Front(). REQUIRES: chunk_bytes > 0.
  std::vector<std::string> Chunks(size_t chunk_bytes) const {
    std::vector<std::string> chunks;
    size_t at = 0;
    do {
      const std::string_view part = std::string_view(plain_).substr(at, chunk_bytes);
      at += part.size();
      const char last = at == plain_.size() ? '\1' : '\0';
      const std::string sealed =
          pki::AesGcmSeal(kKey, BackupNonce(chunks.size()), Front() + last, part);
      std::string chunk(1, last);
      store::PutFixed32(chunk, static_cast<uint32_t>(sealed.size()));
      chunks.push_back(chunk + sealed);
    } while (at < plain_.size());
    return chunks;
  }
  std::string Seal(size_t chunk_bytes = kChunkBytes) const {
    std::string file = Front();
    for (const std::string& chunk : Chunks(chunk_bytes)) file += chunk;
    return file;
  }

  // Gives out `file` in the parts that are asked for.
  static BackupSource Source(std::string file, std::string_view key = kKey) {
    auto rest = std::make_shared<std::pair<std::string, size_t>>(std::move(file), 0);
    return {
        .name = "fake",
        .read = [rest](char* to, size_t size) -> Result<size_t> {
          size = std::min(size, rest->first.size() - rest->second);
          std::memcpy(to, rest->first.data() + rest->second, size);
          rest->second += size;
          return size;
        },
        .key = [key = std::string(key)](std::string_view) -> Result<std::string> { return key; }};
  }

 private:
  void Append(char type, std::string_view body) {
    plain_ += type;
    PutText(plain_, body);
  }

  std::string plain_;
  uint64_t entries_ = 0;
  pki::Sha256Stream digest_;
};

}  // namespace berth::app
