// SPDX-License-Identifier: Apache-2.0
#include "image/registry/blob_origins.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

#include "net/owned_fd.h"
#include "pki/digest.h"

namespace berth::image {
namespace {

constexpr size_t kWordLength = 16;

std::string OriginFile(const Layout& layout, const Descriptor& blob, std::string_view registry) {
  return fmt::format("{}/origins/{}.{}", layout.folder(), blob.digest, RegistryWord(registry));
}

}  // namespace

std::string RegistryWord(std::string_view registry) {
  return pki::Sha256Hex(registry).substr(0, kWordLength);
}

bool IsThere(const Layout& layout, const Descriptor& blob) {
  struct stat status = {};
  return lstat(layout.FileOf(blob).c_str(), &status) == 0 && S_ISREG(status.st_mode) &&
         int64_t{status.st_size} == blob.size;
}

bool IsFrom(const Layout& layout, const Descriptor& blob, std::string_view registry) {
  struct stat status = {};
  return IsThere(layout, blob) && lstat(OriginFile(layout, blob, registry).c_str(), &status) == 0;
}

// Lost with a power cut, it is fetched again: no need to wait for the disk.
Status NoteOrigin(const Layout& layout, const Descriptor& blob, std::string_view registry) {
  const std::string path = OriginFile(layout, blob, registry);
  const net::OwnedFd file(
      open(path.c_str(), O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, S_IRUSR | S_IWUSR));
  if (file.get() >= 0) return OkStatus();
  const int error = errno;
  return Unavailable("create " + path + ": " + std::strerror(error));
}

}  // namespace berth::image
