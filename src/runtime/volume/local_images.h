// SPDX-License-Identifier: Apache-2.0
// Images in a folder of the host: NAME is an OCI image layout (NAME/index.json), or a disk file
// NAME.qcow2, NAME.raw or NAME.img. Nothing outside of the folder has a name.
#pragma once

#include <memory>
#include <string>

#include "rt/blocking_pool.h"
#include "runtime/volume/image_source.h"

namespace berth::runtime {

class LocalImages final : public ImageSource {
 public:
  // The pool outlives this. An empty folder name: there are no images.
  LocalImages(std::string folder, rt::BlockingPool& pool)
      : folder_(std::move(folder)), pool_(pool) {}

  Status Check(std::string_view reference) const override;
  rt::Task<Result<std::unique_ptr<ImageDisk>>> Fetch(ImageRequest request) override;
  rt::Task<Result<int64_t>> TakenBytes() override;

 private:
  const std::string folder_;
  rt::BlockingPool& pool_;
};

}  // namespace berth::runtime
