// SPDX-License-Identifier: Apache-2.0
// The etcd store keeps the whole contract with a real etcd of its own, through two clients that do
// not know of each other.
#include "store/etcd/etcd_store.h"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>
#include <utility>

#include "rt/asio/asio_loop.h"
#include "store/conformance/blocking.h"
#include "store/conformance/store_contract.h"
#include "store/etcd/testing/etcd_process.h"

namespace berth::store {
namespace {

// Members that stay with their leader on a busy machine: commits are told of a new one.
EtcdProcesses::Options Members(int members) {
  EtcdProcesses::Options options;
  options.members = members;
  if (members > 1) options.arguments = {"--heartbeat-interval=300", "--election-timeout=3000"};
  return options;
}

class EtcdUnderTest final : public StoreUnderTest {
 public:
  explicit EtcdUnderTest(int members = 1) : etcd_(Members(members)) { Open(); }
  ~EtcdUnderTest() override { CHECK(Close().ok()); }

  rt::Loop& loop() override { return loop_; }
  Status Run(rt::Task<Status> task) override { return rt::RunTask(loop_, std::move(task)); }
  void Pass(Duration duration) override {
    FAIL() << "a real clock does not jump " << FormatDuration(duration);
  }
  Store& first() override { return *handles_[0]; }
  Store& second() override { return *handles_[1]; }
  bool is_remote() const override { return true; }
  Status Close() override {
    for (const auto& store : stores_) {
      if (store != nullptr) CHECK(rt::RunTask(loop_, store->Close()).ok());
    }
    return OkStatus();
  }
  // With a restart of etcd itself, without warning.
  void Reopen() override {
    CHECK(Close().ok());
    for (auto& handle : handles_) handle.reset();
    for (auto& store : stores_) store.reset();
    etcd_.Kill(0);
    etcd_.Start(0);
    Open();
  }

 private:
  void Open() {
    EtcdOptions options;
    options.endpoints = etcd_.endpoints();
    for (size_t i = 0; i < stores_.size(); ++i) {
      auto store = rt::RunTask(loop_, EtcdStore::Open(loop_, options));
      CHECK(store.ok()) << store.status();
      stores_[i] = *std::move(store);
      handles_[i] = stores_[i]->NewHandle();
    }
  }

  EtcdProcesses etcd_;
  rt::AsioLoop loop_;
  std::array<std::unique_ptr<EtcdStore>, 2> stores_;
  std::array<std::unique_ptr<Store>, 2> handles_;
};

class EtcdStoreContract : public testing::TestWithParam<StoreContract> {};

TEST_P(EtcdStoreContract, Holds) {
  if (GetParam().clock == Clock::kVirtual) return;
  RunStoreContract([] { return std::make_unique<EtcdUnderTest>(); }, GetParam());
}

INSTANTIATE_TEST_SUITE_P(Etcd,
                         EtcdStoreContract,
                         testing::ValuesIn(StoreContracts()),
                         [](const auto& info) { return std::string(info.param.name); });

class ThreeMembersContract : public testing::TestWithParam<StoreContract> {};

TEST_P(ThreeMembersContract, Holds) {
  if (GetParam().clock == Clock::kVirtual) return;
  RunStoreContract([] { return std::make_unique<EtcdUnderTest>(3); }, GetParam());
}

INSTANTIATE_TEST_SUITE_P(Etcd,
                         ThreeMembersContract,
                         testing::ValuesIn(StoreContracts()),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(EtcdStore, MatchesTheModelOnThreeMembers) {
  for (uint64_t seed = 1; seed <= 3 && !HasFailure(); ++seed) {
    EtcdUnderTest under_test(3);
    RandomOperationsMatchTheModel(under_test, seed, 150);
  }
}

TEST(EtcdStore, MatchesTheModel) {
  for (uint64_t seed = 1; seed <= 6 && !HasFailure(); ++seed) {
    EtcdUnderTest under_test;
    RandomOperationsMatchTheModel(under_test, seed, 150);
  }
}

TEST(EtcdStore, ALeaseEndsWhenItIsNotRenewed) {
  EtcdUnderTest under_test;
  Blocking store(under_test, under_test.first());
  const Result<LeaseId> lease = store.GrantLease(kMinLeaseTtl);
  ASSERT_TRUE(lease.ok()) << lease.status();
  const Revision put = store.Put("a", "1", *lease);
  auto watch = store.StartWatch(WatchPrefix("", put.Next()));
  ASSERT_TRUE(watch.ok()) << watch.status();
  EXPECT_TRUE(store.RenewLease(*lease).ok());
  EXPECT_EQ(DescribeAll(ReadUntil(under_test, **watch, put.Next())),
            std::vector<std::string>{"a deleted@3"});
  EXPECT_EQ(store.RenewLease(*lease).reason(), Reason::kNotFound);
}

TEST(EtcdStore, ALongListComesInPages) {
  EtcdUnderTest under_test;
  Blocking store(under_test, under_test.first());
  constexpr int kSmall = 2'500;
  for (int i = 0; i < kSmall; i += 100) {
    std::vector<Op> ops;
    for (int k = i; k < i + 100; ++k) {
      ops.push_back(Op::Put("k" + std::to_string(10'000 + k), Bytes("v")));
    }
    store.Apply(std::move(ops));
  }
  // 40 MB: more than one answer may have.
  constexpr int kLarge = 40;
  const std::string large(1024 * 1024, 'x');
  for (int i = 0; i < kLarge; ++i) store.Put("l" + std::to_string(100 + i), large);
  const Result<RangeResult> all = store.Range(RangePrefix(""));
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_EQ(all->items.size(), static_cast<size_t>(kSmall + kLarge));
  EXPECT_EQ(all->count, static_cast<size_t>(kSmall + kLarge));
  EXPECT_FALSE(all->more);
  RangeRequest some = RangePrefix("");
  some.limit = 1'500;
  const Result<RangeResult> first = store.Range(some);
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(first->items.size(), 1'500U);
  EXPECT_TRUE(first->more);
}

TEST(EtcdStore, TheLargestTransactionIsOneThatEtcdTakes) {
  EtcdUnderTest under_test;
  Blocking store(under_test, under_test.first());
  Txn txn;
  const size_t key_bytes = kMaxKeyBytes;
  for (size_t i = 0; i < kMaxTxnKeys / 2; ++i) {
    const std::string number = std::to_string(100 + i);
    txn.conditions.push_back(
        Condition::Absent("c" + number + std::string(key_bytes - number.size() - 1, 'k')));
    txn.ops.push_back(
        Op::Put("o" + number + std::string(key_bytes - number.size() - 1, 'k'), Bytes("")));
  }
  // Two values share what is left, to the byte. The last condition fails, so nothing is written.
  size_t accepted = 0;
  for (size_t low = 0, high = kMaxTxnBytes; low < high;) {
    const size_t middle = (low + high + 1) / 2;
    const size_t half = middle / 2;
    txn.ops[0].value = Bytes(std::string(half, 'x'));
    txn.ops[1].value = Bytes(std::string(middle - half, 'x'));
    Txn refused = txn;
    refused.conditions.push_back(Condition::Unchanged("nothing", Revision{1}));
    refused.ops.pop_back();
    const Result<TxnResult> result = store.Commit(refused);
    if (result.ok()) {
      low = accepted = middle;
    } else {
      ASSERT_NE(result.status().message().find("transaction has"), std::string_view::npos)
          << "refused by etcd, not by us: " << result.status();
      high = middle - 1;
    }
  }
  EXPECT_GT(accepted, kMaxTxnBytes * 8 / 10);
}

TEST(EtcdStore, SaysWhereNobodyAnswers) {
  rt::AsioLoop loop;
  EtcdOptions options;
  options.endpoints = {"127.0.0.1:1", "127.0.0.1:2"};
  options.call_timeout = Duration::Millis(500);
  const auto store = rt::RunTask(loop, EtcdStore::Open(loop, options));
  ASSERT_FALSE(store.ok());
  EXPECT_EQ(store.status().reason(), Reason::kUnavailable);
  EXPECT_NE(store.status().message().find("127.0.0.1:1, 127.0.0.1:2"), std::string_view::npos)
      << store.status();
}

}  // namespace
}  // namespace berth::store
