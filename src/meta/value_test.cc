// SPDX-License-Identifier: Apache-2.0
// Defends the JSON tree: copies are deep, moves out of a part of oneself are safe, equality ignores
// the order of members.
#include "meta/value.h"

#include <gtest/gtest.h>

namespace berth::meta {
namespace {

Value Sample() {
  Value value = Value::Object();
  value.Set("name", "a");
  value.Set("count", 3);
  value.Set("list", Value::Array({1, "two", true, Value(), 2.5}));
  Value inner = Value::Object();
  inner.Set("x", "y");
  value.Set("inner", std::move(inner));
  return value;
}

TEST(Value, CopiesDeeply) {
  const Value original = Sample();
  Value copy = original;
  copy.Find("inner")->Set("x", "z");
  copy.Find("list")->Append(7);
  EXPECT_EQ(original.GetString({"inner", "x"}), "y");
  EXPECT_EQ(original.Find("list")->items().size(), 5U);
  EXPECT_FALSE(copy == original);
}

TEST(Value, MayBecomeAPartOfItself) {
  Value value = Sample();
  value = std::move(*value.Find("inner"));
  EXPECT_EQ(value.GetString({"x"}), "y");
  Value again = Sample();
  again = *again.Find("list");
  EXPECT_EQ(again.items().size(), 5U);
  Value& alias = again;
  again = alias;
  again = std::move(alias);
  EXPECT_EQ(again.items().size(), 5U);
}

TEST(Value, ComparesRegardlessOfMemberOrder) {
  for (const int size : {3, 100}) {
    Value forward = Value::Object();
    Value backward = Value::Object();
    for (int i = 0; i < size; ++i) forward.Set("k" + std::to_string(i), i);
    for (int i = size; i-- > 0;) backward.Set("k" + std::to_string(i), static_cast<double>(i));
    EXPECT_TRUE(forward == backward);
    backward.Set("k1", "other");
    EXPECT_FALSE(forward == backward);
    backward.Remove("k1");
    backward.Set("other", 1);
    EXPECT_FALSE(forward == backward);
  }
}

TEST(Value, FindsAlongPathsAndForgivesMissingParts) {
  const Value value = Sample();
  EXPECT_EQ(value.Get({"inner", "x"})->as_string(), "y");
  EXPECT_EQ(value.Get({"inner", "x", "deeper"}), nullptr);
  EXPECT_EQ(value.Get({"none"}), nullptr);
  EXPECT_EQ(value.GetString({"count"}), "");
  EXPECT_EQ(Value("text").Find("x"), nullptr);
}

TEST(Value, SetReplacesAndRemoveRemoves) {
  Value value = Sample();
  value.Set("name", "b");
  EXPECT_EQ(value.members().size(), 4U);
  EXPECT_EQ(value.members()[0].value.as_string(), "b");
  EXPECT_TRUE(value.Remove("name"));
  EXPECT_FALSE(value.Remove("name"));
  EXPECT_FALSE(Value(1).Remove("name"));
}

}  // namespace
}  // namespace berth::meta
