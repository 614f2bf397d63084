// SPDX-License-Identifier: Apache-2.0
// A runtime keeps free what is wanted and never more: what it cannot keep it keeps nothing of, and
// what it was not heard to have taken is said again (PROTOCOL 6.5).
#include "poollet/host/reserved_room.h"

#include <gtest/gtest.h>

#include <memory>
#include <utility>

#include "rt/sim/run_task.h"
#include "rt/sim/sim_loop.h"

namespace berth::poollet {
namespace {

using Reservations = std::vector<iri::Reservation>;

class KeepingRuntime final : public iri::HostRuntime {
 public:
  rt::Task<Result<std::unique_ptr<iri::ChangeStream>>> Watch(std::string) override {
    co_return Status(Reason::kMethodNotSupported, "no watch");
  }
  rt::Task<Result<iri::HostCapacity>> Capacity() override { co_return iri::HostCapacity(); }
  rt::Task<Result<std::vector<iri::LeaseState>>> RenewLease(iri::LeaseRenewal) override {
    co_return std::vector<iri::LeaseState>();
  }
  rt::Task<Status> SetReservations(Reservations reservations) override {
    ++sets;
    if (!failure.ok()) co_return std::exchange(failure, OkStatus());
    if (!reservations.empty() && !refusal.ok()) co_return refusal;
    kept = std::move(reservations);
    co_return OkStatus();
  }
  rt::Task<Result<Reservations>> ListReservations() override {
    if (refusal.Is(Reason::kMethodNotSupported)) co_return refusal;
    co_return kept;
  }

  Reservations kept;
  Status failure;  // of the next call
  Status refusal;  // of every set that is not empty
  int sets = 0;
};

class ReservedRoomTest : public testing::Test {
 protected:
  void Want(int64_t cpu) {
    iri::Reservation one;
    one.id = "r";
    one.resources = {{"cpu", cpu}};
    wanted_ = {one};
  }
  Status Tell() { return rt::RunTask(loop_, room_.Tell(&runtime_)); }
  Status Check() { return rt::RunTask(loop_, room_.Check(&runtime_)); }

  rt::SimLoop loop_{1};
  KeepingRuntime runtime_;
  Reservations wanted_;
  ReservedRoom room_{[this](const iri::HostRuntime*) { return wanted_; }, Duration::Seconds(1)};
};

TEST_F(ReservedRoomTest, IsToldOnceAndAfterEveryChange) {
  Want(1000);
  EXPECT_TRUE(Tell().ok());
  EXPECT_TRUE(Tell().ok());
  EXPECT_EQ(runtime_.kept, wanted_);
  EXPECT_EQ(runtime_.sets, 1);
  Want(500);
  EXPECT_TRUE(Tell().ok());
  EXPECT_EQ(runtime_.kept, wanted_);
}

TEST_F(ReservedRoomTest, IsToldAgainAfterACallWhoseOutcomeIsUnknown) {
  Want(1000);
  ASSERT_TRUE(Tell().ok());
  runtime_.failure = Unavailable("lost");
  Want(500);
  EXPECT_TRUE(Tell().Is(Reason::kUnavailable));
  Want(1000);  // what it kept before, and perhaps does not any more
  EXPECT_TRUE(Tell().ok());
  EXPECT_EQ(runtime_.kept, wanted_);
  EXPECT_EQ(runtime_.sets, 3);
}

TEST_F(ReservedRoomTest, KeepsNothingWhereItDoesNotFit) {
  Want(1000);
  ASSERT_TRUE(Tell().ok());
  runtime_.refusal = Conflict("no room");
  Want(2000);
  EXPECT_TRUE(Tell().ok()) << "nobody is kept from anything by it";
  EXPECT_TRUE(runtime_.kept.empty());
  runtime_.refusal = OkStatus();
  EXPECT_TRUE(Tell().ok());
  EXPECT_EQ(runtime_.kept, wanted_);
}

TEST_F(ReservedRoomTest, ACheckFindsWhatWasForgotten) {
  Want(1000);
  ASSERT_TRUE(Tell().ok());
  runtime_.kept.clear();
  EXPECT_TRUE(Check().ok());
  EXPECT_EQ(runtime_.kept, wanted_);
}

TEST_F(ReservedRoomTest, ARuntimeWithoutReservationsIsLeftAlone) {
  runtime_.refusal = Status(Reason::kMethodNotSupported, "no guests");
  Want(1000);
  EXPECT_TRUE(Check().ok());
  EXPECT_TRUE(Tell().ok());
  EXPECT_EQ(runtime_.sets, 0);
  EXPECT_TRUE(rt::RunTask(loop_, room_.Tell(nullptr)).ok());
}

}  // namespace
}  // namespace berth::poollet
