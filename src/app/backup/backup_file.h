// SPDX-License-Identifier: Apache-2.0
// A backup in a file:
//
//   "BERTHBAK" | version (4 bytes) | salt (16)
//   chunks: 0 or 1 for the last one | size (4) | AES-256-GCM of up to kChunkBytes, and tag
//
// The key follows from a passphrase and the salt. A chunk's nonce is its number; the front and
// whether it is the last are bound into each, so that chunks cannot be exchanged, left out or cut
// off. Inside is a run of entries; the last of them counts them and has their SHA-256.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace berth::app {

constexpr size_t kChunkBytes = 256 * 1024;
constexpr size_t kPassphraseMin = 8;

struct BackupHead {
  int64_t revision = 0;  // that the state is of
  int64_t created = 0;   // seconds since 1970
};

class BackupWriter {
 public:
  // Begins FILE.tmp, mode 0600. Conflict if `path` is there already.
  static Result<std::unique_ptr<BackupWriter>> Begin(const std::string& path,
                                                     std::string_view passphrase);
  // What is not finished is removed.
  virtual ~BackupWriter() = default;

  // What a reader would not take (app/backup/entry_rules.h) is a BadRequest here already.
  virtual Status AddHead(const BackupHead& head) = 0;
  // A file of the data folder: "pki/ca.pem".
  virtual Status AddFile(std::string_view name, std::string_view content) = 0;
  // In the order of their keys.
  virtual Status AddValue(std::string_view key, std::string_view value) = 0;
  // The file is at `path`, durable and whole.
  virtual Status Finish() = 0;
};

struct BackupEntry {
  enum class Type : uint8_t { kHead, kFile, kValue };
  Type type = Type::kHead;
  BackupHead head;      // kHead
  std::string name;     // kFile: of the file; kValue: the key in the store
  std::string content;  // of the file; the value
};

// Where the bytes of a backup come from, and the key that they are sealed with.
struct BackupSource {
  std::string name;  // for errors
  // Puts up to `size` bytes at `to` and says how many; 0 at the end.
  std::function<Result<size_t>(char* to, size_t size)> read;
  std::function<Result<std::string>(std::string_view salt)> key;
};

class BackupReader {
 public:
  // Errors name the file: no backup, another version, not readable, no plain file.
  static Result<std::unique_ptr<BackupReader>> Open(const std::string& path,
                                                    std::string_view passphrase);
  static Result<std::unique_ptr<BackupReader>> Open(BackupSource source);
  virtual ~BackupReader() = default;

  // The next entry, in the order in which they were written; nullopt behind the last one, when the
  // file has proven to be whole. BadRequest: a wrong passphrase, damage, an end that is missing,
  // what EntryRules refuse. What was given out before is genuine. Has at most some chunks and one
  // entry in memory. After an error the same error again.
  virtual Result<std::optional<BackupEntry>> Next() = 0;
};

}  // namespace berth::app
