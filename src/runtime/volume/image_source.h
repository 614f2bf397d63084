// SPDX-License-Identifier: Apache-2.0
// Where the content of new disks comes from.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "rt/task.h"
#include "runtime/volume/disk_file.h"

namespace berth::runtime {

struct ImageRequest {
  std::string reference;
  std::string architecture;  // "amd64"; "" for that of the host
  std::string namespace_;    // on whose behalf: whose credentials count
};

// The root disk of an image as a local file. The file stays as it is while this lives.
class ImageDisk {
 public:
  virtual ~ImageDisk() = default;
  virtual const DiskFile& file() const = 0;
};

class ImageSource {
 public:
  virtual ~ImageSource() = default;

  // BadRequest if nothing can ever have this name. Cheap.
  virtual Status Check(std::string_view reference) const = 0;
  // The disk, its digest verified. NotFound: no such image, or none for the architecture;
  // BadRequest: it is not what its digest or its manifest says; Forbidden; Unavailable.
  virtual rt::Task<Result<std::unique_ptr<ImageDisk>>> Fetch(ImageRequest request) = 0;
  // What images take of the host's disk: a part of its budget.
  virtual rt::Task<Result<int64_t>> TakenBytes() = 0;
};

}  // namespace berth::runtime
