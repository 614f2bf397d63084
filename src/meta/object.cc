// SPDX-License-Identifier: Apache-2.0
#include "meta/object.h"

namespace berth::meta {

Object::Object(const KindInfo& kind) : kind_(&kind), data_(kind.type->ops->create()) {}

Object::Object(const Object& other)
    : kind_(other.kind_),
      data_(other.kind_ != nullptr ? other.kind_->type->ops->copy(other.data_) : nullptr) {}

Object::Object(Object&& other) noexcept
    : kind_(std::exchange(other.kind_, nullptr)), data_(std::exchange(other.data_, nullptr)) {}

Object& Object::operator=(Object other) noexcept {
  std::swap(kind_, other.kind_);
  std::swap(data_, other.data_);
  return *this;
}

Object::~Object() {
  if (kind_ != nullptr) kind_->type->ops->destroy(data_);
}

}  // namespace berth::meta
