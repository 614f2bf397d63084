// SPDX-License-Identifier: Apache-2.0
// An AuditFile is a file of lines that is set aside when it has grown: audit.log becomes
// audit.log.1, that one audit.log.2 and so on; the oldest goes. Mode 0600. Calls block; one at a
// time, from any thread.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace berth::apiserver {

class AuditFile {
 public:
  struct Options {
    std::string path;
    // 64 MiB * 8 files = 512 MiB, about 1.3 million records.
    size_t file_bytes_max = 64 << 20;
    size_t files_max = 8;  // with the one being written; at least 2
  };
  // Continues the file that is there. A last line that a crash has cut off is ended, so that it
  // spoils no other.
  static Result<std::unique_ptr<AuditFile>> Open(Options options);
  ~AuditFile();
  AuditFile(const AuditFile&) = delete;
  AuditFile& operator=(const AuditFile&) = delete;

  // Hands whole lines to the operating system. After a failure `written` bytes are in the file; the
  // rest is to be given again.
  struct Outcome {
    size_t written = 0;
    Status status;
  };
  Outcome Append(std::string_view lines);
  // Makes durable what was appended.
  Status Sync();

 private:
  explicit AuditFile(Options options) : options_(std::move(options)) {}
  Status OpenCurrent();
  Status Rotate();

  const Options options_;
  int fd_ = -1;
  size_t size_ = 0;
  bool in_line_ = false;  // the last Append ended in the middle of a line
};

}  // namespace berth::apiserver
