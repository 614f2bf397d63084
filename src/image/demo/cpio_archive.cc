// SPDX-License-Identifier: Apache-2.0
#include "image/demo/cpio_archive.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <array>
#include <iterator>
#include <utility>

namespace berth::image {
namespace {

constexpr size_t kAlignment = 4;

}  // namespace

void CpioArchive::AddFolder(std::string_view name) { Add(name, S_IFDIR | 0755, ""); }

void CpioArchive::AddFile(std::string_view name, std::string_view content, uint32_t permissions) {
  Add(name, S_IFREG | permissions, content);
}

std::string CpioArchive::Finish() {
  Add("TRAILER!!!", 0, "");
  return std::move(bytes_);
}

void CpioArchive::Add(std::string_view name, uint32_t mode, std::string_view content) {
  // inode, mode, owner, group, links, time, size, two devices of two numbers, length of the name
  // with its end, checksum. No time: the same content is the same archive.
  const std::array<size_t, 13> fields = {
      ++count_, mode, 0, 0, 1, 0, content.size(), 0, 0, 0, 0, name.size() + 1, 0};
  bytes_ += "070701";
  for (const size_t field : fields) fmt::format_to(std::back_inserter(bytes_), "{:08X}", field);
  bytes_ += name;
  bytes_ += '\0';
  const auto align = [this] {
    while (bytes_.size() % kAlignment != 0) bytes_ += '\0';
  };
  align();
  bytes_ += content;
  align();
}

}  // namespace berth::image
