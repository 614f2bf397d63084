// SPDX-License-Identifier: Apache-2.0
// An OCI image layout: a folder with index.json and blobs that are named after their digests.
// What is read is what its digests say, or an error that names it. All calls block.
//
//   NAME/oci-layout
//   NAME/index.json             entries: tag -> manifest (or index of manifests)
//   NAME/blobs/sha256/<digest>
//
// Several processes share one. Whoever uses or adds blobs holds the folder (LayoutHold, shared);
// blobs are removed only by whoever holds it alone.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "image/manifest.h"
#include "image/reference.h"

namespace berth::image {

// While it lives, nobody removes a blob. Ends with the process, however that ends.
class LayoutHold {
 public:
  enum class Kind : uint8_t { kShared, kAlone };
  // NotFound if there is no such folder. kAlone: Conflict if somebody uses it.
  static Result<LayoutHold> Take(const std::string& folder, Kind kind);
  ~LayoutHold();
  LayoutHold(LayoutHold&& other) noexcept;
  LayoutHold& operator=(LayoutHold&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }

 private:
  explicit LayoutHold(int fd) : fd_(fd) {}
  int fd_;
};

struct FoundImage {
  Descriptor entry;  // its manifest
  Manifest manifest;
  std::string command_line;  // of its config or its layer; "" for none
};

class Layout {
 public:
  explicit Layout(std::string folder) : folder_(std::move(folder)) {}

  const std::string& folder() const { return folder_; }
  // Whether there is an index.
  bool Exists() const;
  // NotFound if there is no layout.
  Result<std::vector<Descriptor>> Entries() const;
  // The documents of an image, verified. Its parts are not looked at.
  Result<FoundImage> Find(const Reference& reference, std::string_view architecture) const;
  Result<FoundImage> Read(Descriptor entry, std::string_view architecture) const;
  // The file of a part, of the right size and digest.
  Result<std::string> VerifiedFile(const Descriptor& part) const;
  // A document, of the right size and digest.
  Result<std::string> Document(const Descriptor& descriptor) const;
  std::string FileOf(const Descriptor& descriptor) const;

 private:
  const std::string folder_;
};

}  // namespace berth::image
