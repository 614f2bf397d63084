// SPDX-License-Identifier: Apache-2.0
// Defends that runtimes of one host together never promise more disk than there is: what each has
// promised is seen by all, also of one that is dead, and images count once.
#include "runtime/volume/shared_budget.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "rt/asio/asio_loop.h"
#include "rt/join_all.h"
#include "rt/thread_pool.h"

namespace berth::runtime {
namespace {

class SharedBudgetTest : public testing::Test {
 protected:
  SharedBudgetTest() {
    std::string pattern = std::filesystem::temp_directory_path() / "berth-budget-XXXXXX";
    CHECK(mkdtemp(pattern.data()) != nullptr);
    folder_ = pattern;
    disks_ = *SharedBudget::Open(folder_ + "/budget", "volumes", pool_);
    machines_ = *SharedBudget::Open(folder_ + "/budget", "machines", pool_);
  }
  ~SharedBudgetTest() override { std::filesystem::remove_all(folder_); }

  template <class T>
  T Await(rt::Task<T> task) {
    return rt::RunTask(loop_, std::move(task));
  }
  static SharedBudget::Check AtMost(int64_t mine, int64_t total) {
    return [mine, total](const OtherShares& others) {
      return mine + others.promised <= total ? OkStatus() : Conflict("full");
    };
  }

  std::string folder_;
  rt::AsioLoop loop_{"test"};
  rt::ThreadPool pool_{rt::ThreadPool::Options{.threads = 4}};
  std::unique_ptr<SharedBudget> disks_;
  std::unique_ptr<SharedBudget> machines_;
};

TEST_F(SharedBudgetTest, WhatOneHasPromisedTheOtherHasNot) {
  EXPECT_EQ(Await(disks_->Claim({.total = 100, .promised = 60}, AtMost(60, 100))), OkStatus());
  EXPECT_EQ(Await(machines_->Claim({.promised = 41}, AtMost(41, 100))), Conflict("full"));
  EXPECT_EQ(Await(disks_->Others())->promised, 0) << "what was refused is not written down";
  EXPECT_EQ(Await(machines_->Claim({.promised = 40}, AtMost(40, 100))), OkStatus());
  EXPECT_EQ(Await(disks_->Others())->promised, 40);
  EXPECT_EQ(Await(machines_->Others())->total, 100);
  // Its process is gone; what it has promised is not.
  disks_.reset();
  EXPECT_EQ(Await(machines_->Claim({.promised = 41}, AtMost(41, 100))), Conflict("full"));
  disks_ = *SharedBudget::Open(folder_ + "/budget", "volumes", pool_);
  EXPECT_EQ(Await(disks_->Settle({.total = 100, .promised = 10})), OkStatus());
  EXPECT_EQ(Await(machines_->Claim({.promised = 41}, AtMost(41, 100))), OkStatus());
}

TEST_F(SharedBudgetTest, ImagesOfOneFolderCountOnce) {
  ASSERT_EQ(Await(disks_->Settle({.total = 9, .images = {{"/a", 10}, {"/b", 5}}})), OkStatus());
  ASSERT_EQ(Await(machines_->Settle({.images = {{"/a", 11}, {"/c", 7}}})), OkStatus());
  EXPECT_EQ(Await(disks_->Others())->images, 7);
  EXPECT_EQ(Await(machines_->Others())->images, 5);
}

TEST_F(SharedBudgetTest, WhatIsOnItsWayCountsAndWhatComesForTwoCountsOnce) {
  ASSERT_EQ(Await(disks_->Settle({.total = 9, .arriving = {{"a", 10}, {"b", 5}}})), OkStatus());
  ASSERT_EQ(Await(machines_->Settle({.beside = 3, .arriving = {{"a", 10}, {"c", 7}}})), OkStatus());
  EXPECT_EQ(Await(disks_->Others())->arriving, 7);
  EXPECT_EQ(Await(machines_->Others())->arriving, 5);
  EXPECT_EQ(Await(disks_->Others())->in_all(), 10);
  // It was killed while an image came: that counts until it is back and knows what came.
  machines_.reset();
  EXPECT_EQ(Await(disks_->Others())->in_all(), 10);
  machines_ = *SharedBudget::Open(folder_ + "/budget", "machines", pool_);
  ASSERT_EQ(Await(machines_->Settle({.beside = 3})), OkStatus());
  EXPECT_EQ(Await(disks_->Others())->in_all(), 3);
}

TEST_F(SharedBudgetTest, AShareOfAnOlderRuntimeIsRead) {
  const auto share = DiskShareOf(R"({"version":1,"total":7,"promised":5,"images":{"/a":2}})");
  ASSERT_TRUE(share.ok()) << share.status();
  EXPECT_EQ(*share, (DiskShare{.total = 7, .promised = 5, .images = {{"/a", 2}}}));
  const DiskShare full = {
      .total = 1, .promised = 2, .beside = 3, .images = {{"/a", 4}}, .arriving = {{"d", 5}}};
  EXPECT_EQ(*DiskShareOf(ToText(full)), full);
}

TEST_F(SharedBudgetTest, ADamagedShareRefusesEverybody) {
  for (const char* text : {"",
                           "{}",
                           "{\"version\":2,\"total\":0,\"promised\":0,\"images\":{}}",
                           "{\"version\":1,\"total\":0,\"promised\":-1,\"images\":{}}",
                           "{\"version\":1,\"total\":0,\"promised\":1}",
                           R"({"version":1,"total":0,"promised":1,"images":{},"beside":-1})",
                           R"({"version":1,"total":0,"promised":1,"images":{},"beside":1})"}) {
    const std::string path = folder_ + "/budget/machines.share";
    std::ofstream(path) << text;
    std::filesystem::permissions(path, std::filesystem::perms{0600});
    const Status claimed = Await(disks_->Claim({.promised = 1}, AtMost(1, 100)));
    EXPECT_TRUE(claimed.message().contains("machines.share is damaged")) << claimed;
  }
  // Its owner knows better.
  ASSERT_EQ(Await(machines_->Settle({.promised = 1})), OkStatus());
  EXPECT_EQ(Await(disks_->Claim({.promised = 1}, AtMost(1, 100))), OkStatus());
}

TEST_F(SharedBudgetTest, OfManyAtOnceOnlySoManyFit) {
  // 8 runtimes that each want 30 of 100, from 4 threads.
  std::vector<std::unique_ptr<SharedBudget>> all;
  std::vector<rt::Task<Status>> claims;
  for (int i = 0; i < 8; ++i) {
    all.push_back(*SharedBudget::Open(folder_ + "/budget", std::to_string(i), pool_));
    claims.push_back(all.back()->Claim({.promised = 30}, AtMost(30, 100)));
  }
  int refused = 0;
  for (const Status& claimed : Await(rt::JoinAll(std::move(claims))))
    refused += claimed.ok() ? 0 : 1;
  EXPECT_EQ(refused, 5);
  EXPECT_EQ(Await(disks_->Others())->promised, 90);
}

}  // namespace
}  // namespace berth::runtime
