// SPDX-License-Identifier: Apache-2.0
// EntryRules say what may stand in a backup, to who writes it and to who reads it: what was written
// can be restored, and what no writer writes is refused before anything is made of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

namespace berth::app {

// A restore goes on far behind it, and its revisions have to be numbers still.
constexpr int64_t kBackupRevisionMax = int64_t{1} << 62;
// A restore has all files in memory; each counts with this on top of its bytes.
constexpr size_t kBackupFilesBytesMax = 64 * 1024 * 1024;
constexpr size_t kBackupFileMore = 256;

// Of a file directly in the folder pki: "pki/ca.pem", nothing hidden, no control characters.
bool IsBackupFileName(std::string_view name);

// For the entries of one backup, in their order. BadRequest says what is wrong with one.
class EntryRules {
 public:
  Status CheckHead(int64_t revision, int64_t created);
  Status CheckFile(std::string_view name, size_t bytes);
  Status CheckValue(std::string_view key, size_t bytes);
  // When there are no more.
  Status CheckEnd() const;

 private:
  bool has_head_ = false;
  size_t files_bytes_ = 0;
  std::string last_key_;  // "": none yet
};

}  // namespace berth::app
