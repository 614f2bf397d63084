// SPDX-License-Identifier: Apache-2.0
// What a kernel unpacks into its memory before it starts anything: an archive in the format "newc"
// of cpio.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace berth::image {

class CpioArchive {
 public:
  // Folders before what is in them. Names without a slash at the front.
  void AddFolder(std::string_view name);
  void AddFile(std::string_view name, std::string_view content, uint32_t permissions = 0644);
  // The whole archive. Once, at the end.
  std::string Finish();

 private:
  void Add(std::string_view name, uint32_t mode, std::string_view content);

  uint32_t count_ = 0;
  std::string bytes_;
};

}  // namespace berth::image
