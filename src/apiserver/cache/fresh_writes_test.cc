// SPDX-License-Identifier: Apache-2.0
#include "apiserver/cache/fresh_writes.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "apis/k8s/config_map.h"

namespace berth::apiserver {
namespace {

meta::Object Named(std::string name) {
  apis::k8s::ConfigMap map;
  map.metadata.name = std::move(name);
  return meta::Object::Of(apis::k8s::kConfigMapKind, std::move(map));
}

TEST(FreshWrites, GiveTheObjectBehindTheBytesOnce) {
  FreshWrites writes;
  FreshWrites::Offer offer(writes);
  meta::Object object = Named("a");
  offer.Add("/a", Bytes("one"), object);
  EXPECT_TRUE(writes.Take("/b", Bytes("one"), "7").empty());
  const meta::SharedObject taken = writes.Take("/a", Bytes("one"), "7");
  ASSERT_FALSE(taken.empty());
  EXPECT_EQ(taken.metadata().name, "a");
  EXPECT_EQ(taken.metadata().resource_version, "7");
  EXPECT_TRUE(writes.Take("/a", Bytes("one"), "7").empty());
}

TEST(FreshWrites, KnowNothingOfOtherBytes) {
  FreshWrites writes;
  FreshWrites::Offer offer(writes);
  meta::Object object = Named("a");
  offer.Add("/a", Bytes("mine"), object);
  EXPECT_TRUE(writes.Take("/a", Bytes("of another server"), "7").empty());
  EXPECT_EQ(object.metadata().name, "a");
}

TEST(FreshWrites, ForgetWhatWasNotCommitted) {
  FreshWrites writes;
  meta::Object object = Named("a");
  FreshWrites::Offer first(writes);
  first.Add("/a", Bytes("one"), object);
  first.Withdraw();
  EXPECT_TRUE(writes.Take("/a", Bytes("one"), "7").empty());
  {
    FreshWrites::Offer second(writes);
    second.Add("/a", Bytes("one"), object);
  }
  EXPECT_TRUE(writes.Take("/a", Bytes("one"), "7").empty());
  EXPECT_EQ(object.metadata().name, "a");
}

TEST(FreshWrites, OfTwoWritersOfOneKeyTheFirstIsKnownUntilItEnds) {
  FreshWrites writes;
  meta::Object first = Named("first");
  meta::Object second = Named("second");
  FreshWrites::Offer one(writes);
  one.Add("/a", Bytes("one"), first);
  {
    FreshWrites::Offer two(writes);
    two.Add("/a", Bytes("two"), second);
    EXPECT_TRUE(writes.Take("/a", Bytes("two"), "8").empty());
  }
  EXPECT_FALSE(writes.Take("/a", Bytes("one"), "7").empty());
}

}  // namespace
}  // namespace berth::apiserver
