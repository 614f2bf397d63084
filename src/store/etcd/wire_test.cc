// SPDX-License-Identifier: Apache-2.0
// Defends: no transaction is answered by a member that knows less than what others have been told.
#include "store/etcd/wire.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace berth::store {
namespace {

// As etcd decides it: what neither writes nor reads through the leader is answered by the member
// that was asked, from what it has.
bool MayBeStale(const pb::TxnRequest& request) {
  for (const auto* ops : {&request.success(), &request.failure()}) {
    for (const pb::RequestOp& op : *ops) {
      if (!op.has_request_range() || !op.request_range().serializable()) return false;
    }
  }
  return true;
}

TEST(EtcdWire, EveryTransactionIsInOrderWithAllOthers) {
  std::vector<Txn> txns(4);
  txns[1].conditions.push_back(Condition::Absent("a"));
  txns[2].ops.push_back(Op::Delete("a"));
  txns[3].conditions.push_back(Condition::Unchanged("a", Revision{7}));
  txns[3].ops.push_back(Op::Put("a", Bytes("1")));
  for (size_t i = 0; i < txns.size(); ++i) EXPECT_FALSE(MayBeStale(ToEtcd(txns[i]))) << i;
}

TEST(EtcdWire, ATransactionOfNothingSucceeds) {
  pb::TxnResponse response;
  response.set_succeeded(true);
  response.mutable_header()->set_revision(9);
  response.add_responses()->mutable_response_range();
  const Result<TxnResult> result = FromEtcd(Txn(), std::move(response));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(result->committed);
  EXPECT_EQ(result->revision, Revision{9});
}

}  // namespace
}  // namespace berth::store
