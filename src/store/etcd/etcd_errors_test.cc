// SPDX-License-Identifier: Apache-2.0
// Every error of etcd that a store's caller can do something about is told apart.
#include "store/etcd/etcd_errors.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace berth::store {
namespace {

TEST(EtcdErrors, AreTheStoresErrors) {
  struct Case {
    Status status;
    EtcdFault fault;
    Reason reason;
    std::string part;
  };
  const std::vector<Case> cases = {
      {Expired("etcdserver: mvcc: required revision has been compacted"),
       EtcdFault::kFinal,
       Reason::kExpired,
       "compacted"},
      {Expired("etcdserver: mvcc: required revision is a future revision"),
       EtcdFault::kFinal,
       Reason::kBadRequest,
       "future"},
      {Status(Reason::kTooManyRequests, "etcdserver: mvcc: database space exceeded"),
       EtcdFault::kFinal,
       Reason::kUnavailable,
       "--quota-backend-bytes"},
      {Status(Reason::kTooManyRequests, "etcdserver: too many requests"),
       EtcdFault::kBusy,
       Reason::kTooManyRequests,
       "too many"},
      {BadRequest("etcdserver: request is too large"),
       EtcdFault::kFinal,
       Reason::kBadRequest,
       "--max-request-bytes"},
      {Unauthorized("etcdserver: invalid auth token"),
       EtcdFault::kToken,
       Reason::kUnauthorized,
       "token"},
      {BadRequest("etcdserver: user name is empty"),
       EtcdFault::kFinal,
       Reason::kUnauthorized,
       "--etcd-user"},
      {Forbidden("etcdserver: permission denied"),
       EtcdFault::kFinal,
       Reason::kForbidden,
       "grant-permission"},
      {Unavailable("etcdserver: no leader"), EtcdFault::kRefused, Reason::kUnavailable, "leader"},
      {Unavailable("etcdserver: not leader"), EtcdFault::kMember, Reason::kUnavailable, "leader"},
      {Unavailable("etcdserver: leader changed"),
       EtcdFault::kBusy,
       Reason::kUnavailable,
       "changed"},
      {Unavailable("the peer has been silent for 10s"),
       EtcdFault::kMember,
       Reason::kUnavailable,
       "etcd: the peer"},
      {Timeout("no answer within 4s"), EtcdFault::kMember, Reason::kUnavailable, "within 4s"},
      {Internal("what is this"), EtcdFault::kFinal, Reason::kUnavailable, "etcd: what"},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(FaultOf(c.status), c.fault) << c.status;
    const Status explained = ExplainEtcd(c.status);
    EXPECT_EQ(explained.reason(), c.reason) << explained;
    EXPECT_NE(explained.message().find(c.part), std::string_view::npos) << explained;
  }
  EXPECT_TRUE(ExplainEtcd(OkStatus()).ok());
  EXPECT_EQ(ExplainEtcd(Cancelled()).reason(), Reason::kCancelled);
}

}  // namespace
}  // namespace berth::store
