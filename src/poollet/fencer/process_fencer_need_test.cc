// SPDX-License-Identifier: Apache-2.0
// Defends: a host knows who kills its guests at their deadlines before its runtime knows which
// guests it has, and never takes the wrong one for it.
#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "poollet/fencer/process_fencer.h"
#include "rt/sim/run_task.h"
#include "rt/sim/sim_loop.h"

namespace berth::poollet {
namespace {

Status None() { return {Reason::kMethodNotSupported, "not here"}; }

class SayingRuntime final : public iri::HostRuntime {
 public:
  SayingRuntime(Status guests, Status leases)
      : guests_(std::move(guests)), leases_(std::move(leases)) {}
  rt::Task<Result<std::unique_ptr<iri::ChangeStream>>> Watch(std::string) override {
    co_return None();
  }
  rt::Task<Result<iri::HostCapacity>> Capacity() override { co_return iri::HostCapacity(); }
  rt::Task<Result<std::vector<iri::LeaseState>>> RenewLease(iri::LeaseRenewal renewal) override {
    EXPECT_TRUE(renewal.machine_uids.empty() && renewal.released_uids.empty());
    if (!leases_.ok()) co_return leases_;
    co_return std::vector<iri::LeaseState>();
  }
  rt::Task<Status> SetReservations(std::vector<iri::Reservation>) override { co_return None(); }
  rt::Task<Result<std::vector<iri::Reservation>>> ListReservations() override { co_return None(); }
  rt::Task<Result<std::vector<iri::GuestProcess>>> ListGuests() override {
    if (!guests_.ok()) co_return guests_;
    co_return std::vector<iri::GuestProcess>();
  }

 private:
  const Status guests_;
  const Status leases_;
};

TEST(NeedsProcessFencer, R3_3_IsSaidByARuntimeThatDoesNotKnowItsGuestsYet) {
  const Status unknown = Unavailable("libvirt says nothing");
  const struct {
    std::string_view runtime;
    Status guests;
    Status leases;
    Result<bool> needs;
  } kCases[] = {
      {"guests are processes", OkStatus(), None(), true},
      {"and are not known yet", unknown, None(), true},
      {"and nobody asked in time", Timeout("2s"), None(), true},
      {"it keeps leases itself", None(), OkStatus(), false},
      {"it has neither", None(), None(), false},
      {"it keeps leases itself and was not heard", unknown, OkStatus(), false},
      {"it is away", unknown, unknown, unknown},
  };
  for (const auto& c : kCases) {
    SCOPED_TRACE(c.runtime);
    rt::SimLoop loop{1};
    SayingRuntime runtime(c.guests, c.leases);
    const Result<bool> needs = rt::RunTask(loop, NeedsProcessFencer(&runtime));
    ASSERT_EQ(needs.status(), c.needs.status());
    if (needs.ok()) EXPECT_EQ(*needs, *c.needs);
  }
}

}  // namespace
}  // namespace berth::poollet
