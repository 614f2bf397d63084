// SPDX-License-Identifier: Apache-2.0
// Leases: keys that go with whoever keeps them alive.
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "store/conformance/blocking.h"
#include "store/conformance/store_contract.h"

namespace berth::store {
namespace {

constexpr Duration kTtl = Duration::Seconds(10);
// Of leases that are not to end by themselves, however slow the machine is.
constexpr Duration kLongTtl = Duration::Minutes(30);

LeaseId Grant(Blocking& store, Duration ttl = kLongTtl) {
  const Result<LeaseId> lease = store.GrantLease(ttl);
  CHECK(lease.ok()) << lease.status();
  return *lease;
}

void ARevokedLeaseTakesItsKeysInOneCommit(StoreUnderTest& under_test) {
  Blocking store(under_test, under_test.first());
  const LeaseId lease = Grant(store);
  const LeaseId other = Grant(store);
  EXPECT_NE(lease, other);
  store.Put("a", "1", lease);
  store.Put("b", "1", lease);
  store.Put("c", "1", other);
  store.Put("d", "1");
  EXPECT_EQ(store.Get("a")->lease, lease);
  const Revision before = store.revision();
  ASSERT_TRUE(store.RevokeLease(lease).ok());
  EXPECT_EQ(store.revision(), before.Next());
  EXPECT_EQ(DescribeAll(store.GetAll("")), (std::vector<std::string>{"c=1@4", "d=1@5"}));
  EXPECT_EQ(store.RevokeLease(lease).reason(), Reason::kNotFound);
  EXPECT_EQ(store.RenewLease(lease).reason(), Reason::kNotFound);
}

void AKeyLeavesItsLeaseWhenItIsWrittenWithoutIt(StoreUnderTest& under_test) {
  Blocking store(under_test, under_test.first());
  const LeaseId lease = Grant(store);
  const LeaseId other = Grant(store);
  for (const char* key : {"moved", "freed", "deleted", "kept"}) store.Put(key, "1", lease);
  store.Put("moved", "2", other);
  store.Put("freed", "2");
  store.Delete("deleted");
  store.Put("deleted", "2");
  ASSERT_TRUE(store.RevokeLease(lease).ok());
  EXPECT_TRUE(store.Get("moved").has_value());
  EXPECT_TRUE(store.Get("freed").has_value());
  EXPECT_TRUE(store.Get("deleted").has_value());
  EXPECT_FALSE(store.Get("kept").has_value());
}

void AnUnknownLeaseIsNotFound(StoreUnderTest& under_test) {
  Blocking store(under_test, under_test.first());
  Txn txn;
  txn.ops.push_back(Op::Put("a", Bytes("1"), LeaseId{42}));
  EXPECT_EQ(store.Commit(txn).status().reason(), Reason::kNotFound);
  EXPECT_EQ(store.RenewLease(LeaseId{42}).reason(), Reason::kNotFound);
  EXPECT_EQ(store.RevokeLease(LeaseId{42}).reason(), Reason::kNotFound);
  EXPECT_EQ(store.revision().value, 1);
}

void AnAbsurdTtlIsRefused(StoreUnderTest& under_test) {
  Blocking store(under_test, under_test.first());
  for (const Duration ttl : {Duration::Seconds(-1),
                             Duration(),
                             Duration::Millis(999),
                             kMaxLeaseTtl + Duration::Seconds(1)}) {
    EXPECT_EQ(store.GrantLease(ttl).status().reason(), Reason::kBadRequest) << FormatDuration(ttl);
  }
  EXPECT_TRUE(store.GrantLease(kMinLeaseTtl).ok());
  EXPECT_TRUE(store.GrantLease(kMaxLeaseTtl).ok());
}

void ALargeLeaseEndsInChunks(StoreUnderTest& under_test) {
  Blocking store(under_test, under_test.first());
  const LeaseId lease = Grant(store);
  constexpr size_t kKeys = 3 * kMaxTxnKeys - 1;
  for (size_t i = 0; i < kKeys;) {
    std::vector<Op> ops;
    for (; i < kKeys && ops.size() < kMaxTxnKeys; ++i) {
      ops.push_back(Op::Put("k" + std::to_string(i), Bytes("1"), lease));
    }
    store.Apply(std::move(ops));
  }
  const Revision before = store.revision();
  ASSERT_TRUE(store.RevokeLease(lease).ok());
  EXPECT_TRUE(store.GetAll("k").empty());
  if (under_test.is_remote()) {
    EXPECT_EQ(store.revision(), before.Next()) << "etcd needs no chunks";
  } else {
    EXPECT_EQ(store.revision().value, before.value + 3);
  }
}

void ALeaseEndsWhenItIsNotRenewed(StoreUnderTest& under_test) {
  Blocking store(under_test, under_test.first());
  const LeaseId lease = Grant(store, kTtl);
  const Revision put =
      store.Apply({Op::Put("a", Bytes("1"), lease), Op::Put("b", Bytes("1"), lease)});
  auto watch = store.StartWatch(WatchPrefix("", put.Next()));
  ASSERT_TRUE(watch.ok());
  for (int i = 0; i < 5; ++i) {
    under_test.Pass(kTtl - Duration::Millis(1));
    ASSERT_TRUE(store.Get("a").has_value()) << "renewal " << i;
    ASSERT_TRUE(store.RenewLease(lease).ok());
  }
  under_test.Pass(kTtl - Duration::Millis(1));
  EXPECT_TRUE(store.Get("a").has_value());
  under_test.Pass(Duration::Millis(2));
  EXPECT_FALSE(store.Get("a").has_value());
  EXPECT_EQ(store.RenewLease(lease).reason(), Reason::kNotFound);
  EXPECT_EQ(DescribeAll(ReadUntil(under_test, **watch, put.Next())),
            (std::vector<std::string>{"a deleted@3", "b deleted@3"}));
}

void LeasesEndOneAfterAnother(StoreUnderTest& under_test) {
  Blocking store(under_test, under_test.first());
  for (const int seconds : {30, 10, 20}) {
    store.Put("k" + std::to_string(seconds), "1", Grant(store, Duration::Seconds(seconds)));
  }
  for (size_t left = 3; left > 0; --left) {
    EXPECT_EQ(store.GetAll("k").size(), left);
    under_test.Pass(Duration::Seconds(10) + Duration::Millis(1));
  }
  EXPECT_TRUE(store.GetAll("k").empty());
}

void AfterARestartALeaseHasItsWholeTtl(StoreUnderTest& under_test) {
  LeaseId lease;
  {
    Blocking store(under_test, under_test.first());
    lease = Grant(store, kTtl);
    store.Put("a", "1", lease);
    const LeaseId revoked = Grant(store, kTtl);
    ASSERT_TRUE(store.RevokeLease(revoked).ok());
    under_test.Pass(kTtl - Duration::Millis(1));
  }
  under_test.Reopen();
  Blocking store(under_test, under_test.first());
  under_test.Pass(kTtl - Duration::Millis(1));
  EXPECT_TRUE(store.Get("a").has_value());
  EXPECT_EQ(store.Get("a")->lease, lease);
  under_test.Pass(Duration::Millis(2));
  EXPECT_FALSE(store.Get("a").has_value());
  under_test.Reopen();
  Blocking after(under_test, under_test.first());
  EXPECT_EQ(after.RenewLease(lease).reason(), Reason::kNotFound) << "its end is durable, too";
}

constexpr std::array kContracts = {
    StoreContract{"ARevokedLeaseTakesItsKeysInOneCommit", ARevokedLeaseTakesItsKeysInOneCommit},
    StoreContract{"AKeyLeavesItsLeaseWhenItIsWrittenWithoutIt",
                  AKeyLeavesItsLeaseWhenItIsWrittenWithoutIt},
    StoreContract{"AnUnknownLeaseIsNotFound", AnUnknownLeaseIsNotFound},
    StoreContract{"AnAbsurdTtlIsRefused", AnAbsurdTtlIsRefused},
    StoreContract{"ALargeLeaseEndsInChunks", ALargeLeaseEndsInChunks},
    StoreContract{"ALeaseEndsWhenItIsNotRenewed", ALeaseEndsWhenItIsNotRenewed, Clock::kVirtual},
    StoreContract{"LeasesEndOneAfterAnother", LeasesEndOneAfterAnother, Clock::kVirtual},
    StoreContract{
        "AfterARestartALeaseHasItsWholeTtl", AfterARestartALeaseHasItsWholeTtl, Clock::kVirtual},
};

}  // namespace

std::span<const StoreContract> LeaseContracts() { return kContracts; }

}  // namespace berth::store
