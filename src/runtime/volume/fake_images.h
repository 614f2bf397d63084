// SPDX-License-Identifier: Apache-2.0
// Images that are a quarter there and stay so until a test says otherwise.
#pragma once

#include <string_view>

#include "rt/event.h"
#include "runtime/volume/image_source.h"

namespace berth::runtime {

class FakeImages final : public ImageSource {
 public:
  static constexpr int64_t kBytes = int64_t{4} << 20;

  Status Check(std::string_view reference) const override {
    (void)reference;
    return OkStatus();
  }
  // One without a disk and without a kernel.
  rt::Task<Result<image::ImageFiles>> Fetch(ImageRequest request) override {
    asked_.Set();
    if (request.progress) request.progress(kBytes / 4, kBytes);
    CO_TRY_STATUS(co_await arrived_.Wait());
    co_return image::ImageFiles();
  }
  rt::Task<Result<int64_t>> TakenBytes() override { co_return int64_t{0}; }

  // On the loop. Until somebody waits for one.
  rt::Task<Status> Asked() { return asked_.Wait(); }
  rt::Task<Status> Arrive() {
    arrived_.Set();
    co_return OkStatus();
  }

 private:
  rt::Event asked_;
  rt::Event arrived_;
};

}  // namespace berth::runtime
