// SPDX-License-Identifier: Apache-2.0
#include "runtime/volume/local_images.h"

#include <utility>

#include "base/strings.h"
#include "image/manifest.h"
#include "image/reference.h"
#include "image/unpack_needs.h"
#include "rt/leaf.h"
#include "rt/loop.h"

namespace berth::runtime {

Status LocalImages::Check(std::string_view reference) const {
  TRY(const image::Reference parsed, image::ParseReference(reference));
  if (parsed.registry.empty()) return OkStatus();
  return BadRequest("image " + Quote(reference) + ": this host fetches nothing from registries");
}

Result<ArrivingPieces> LocalImages::NeedsOf(const image::Reference& reference,
                                            const std::string& architecture,
                                            int64_t disk_bytes_max) const {
  using image::LayoutHold;
  const image::Layout layout = folder_.LayoutOf(reference);
  if (!layout.Exists()) return ArrivingPieces();  // nothing that is packed
  TRY(const LayoutHold hold, LayoutHold::Take(layout.folder(), LayoutHold::Kind::kShared));
  TRY(const image::FoundImage found, layout.Find(reference, architecture));
  return image::UnpackNeeds(layout, found.manifest, disk_bytes_max);
}

rt::Task<Result<image::ImageFiles>> LocalImages::Fetch(ImageRequest request) {
  const std::string name = "image " + Quote(request.reference);
  if (!has_folder_) co_return NotFound(name + ": this host has no folder of images");
  CO_TRY_STATUS(Check(request.reference));
  CO_TRY(const image::Reference reference, image::ParseReference(request.reference));
  const std::string architecture =
      request.architecture.empty() ? std::string(image::kHostArchitecture) : request.architecture;
  if (request.claim != nullptr) {
    const auto look = [&] { return NeedsOf(reference, architecture, request.disk_bytes_max); };
    Result<ArrivingPieces> needs = co_await large_.Run("images.needs", look);
    if (!needs.ok()) co_return needs.status().Wrap(name);
    Status claimed;
    if (!needs->empty()) claimed = co_await request.claim(*std::move(needs));
    if (!claimed.ok()) co_return claimed.Wrap(name);
  }
  rt::Loop& loop = (co_await rt::CurrentContext()).loop();
  image::UnpackProgress told;
  if (request.unpacking != nullptr) {
    // What is posted here comes before the end of the job.
    told = [&loop, &request](int64_t bytes, int64_t of) {
      loop.Post("images.unpacking", [tell = request.unpacking, bytes, of] { tell(bytes, of); });
    };
  }
  const auto job = [&] {
    return folder_.Find(reference, architecture, request.disk_bytes_max, told);
  };
  Result<image::ImageFiles> found = co_await large_.Run("images.find", job);
  if (!found.ok()) co_return found.status().Wrap(name);
  co_return found;
}

rt::Task<Result<int64_t>> LocalImages::TakenBytes() {
  if (!has_folder_) co_return int64_t{0};
  const auto job = [this] { return folder_.TakenBytes(); };
  co_return co_await pool_.Run("images.measure", job);
}

}  // namespace berth::runtime
