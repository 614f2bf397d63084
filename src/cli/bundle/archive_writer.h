// SPDX-License-Identifier: Apache-2.0
// A .tar.gz file, readable by its owner alone, that is whole or not there.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/time.h"

namespace berth::cli {

class ArchiveWriter {
 public:
  // Begins PATH.tmp. Conflict if `path` is there already. Entries are of `now`, below `folder`.
  static Result<std::unique_ptr<ArchiveWriter>> Begin(const std::string& path,
                                                      std::string folder,
                                                      WallTime now);
  // What is not finished is removed.
  ~ArchiveWriter();
  ArchiveWriter(const ArchiveWriter&) = delete;
  ArchiveWriter& operator=(const ArchiveWriter&) = delete;

  // `name` is relative, at most 100 characters with the folder.
  Status Add(std::string_view name, std::string_view content);
  // The file is at `path`.
  Status Finish();

  uint64_t bytes() const { return bytes_; }  // of all contents so far
  uint64_t entries() const { return entries_; }

 private:
  struct File;
  ArchiveWriter(std::string path, std::string folder, WallTime now);
  Status Write(std::string_view bytes);

  const std::string path_;
  const std::string folder_;
  const WallTime now_;
  std::unique_ptr<File> file_;
  uint64_t bytes_ = 0;
  uint64_t entries_ = 0;
};

}  // namespace berth::cli
