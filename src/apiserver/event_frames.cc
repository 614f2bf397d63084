// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "apiserver/registry.h"

namespace berth::apiserver {

// Three event types in two domains, as object and as table: 12 forms are more than are ever in use
// at once.
constexpr size_t kFormsMax = 12;

const Bytes* EventFrames::Find(uint32_t form) const {
  const auto found = std::ranges::find(frames_, form, &Frame::form);
  return found == frames_.end() ? nullptr : &found->bytes;
}

void EventFrames::Keep(uint32_t form, Bytes frame) {
  if (frames_.size() < kFormsMax && Find(form) == nullptr) {
    frames_.push_back({.form = form, .bytes = std::move(frame)});
  }
}

}  // namespace berth::apiserver
