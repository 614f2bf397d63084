// SPDX-License-Identifier: Apache-2.0
// A process that is killed at any moment finds what it acknowledged.
#include "runtime/fake/fake_state_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "iri/labels.h"

namespace berth::runtime {
namespace {

class FakeStateFileTest : public testing::Test {
 protected:
  FakeStateFileTest() {
    std::string folder = testing::TempDir() + "berth-fake-XXXXXX";
    folder_ = mkdtemp(folder.data());
    path_ = folder_ + "/state";
  }
  ~FakeStateFileTest() override { std::filesystem::remove_all(folder_); }

  // A process: the state in its memory, and the file. Killed when it goes out of scope.
  struct Process {
    std::shared_ptr<FakeHostState> state;
    std::unique_ptr<FakeStateFile> file;
  };
  Process Start(const std::string& host_boot = "boot-1") {
    Process process;
    process.state = std::make_shared<FakeHostState>(DefaultFakeHost(), ++seed_);
    auto file = FakeStateFile::Open(path_, process.state, host_boot);
    CHECK(file.ok()) << file.status();
    process.file = *std::move(file);
    return process;
  }
  FakeClock At(int64_t seconds) {
    return {.now = Time::FromNanos(0) + Duration::Seconds(seconds),
            .wall = WallTime::FromSeconds(1'000'000 + seconds)};
  }
  static iri::Machine NewMachine(const std::string& uid) {
    iri::Machine machine;
    machine.metadata.labels = {{std::string(iri::kMachineUidLabel), uid}};
    machine.spec.class_name = "small";
    machine.spec.ignition_data = "secret";
    return machine;
  }

  std::string folder_;
  std::string path_;
  uint64_t seed_ = 0;
};

TEST_F(FakeStateFileTest, GuestsObjectsLeasesAndReservationsSurviveAKill) {
  std::vector<iri::Machine> before;
  {
    Process process = Start();
    const auto kept = process.state->CreateMachine(At(1), NewMachine("u-1"));
    const auto gone = process.state->CreateMachine(At(1), NewMachine("u-2"));
    ASSERT_TRUE(kept.ok() && gone.ok());
    iri::Volume volume;
    volume.spec = {.class_name = "fast", .storage_bytes = 100};
    ASSERT_TRUE(process.state->CreateVolume(At(1), volume).ok());
    iri::Bucket bucket;
    bucket.class_name = "standard";
    ASSERT_TRUE(process.state->CreateBucket(At(1), bucket).ok());
    ASSERT_EQ(process.state->DeleteMachine(At(10), gone->metadata.id), OkStatus());
    iri::LeaseRenewal renewal;
    renewal.deadline = At(100).now;
    renewal.machine_uids = {"u-1"};
    process.state->Renew(At(11), renewal);
    ASSERT_EQ(process.state->SetReservations(
                  At(11), {{.id = "r", .resources = {{"cpu", 1000}}, .machine_uid = "u-9"}}),
              OkStatus());
    before = process.state->ShowMachines(At(20), iri::ObjectFilter());
    ASSERT_EQ(before.size(), 1U);
  }
  Process process = Start();
  EXPECT_EQ(process.state->ShowMachines(At(20), iri::ObjectFilter()), before);
  EXPECT_EQ(process.state->RunningCopies(At(20), "u-1"), 1);
  EXPECT_EQ(process.state->ShowVolumes(At(20), iri::ObjectFilter()).size(), 1U);
  EXPECT_EQ(process.state->ShowBuckets(At(20), iri::ObjectFilter()).size(), 1U);
  EXPECT_EQ(process.state->reservations().size(), 1U);
  EXPECT_EQ(process.state->RunningCopies(At(101), "u-1"), 0) << "its lease still counts";
}

TEST_F(FakeStateFileTest, GuestsAreDeadAfterTheHostWasRebooted) {
  std::string boot;
  {
    Process process = Start();
    ASSERT_TRUE(process.state->CreateMachine(At(1), NewMachine("u-1")).ok());
    boot = process.state->boot_id();
  }
  Process process = Start("boot-2");
  EXPECT_EQ(process.state->RunningCopies(At(1), "u-1"), 0);
  EXPECT_EQ(process.state->ShowMachines(At(1), iri::ObjectFilter()).at(0).status.state,
            iri::MachineState::kTerminated);
  EXPECT_NE(process.state->boot_id(), boot);
  const std::string id = process.state->machines().begin()->first;
  EXPECT_TRUE(process.state->machines().at(id).lacks_ignition);
  ASSERT_EQ(process.state->SetPower(At(2), id, iri::Power::kOn), OkStatus());
  process = Start("boot-2");
  EXPECT_TRUE(process.state->machines().at(id).lacks_ignition) << "that is kept, too";
  EXPECT_TRUE(process.state->machines().at(id).waits);
}

TEST_F(FakeStateFileTest, ATornLastLineIsDroppedAndOtherDamageIsAnError) {
  {
    Process process = Start();
    ASSERT_TRUE(process.state->CreateMachine(At(1), NewMachine("u-1")).ok());
  }
  std::ofstream(path_, std::ios::app) << R"({"what":"Machine","object":{"meta)";
  EXPECT_EQ(Start().state->machines().size(), 1U);
  std::ofstream(path_, std::ios::app) << "nonsense\n";
  const auto state = std::make_shared<FakeHostState>(DefaultFakeHost(), 1);
  const auto damaged = FakeStateFile::Open(path_, state, "boot-1");
  EXPECT_EQ(damaged.status().reason(), Reason::kBadRequest);
  EXPECT_NE(damaged.status().message().find("remove the file to begin anew"), std::string::npos);
}

TEST_F(FakeStateFileTest, OnlyItsOwnerMayReadIt) {
  const Process process = Start();
  EXPECT_EQ(std::filesystem::status(path_).permissions(),
            std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
}

}  // namespace
}  // namespace berth::runtime
