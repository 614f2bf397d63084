// SPDX-License-Identifier: Apache-2.0
// Plain files, read in parts: never through a link, never from a device or a pipe. All block.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace berth::image {

class FileReader {
 public:
  // NotFound if there is none, BadRequest if it is not a plain file.
  static Result<FileReader> Open(const std::string& path);
  ~FileReader();
  FileReader(FileReader&& other) noexcept;
  FileReader& operator=(FileReader&&) = delete;

  int64_t bytes() const { return bytes_; }
  // Calls `take` with every part, until that fails.
  Status ReadAll(const std::function<Status(std::string_view part)>& take);

 private:
  FileReader(int fd, std::string path) : fd_(fd), path_(std::move(path)) {}
  int fd_;
  std::string path_;
  int64_t bytes_ = 0;
};

// The whole file; BadRequest above the limit.
Result<std::string> ReadText(const std::string& path, size_t bytes_max);
// 64 hexadecimal characters of SHA-256.
Result<std::string> DigestOfFile(const std::string& path);
// BadRequest if the content is another.
Status VerifyDigest(const std::string& path, const std::string& digest);

}  // namespace berth::image
