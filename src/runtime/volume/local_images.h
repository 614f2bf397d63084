// SPDX-License-Identifier: Apache-2.0
// Images in a folder of the host (image/image_folder.h).
#pragma once

#include <string>

#include "image/image_folder.h"
#include "rt/blocking_pool.h"
#include "runtime/volume/image_source.h"

namespace berth::runtime {

class LocalImages final : public ImageSource {
 public:
  // The pools outlive this; images are read and unpacked in `large`. An empty folder name: there
  // are no images.
  LocalImages(std::string folder, rt::BlockingPool& pool, rt::BlockingPool& large)
      : has_folder_(!folder.empty()), folder_(std::move(folder)), pool_(pool), large_(large) {}
  LocalImages(std::string folder, rt::BlockingPool& pool)
      : LocalImages(std::move(folder), pool, pool) {}

  Status Check(std::string_view reference) const override;
  rt::Task<Result<image::ImageFiles>> Fetch(ImageRequest request) override;
  rt::Task<Result<int64_t>> TakenBytes() override;

 private:
  // What finding it is going to write. Blocks.
  Result<ArrivingPieces> NeedsOf(const image::Reference& reference,
                                 const std::string& architecture,
                                 int64_t disk_bytes_max) const;

  const bool has_folder_;
  const image::ImageFolder folder_;
  rt::BlockingPool& pool_;
  rt::BlockingPool& large_;
};

}  // namespace berth::runtime
