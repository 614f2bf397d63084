// SPDX-License-Identifier: Apache-2.0
// An Object owns one decoded object of any kind: the struct that KindInfo::type describes,
// type-erased.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/result.h"
#include "meta/kind.h"
#include "meta/value.h"

namespace berth::meta {

class Object {
 public:
  Object() = default;  // empty: no kind
  explicit Object(const KindInfo& kind);
  // Takes a typed struct: Object::Of(kMachine, std::move(machine)).
  template <class T>
  static Object Of(const KindInfo& kind, T value) {
    CHECK(kind.type == &TypeInfoOf<T>()) << kind.kind;
    Object object(kind);
    *static_cast<T*>(object.data_) = std::move(value);
    return object;
  }
  Object(const Object& other);
  Object(Object&& other) noexcept;
  Object& operator=(Object other) noexcept;
  ~Object();

  bool empty() const { return kind_ == nullptr; }
  // REQUIRES: !empty(), for everything below.
  const KindInfo& kind() const { return *kind_; }
  void* data() { return data_; }
  const void* data() const { return data_; }
  ObjectMeta& metadata() { return MetadataOf(data_); }
  const ObjectMeta& metadata() const { return MetadataOf(static_cast<const void*>(data_)); }
  template <class T>
  T& as() {
    CHECK(kind_->type == &TypeInfoOf<T>()) << kind_->kind;
    return *static_cast<T*>(data_);
  }
  template <class T>
  const T& as() const {
    CHECK(kind_->type == &TypeInfoOf<T>()) << kind_->kind;
    return *static_cast<const T*>(data_);
  }

  // By value, all fields; empty objects are equal.
  bool operator==(const Object& other) const;

  // One top-level field by its JSON name, "status" or "spec". REQUIRES: the kind has it; both
  // objects are of the same kind.
  void CopyField(std::string_view name, const Object& from);
  void ClearField(std::string_view name);
  bool SameField(std::string_view name, const Object& other) const;

 private:
  const KindInfo* kind_ = nullptr;
  void* data_ = nullptr;
};

}  // namespace berth::meta
