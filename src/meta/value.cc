// SPDX-License-Identifier: Apache-2.0
#include "meta/value.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace berth::meta {
namespace {

// Comparing two objects member by member is quadratic when their orders differ; above this many
// members both are sorted first.
constexpr size_t kLinearMembers = 16;

std::vector<const Value::Member*> SortedMembers(const std::vector<Value::Member>& members) {
  std::vector<const Value::Member*> sorted;
  sorted.reserve(members.size());
  for (const auto& member : members) sorted.push_back(&member);
  std::ranges::sort(
      sorted, {}, [](const Value::Member* member) -> const std::string& { return member->key; });
  return sorted;
}

bool EqualObjects(const std::vector<Value::Member>& a, const std::vector<Value::Member>& b) {
  if (a.size() != b.size()) return false;
  const auto same = [](const Value::Member& x, const Value::Member& y) {
    return x.key == y.key && x.value == y.value;
  };
  if (a.size() > kLinearMembers) {
    return std::ranges::equal(SortedMembers(a),
                              SortedMembers(b),
                              [&](const auto* x, const auto* y) { return same(*x, *y); });
  }
  for (size_t i = 0; i < a.size(); ++i) {
    const Value::Member* other = nullptr;
    for (size_t k = 0; k < b.size() && other == nullptr; ++k) {
      const auto& candidate = b[(i + k) % b.size()];
      if (candidate.key == a[i].key) other = &candidate;
    }
    if (other == nullptr || !(other->value == a[i].value)) return false;
  }
  return true;
}

// An object without members has no list of them (object_ is null): sets of fields consist of little
// else.
const std::vector<Value::Member>& NoMembers() {
  static const std::vector<Value::Member> kNone;
  return kNone;
}

}  // namespace

Value::Value() : int_(0) {}
Value::Value(bool value) : type_(Type::kBool), bool_(value) {}
Value::Value(int64_t value) : type_(Type::kInt), int_(value) {}
Value::Value(double value) : type_(Type::kDouble), double_(value) {}
Value::Value(std::string value)
    : type_(Type::kString), string_(new std::string(std::move(value))) {}

Value Value::Array(std::vector<Value> items) {
  Value value;
  value.array_ = new std::vector<Value>(std::move(items));
  value.type_ = Type::kArray;
  return value;
}

Value Value::Object() {
  Value value;
  value.object_ = nullptr;
  value.type_ = Type::kObject;
  return value;
}

Value Value::Object(std::vector<Member> members) {
  Value value;
  value.object_ = members.empty() ? nullptr : new std::vector<Member>(std::move(members));
  value.type_ = Type::kObject;
  return value;
}

Value::Value(const Value& other) : type_(other.type_), int_(0) {
  switch (type_) {
    case Type::kNull: break;
    case Type::kBool: bool_ = other.bool_; break;
    case Type::kInt: int_ = other.int_; break;
    case Type::kDouble: double_ = other.double_; break;
    case Type::kString: string_ = new std::string(*other.string_); break;
    case Type::kArray: array_ = new std::vector<Value>(*other.array_); break;
    case Type::kObject:
      object_ = other.object_ == nullptr ? nullptr : new std::vector<Member>(*other.object_);
      break;
  }
}

Value::Value(Value&& other) noexcept : int_(0) { *this = std::move(other); }

Value& Value::operator=(const Value& other) {
  if (this != &other) *this = Value(other);
  return *this;
}

Value& Value::operator=(Value&& other) noexcept {
  if (this == &other) return *this;
  // `other` may live inside this value: take it out before the old content goes.
  Value taken(Unowned{}, other);
  other.type_ = Type::kNull;
  other.int_ = 0;
  std::swap(type_, taken.type_);
  std::swap(int_, taken.int_);
  return *this;
}

Value::Value(Unowned /*tag*/, const Value& other) : type_(other.type_), int_(other.int_) {}

Value::~Value() {
  switch (type_) {
    case Type::kString: delete string_; break;
    case Type::kArray: delete array_; break;
    case Type::kObject: delete object_; break;
    default: break;
  }
}

bool Value::as_bool() const {
  CHECK(type_ == Type::kBool);
  return bool_;
}

int64_t Value::as_int() const {
  CHECK(type_ == Type::kInt);
  return int_;
}

double Value::as_double() const {
  CHECK(is_number());
  return type_ == Type::kInt ? static_cast<double>(int_) : double_;
}

const std::string& Value::as_string() const {
  CHECK(type_ == Type::kString);
  return *string_;
}

const std::vector<Value>& Value::items() const {
  CHECK(type_ == Type::kArray);
  return *array_;
}

std::vector<Value>& Value::items() {
  CHECK(type_ == Type::kArray);
  return *array_;
}

const std::vector<Value::Member>& Value::members() const {
  CHECK(type_ == Type::kObject);
  return object_ == nullptr ? NoMembers() : *object_;
}

std::vector<Value::Member>& Value::members() {
  CHECK(type_ == Type::kObject);
  if (object_ == nullptr) object_ = new std::vector<Member>();
  return *object_;
}

const Value* Value::Find(std::string_view key) const {
  if (type_ != Type::kObject) return nullptr;
  for (const auto& member : members()) {
    if (member.key == key) return &member.value;
  }
  return nullptr;
}

Value* Value::Find(std::string_view key) {
  return const_cast<Value*>(std::as_const(*this).Find(key));
}

Value& Value::Set(std::string_view key, Value value) {
  if (Value* found = Find(key); found != nullptr) return *found = std::move(value);
  return members().emplace_back(Member{std::string(key), std::move(value)}).value;
}

Value& Value::Append(Value value) { return items().emplace_back(std::move(value)); }

bool Value::Remove(std::string_view key) {
  if (type_ != Type::kObject || object_ == nullptr) return false;
  return std::erase_if(*object_, [&](const Member& member) { return member.key == key; }) > 0;
}

const Value* Value::Get(std::initializer_list<std::string_view> path) const {
  const Value* at = this;
  for (const auto key : path) {
    at = at->Find(key);
    if (at == nullptr) return nullptr;
  }
  return at;
}

std::string_view Value::GetString(std::initializer_list<std::string_view> path) const {
  const Value* found = Get(path);
  return found != nullptr && found->is_string() ? std::string_view(*found->string_)
                                                : std::string_view();
}

std::string_view Value::type_name() const {
  switch (type_) {
    case Type::kNull: return "null";
    case Type::kBool: return "a boolean";
    case Type::kInt:
    case Type::kDouble: return "a number";
    case Type::kString: return "a string";
    case Type::kArray: return "a list";
    case Type::kObject: return "an object";
  }
  return "";
}

bool Value::operator==(const Value& other) const {
  if (is_number() && other.is_number() && type_ != other.type_) {
    return as_double() == other.as_double();
  }
  if (type_ != other.type_) return false;
  switch (type_) {
    case Type::kNull: return true;
    case Type::kBool: return bool_ == other.bool_;
    case Type::kInt: return int_ == other.int_;
    case Type::kDouble: return double_ == other.double_;
    case Type::kString: return *string_ == *other.string_;
    case Type::kArray: return *array_ == *other.array_;
    case Type::kObject: return EqualObjects(members(), other.members());
  }
  return false;
}

}  // namespace berth::meta
