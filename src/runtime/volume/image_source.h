// SPDX-License-Identifier: Apache-2.0
// Where the content of new disks and the kernels of guests come from.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "image/image_folder.h"
#include "image/manifest.h"
#include "rt/task.h"
#include "runtime/volume/arriving_images.h"
#include "runtime/volume/disk_file.h"

namespace berth::runtime {

constexpr std::string_view kImageKind = "image";

struct ImageRequest {
  std::string reference;
  std::string architecture;  // "amd64"; "" for that of the host
  std::string namespace_;    // on whose behalf: whose credentials count
  // What there is room for: of a packed disk no more comes out.
  int64_t disk_bytes_max = image::kDiskBytesMax;
  std::string uid;  // of the object: whose pull secret counts before those
  // Told how much of one on its way is there, on the loop; may be none.
  std::function<void(int64_t bytes, int64_t of)> progress;
  // The same of what is packed and being unpacked.
  std::function<void(int64_t bytes, int64_t of)> unpacking;
  // Asked on the loop before something is fetched or unpacked, until which nothing of it is
  // written; may be none. What it refuses is the answer. Once it is asked again, all that it
  // granted before is there.
  std::function<rt::Task<Status>(ArrivingPieces pieces)> claim;
};

class ImageSource {
 public:
  virtual ~ImageSource() = default;

  // BadRequest if nothing can ever have this name. Cheap.
  virtual Status Check(std::string_view reference) const = 0;
  // The files of the image, their digests verified. NotFound: no such image, or none for the
  // architecture; BadRequest: it is not what its digest or its manifest says; Forbidden;
  // TooManyRequests: there is no room for it; Unavailable. Errors name the image.
  virtual rt::Task<Result<image::ImageFiles>> Fetch(ImageRequest request) = 0;
  // Who the object of this uid is at registries; "": nobody any more. True if that is new.
  virtual bool SetPullSecret(const std::string& uid, std::string docker_config) {
    (void)uid;
    (void)docker_config;
    return false;
  }
  // What images take of the host's disk: a part of its budget.
  virtual rt::Task<Result<int64_t>> TakenBytes() = 0;
};

// An error that is the image's, so that whoever waits for it can be told apart from others.
inline Status OfImage(const Status& status, std::string_view reference) {
  return status.WithObject(
      {.group = {}, .kind = std::string(kImageKind), .name = std::string(reference), .uid = {}});
}
// The reason of such an error in one word: "ImageNotFound". "" for other errors.
std::string_view ImageProblem(const Status& status);

inline DiskFile DiskFileOf(const image::RootDisk& disk) {
  const bool is_raw = disk.format == image::RootDisk::Format::kRaw;
  return {.path = disk.path, .format = is_raw ? DiskFormat::kRaw : DiskFormat::kQcow2};
}

}  // namespace berth::runtime
