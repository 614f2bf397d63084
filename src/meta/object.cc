// SPDX-License-Identifier: Apache-2.0
#include "meta/object.h"

#include "meta/reflect.h"

namespace berth::meta {

Object::Object(const KindInfo& kind) : kind_(&kind), data_(kind.type->ops->create()) {}

Object::Object(const Object& other) : kind_(other.kind_) {
  if (kind_ != nullptr) data_ = kind_->type->ops->copy(other.data_);
}

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

bool Object::operator==(const Object& other) const {
  if (kind_ != other.kind_) return false;
  return kind_ == nullptr || DeepEqual(*kind_->type, data_, other.data_);
}

void Object::CopyField(std::string_view name, const Object& from) {
  CHECK(kind_ == from.kind_) << name;
  const FoundField found = FindField(*kind_->type, name);
  CHECK(found.field != nullptr) << kind_->kind << " has no field " << name;
  found.field->type->ops->assign(static_cast<char*>(data_) + found.offset,
                                 static_cast<const char*>(from.data_) + found.offset);
}

void Object::ClearField(std::string_view name) {
  const FoundField found = FindField(*kind_->type, name);
  CHECK(found.field != nullptr) << kind_->kind << " has no field " << name;
  found.field->type->ops->reset(static_cast<char*>(data_) + found.offset);
}

bool Object::SameField(std::string_view name, const Object& other) const {
  CHECK(kind_ == other.kind_) << name;
  const FoundField found = FindField(*kind_->type, name);
  CHECK(found.field != nullptr) << kind_->kind << " has no field " << name;
  return DeepEqual(*found.field->type,
                   static_cast<const char*>(data_) + found.offset,
                   static_cast<const char*>(other.data_) + found.offset);
}

}  // namespace berth::meta
