// SPDX-License-Identifier: Apache-2.0
// A Value is any JSON value as a tree. Patches, apply and generic tools work on it; kinds use their
// structs.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace berth::meta {

class Value {
 public:
  enum class Type : uint8_t { kNull, kBool, kInt, kDouble, kString, kArray, kObject };
  struct Member;

  Value();
  Value(bool value);
  Value(int64_t value);
  Value(int value) : Value(static_cast<int64_t>(value)) {}
  Value(double value);
  Value(std::string value);
  Value(std::string_view value) : Value(std::string(value)) {}
  Value(const char* value) : Value(std::string(value)) {}
  static Value Array(std::vector<Value> items = {});
  static Value Object();
  // REQUIRES: keys are unique.
  static Value Object(std::vector<Member> members);
  Value(const Value& other);
  Value(Value&& other) noexcept;
  // The right-hand side may be a part of this value: root = std::move(*root.Find("spec")).
  Value& operator=(const Value& other);
  Value& operator=(Value&& other) noexcept;
  ~Value();

  Type type() const { return type_; }
  bool is_null() const { return type_ == Type::kNull; }
  bool is_bool() const { return type_ == Type::kBool; }
  bool is_int() const { return type_ == Type::kInt; }
  bool is_object() const { return type_ == Type::kObject; }
  bool is_array() const { return type_ == Type::kArray; }
  bool is_string() const { return type_ == Type::kString; }
  bool is_number() const { return type_ == Type::kInt || type_ == Type::kDouble; }

  // REQUIRES: the matching type.
  bool as_bool() const;
  int64_t as_int() const;    // kInt
  double as_double() const;  // kInt or kDouble
  const std::string& as_string() const;
  const std::vector<Value>& items() const;
  std::vector<Value>& items();
  // Members in order of insertion; keys are unique.
  const std::vector<Member>& members() const;
  std::vector<Member>& members();

  // Object access. Find is null if absent or if this is no object.
  const Value* Find(std::string_view key) const;
  Value* Find(std::string_view key);
  Value& Set(std::string_view key, Value value);  // replaces or appends
  bool Remove(std::string_view key);
  // REQUIRES: an array.
  Value& Append(Value value);
  // Along a path of keys: Get({"metadata", "name"}).
  const Value* Get(std::initializer_list<std::string_view> path) const;
  // The string at a path, or "".
  std::string_view GetString(std::initializer_list<std::string_view> path) const;

  // For messages: "a string", "an object", "null".
  std::string_view type_name() const;

  // Objects compare regardless of member order; 1 equals 1.0.
  bool operator==(const Value& other) const;

 private:
  struct Unowned {};
  Value(Unowned, const Value& other);  // the same bits; the caller disarms `other`

  Type type_ = Type::kNull;
  union {
    bool bool_;
    int64_t int_;
    double double_;
    std::string* string_;
    std::vector<Value>* array_;
    std::vector<Member>* object_;
  };
};

struct Value::Member {
  std::string key;
  Value value;
};

}  // namespace berth::meta
