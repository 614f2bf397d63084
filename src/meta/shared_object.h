// SPDX-License-Identifier: Apache-2.0
// A SharedObject is one decoded object that several readers hold at once, so that what many follow
// is decoded once. It never changes; whoever wants to change it copies the Object.
#pragma once

#include <memory>
#include <utility>

#include "meta/object.h"

namespace berth::meta {

class SharedObject {
 public:
  SharedObject() = default;  // empty
  // Not explicit, and read like the Object that it holds: most readers need not know the
  // difference.
  SharedObject(Object object)  // NOLINT(google-explicit-constructor)
      : object_(std::make_shared<const Object>(std::move(object))) {}

  bool empty() const { return object_ == nullptr; }
  // REQUIRES: !empty(), for everything below.
  operator const Object&() const { return *object_; }  // NOLINT(google-explicit-constructor)
  const KindInfo& kind() const { return object_->kind(); }
  const ObjectMeta& metadata() const { return object_->metadata(); }
  template <class T>
  const T& as() const {
    return object_->as<T>();
  }

 private:
  std::shared_ptr<const Object> object_;
};

}  // namespace berth::meta
