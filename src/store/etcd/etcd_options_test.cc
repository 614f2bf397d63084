// SPDX-License-Identifier: Apache-2.0
// Addresses of etcd are read as written, and a mistake in them is named.
#include "store/etcd/etcd_options.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace berth::store {
namespace {

TEST(EtcdOptions, ReadsTheMembersInOrder) {
  EtcdOptions options;
  ASSERT_TRUE(ParseEtcdUrl("etcd://b.example:2379, 10.0.0.1:2380,[::1]:1", options).ok());
  EXPECT_EQ(options.endpoints,
            (std::vector<std::string>{"b.example:2379", "10.0.0.1:2380", "[::1]:1"}));
}

TEST(EtcdOptions, NamesWhatIsWrong) {
  struct Case {
    std::string text;
    std::string part;
  };
  std::string many = "etcd://";
  for (int i = 0; i < 17; ++i) {
    many += (i > 0 ? "," : "") + std::string("h") + std::to_string(i) + ":1";
  }
  const std::vector<Case> cases = {
      {"http://a:1", "begins with etcd://"},
      {"etcd://", "1 to 253"},
      {"etcd://a", "port"},
      {"etcd://a:1,", "1 to 253"},
      {"etcd://a:0", "port"},
      {"etcd://a:1,a:1", "named twice"},
      {"etcd://root:secret@a:1", "--etcd-user"},
      {"etcd://a:1/berth", "nothing follows"},
      {many, "at most 16"},
  };
  for (const Case& c : cases) {
    EtcdOptions options;
    const Status status = ParseEtcdUrl(c.text, options);
    EXPECT_EQ(status.reason(), Reason::kBadRequest) << c.text;
    EXPECT_NE(status.message().find(c.part), std::string_view::npos) << status;
  }
}

}  // namespace
}  // namespace berth::store
