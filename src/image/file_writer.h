// SPDX-License-Identifier: Apache-2.0
// A file that is written once, from its beginning to its end, while its digest is taken. Blocks of
// zeros become holes: a disk takes what is in it. All calls block.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "pki/digest_stream.h"

namespace berth::image {

// How many of these bytes are written if they are appended behind so many others: the rest of them
// are holes.
int64_t WrittenBytes(int64_t behind, std::string_view bytes);

class FileWriter {
 public:
  enum class Begin : uint8_t {
    kEmpty,
    kResume,  // behind what is there already, whose digest is taken first
  };
  // Conflict if somebody else is writing it.
  static Result<std::unique_ptr<FileWriter>> Open(const std::string& path, Begin begin);
  // What was not finished stays as it is, to be resumed or removed.
  ~FileWriter();
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;

  // TooManyRequests if the disk is full.
  Status Append(std::string_view bytes);
  int64_t bytes() const { return bytes_; }
  // Durable and readable for all; the digest of the whole, 64 hexadecimal characters. Once.
  Result<std::string> Finish();

 private:
  FileWriter(int fd, std::string path) : fd_(fd), path_(std::move(path)) {}
  Status AppendBlock(std::string_view bytes);

  int fd_;
  const std::string path_;
  int64_t bytes_ = 0;
  pki::Sha256Stream hash_;
};

// Replace the file as a whole; durable on return.
Status ReplaceFile(const std::string& path, std::string_view text);
Status CopyFile(const std::string& from, const std::string& to);

}  // namespace berth::image
