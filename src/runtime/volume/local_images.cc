// SPDX-License-Identifier: Apache-2.0
#include "runtime/volume/local_images.h"

#include <utility>

#include "base/strings.h"
#include "image/manifest.h"
#include "image/reference.h"

namespace berth::runtime {

Status LocalImages::Check(std::string_view reference) const {
  TRY(const image::Reference parsed, image::ParseReference(reference));
  if (parsed.registry.empty()) return OkStatus();
  return BadRequest("image " + Quote(reference) + ": this host fetches nothing from registries");
}

rt::Task<Result<image::ImageFiles>> LocalImages::Fetch(ImageRequest request) {
  const std::string name = "image " + Quote(request.reference);
  if (!has_folder_) co_return NotFound(name + ": this host has no folder of images");
  CO_TRY_STATUS(Check(request.reference));
  CO_TRY(const image::Reference reference, image::ParseReference(request.reference));
  const std::string architecture =
      request.architecture.empty() ? std::string(image::kHostArchitecture) : request.architecture;
  const auto job = [&] { return folder_.Find(reference, architecture, request.disk_bytes_max); };
  Result<image::ImageFiles> found = co_await pool_.Run("images.find", job);
  if (!found.ok()) co_return found.status().Wrap(name);
  co_return found;
}

rt::Task<Result<int64_t>> LocalImages::TakenBytes() {
  if (!has_folder_) co_return int64_t{0};
  const auto job = [this] { return folder_.TakenBytes(); };
  co_return co_await pool_.Run("images.measure", job);
}

}  // namespace berth::runtime
