// SPDX-License-Identifier: Apache-2.0
#include "runtime/volume/image_source.h"

namespace berth::runtime {

std::string_view ImageProblem(const Status& status) {
  if (status.ok() || status.object().kind != kImageKind) return {};
  switch (status.reason()) {
    case Reason::kNotFound: return "ImageNotFound";
    case Reason::kBadRequest: return "ImageInvalid";
    case Reason::kUnauthorized:
    case Reason::kForbidden: return "ImageForbidden";
    case Reason::kTooManyRequests: return "NoRoomForImage";
    case Reason::kUnavailable:
    case Reason::kTimeout: return "ImageUnavailable";
    default: return "ImageFailed";
  }
}

}  // namespace berth::runtime
