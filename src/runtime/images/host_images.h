// SPDX-License-Identifier: Apache-2.0
// The images of a host: those of its folder, and those of registries, which are fetched into the
// folder's cache on behalf of a namespace. On-loop only.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "image/registry/puller.h"
#include "rt/asio/asio_loop.h"
#include "rt/blocking_pool.h"
#include "rt/gate.h"
#include "runtime/images/namespace_credentials.h"
#include "runtime/volume/image_source.h"
#include "runtime/volume/local_images.h"

namespace berth::runtime {

class HostImages final : public ImageSource {
 public:
  struct Options {
    std::string folder;              // "": there are no images
    std::string credentials_folder;  // of NamespaceCredentials
    image::PullerOptions puller;
  };
  // All outlive this. Images are fetched, read and unpacked in the pool `large`, for minutes.
  HostImages(rt::AsioLoop& loop, rt::BlockingPool& files, rt::BlockingPool& large, Options options);

  Status Check(std::string_view reference) const override;
  rt::Task<Result<image::ImageFiles>> Fetch(ImageRequest request) override;
  // Beyond kPullSecretsMax it is dropped, and the image says that it wants credentials.
  bool SetPullSecret(const std::string& uid, std::string docker_config) override;
  rt::Task<Result<int64_t>> TakenBytes() override { return local_.TakenBytes(); }

 private:
  // More at once would only share the same line. A namespace has some of them: its registries may
  // be slow.
  static constexpr size_t kPullsMax = 4;
  static constexpr size_t kPullsOfNamespaceMax = 2;
  // Of at most 64 KiB each, and only while images are fetched: 64 MiB.
  static constexpr size_t kPullSecretsMax = 1000;

  // Lives as long as somebody pulls, or waits for it.
  std::shared_ptr<rt::Gate> PullsOf(const std::string& namespace_);

  rt::BlockingPool& files_;
  const bool has_folder_;
  const int64_t image_bytes_max_;
  LocalImages local_;
  const NamespaceCredentials credentials_;
  image::Puller puller_;
  rt::Gate pulls_{kPullsMax};
  std::map<std::string, std::weak_ptr<rt::Gate>> pulls_of_;  // by namespace
  std::map<std::string, std::string> pull_secrets_;          // by uid; never on disk
};

}  // namespace berth::runtime
