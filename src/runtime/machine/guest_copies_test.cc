// SPDX-License-Identifier: Apache-2.0
// Disks that guests use are copied by their guests: who may be asked, what is left behind, and what
// is not known.
#include "runtime/machine/guest_copies.h"

#include <gtest/gtest.h>

#include <optional>

#include "image/testing/temporary_folder.h"
#include "rt/child_context.h"
#include "rt/sim/run_task.h"
#include "runtime/machine/domain_text.h"
#include "runtime/volume/fake_disks.h"

namespace berth::runtime {
namespace {

using Phase = BackupState::Phase;

// One guest with one disk. A job ends when the test says so.
class FakeJobs final : public BackupJobs {
 public:
  rt::Task<Result<DiskUser>> FindDiskUser(std::string path) override {
    if (!trouble.ok()) co_return trouble;
    if (path != disk) co_return NotFound("no guest");
    co_return DiskUser{.domain = "g", .device = "vda"};
  }
  rt::Task<Status> BeginBackup(DiskUser user, DiskFile target) override {
    EXPECT_EQ(user.device, "vda");
    if (state.phase == Phase::kRunning) co_return Conflict("another job");
    EXPECT_TRUE(std::filesystem::exists(target.path)) << "made before";
    ++begun;
    Run(target.path);
    co_return OkStatus();
  }
  rt::Task<Result<BackupState>> LookAtBackup(std::string domain) override {
    EXPECT_EQ(domain, "g");
    if (!trouble.ok()) co_return trouble;
    if (moves) ++state.done_bytes;
    co_return state;
  }
  rt::Task<Status> AbortBackup(std::string) override {
    ++aborted;
    End(Phase::kFailed, "it was ended");
    co_return OkStatus();
  }

  void Run(std::string target) {
    state = BackupState();
    state.phase = Phase::kRunning;
    state.target = std::move(target);
    state.total_bytes = int64_t{1} << 30;
  }
  void End(Phase phase, std::string problem = {}) {
    state = BackupState();
    state.phase = phase;
    state.problem = std::move(problem);
  }

  std::string disk;
  bool moves = true;
  BackupState state;
  Status trouble;
  int begun = 0;
  int aborted = 0;
};

class GuestCopiesTest : public testing::Test {
 protected:
  GuestCopiesTest() {
    folder_.Write("disks/volumes/v/disk.raw", std::string(4096, 'v'));
    source_ = {.path = folder_.Sub("disks/volumes/v/disk.raw"), .format = DiskFormat::kRaw};
    target_ = {.path = folder_.Sub("disks/part.raw"), .format = DiskFormat::kRaw};
    jobs_.disk = source_.path;
  }
  ~GuestCopiesTest() override { EXPECT_EQ(rt::RunTask(loop_, copies_.Stop()), OkStatus()); }

  static rt::Task<Result<BackupJobs*>> Give(BackupJobs* jobs) { co_return jobs; }
  static rt::Task<Status> Keep(rt::Task<Status> task, std::optional<Status>* kept) {
    *kept = co_await task;
    co_return OkStatus();
  }
  // Begins it and lets the job begin.
  void Begin() {
    scope_.Spawn("copy", Keep(copies_.Copy(source_, target_), &status_));
    loop_.RunFor(Duration::Seconds(5));
  }
  Status End() {
    EXPECT_TRUE(loop_.RunUntil([this] { return status_.has_value(); }, Duration::Hours(1)));
    return status_.value_or(Internal("it did not end"));
  }

  image::TemporaryFolder folder_;
  rt::SimLoop loop_{1};
  FakeDisks disks_;
  FakeJobs jobs_;
  DiskFile source_;
  DiskFile target_;
  std::optional<Status> status_;
  rt::TaskScope scope_{loop_};
  GuestCopies copies_{
      loop_, disks_, [this] { return Give(&jobs_); }, {.folder = folder_.Sub("disks")}};
};

TEST_F(GuestCopiesTest, OneIsThereWhenItsJobIsDone) {
  Begin();
  EXPECT_EQ(jobs_.begun, 1);
  EXPECT_FALSE(status_.has_value());
  EXPECT_EQ(std::filesystem::file_size(target_.path), 4096U) << "as large as its source";
  jobs_.End(Phase::kDone);
  EXPECT_EQ(End(), OkStatus());
  EXPECT_EQ(jobs_.aborted, 0);
}

TEST_F(GuestCopiesTest, ADiskOfNoGuestIsNotFound) {
  jobs_.disk = "/another";
  Begin();
  EXPECT_EQ(End().reason(), Reason::kNotFound);
  EXPECT_EQ(jobs_.begun, 0);
}

TEST_F(GuestCopiesTest, WhatAFormerLifeHasLeftIsEndedFirst) {
  jobs_.Run(folder_.Sub("disks/old.raw"));
  Begin();
  EXPECT_EQ(jobs_.aborted, 1);
  EXPECT_EQ(jobs_.begun, 1);
  jobs_.End(Phase::kDone);
  EXPECT_EQ(End(), OkStatus());
}

TEST_F(GuestCopiesTest, ThatOfSomebodyElseIsLeftAlone) {
  jobs_.Run("/backup/of/an/admin");
  Begin();
  const Status ended = End();
  EXPECT_EQ(ended.reason(), Reason::kConflict);
  EXPECT_NE(ended.message().find("/backup/of/an/admin"), std::string::npos) << ended;
  EXPECT_EQ(jobs_.aborted + jobs_.begun, 0);
}

TEST_F(GuestCopiesTest, OnesOfOneGuestFollowEachOther) {
  Begin();
  std::optional<Status> second;
  const DiskFile other = {.path = folder_.Sub("disks/other.raw"), .format = DiskFormat::kRaw};
  scope_.Spawn("copy", Keep(copies_.Copy(source_, other), &second));
  loop_.RunFor(Duration::Minutes(10));
  EXPECT_EQ(jobs_.begun, 1);
  EXPECT_EQ(jobs_.aborted, 0);
  jobs_.End(Phase::kDone);
  EXPECT_EQ(End(), OkStatus());
  loop_.RunFor(Duration::Seconds(5));
  EXPECT_EQ(jobs_.begun, 2);
  jobs_.End(Phase::kDone);
  ASSERT_TRUE(loop_.RunUntil([&] { return second.has_value(); }, Duration::Minutes(1)));
  EXPECT_EQ(*second, OkStatus());
}

TEST_F(GuestCopiesTest, AJobThatNobodyWaitsForAnyMoreIsEnded) {
  Begin();
  scope_.Cancel();
  EXPECT_EQ(End().reason(), Reason::kCancelled);
  loop_.RunFor(Duration::Seconds(5));
  EXPECT_EQ(jobs_.aborted, 1);
}

TEST_F(GuestCopiesTest, ALibvirtdThatIsAwayForAMomentIsWaitedFor) {
  Begin();
  jobs_.trouble = Unavailable("libvirt is not connected");
  loop_.RunFor(Duration::Seconds(20));
  EXPECT_FALSE(status_.has_value());
  jobs_.trouble = OkStatus();
  jobs_.End(Phase::kDone);
  EXPECT_EQ(End(), OkStatus());
}

TEST_F(GuestCopiesTest, WhatNobodyRemembersIsNotBelieved) {
  Begin();
  jobs_.state = BackupState();  // the libvirtd that knew was killed
  EXPECT_EQ(End().reason(), Reason::kUnavailable);
}

TEST_F(GuestCopiesTest, AGhostOfAJobIsEnded) {
  Begin();
  jobs_.moves = false;
  jobs_.state.total_bytes = 0;  // as libvirtd shows it if QEMU's job ended while it was dead
  jobs_.state.done_bytes = 0;
  const Time now = loop_.Now();
  EXPECT_EQ(End().reason(), Reason::kUnavailable);
  EXPECT_LT(loop_.Now() - now, Duration::Seconds(10));
  EXPECT_EQ(jobs_.aborted, 1);
}

TEST_F(GuestCopiesTest, AJobThatMakesNoProgressIsEnded) {
  Begin();
  loop_.RunFor(Duration::Hours(1));
  EXPECT_EQ(jobs_.aborted, 0) << "however long it takes";
  jobs_.moves = false;
  loop_.RunFor(Duration::Minutes(1));
  EXPECT_FALSE(status_.has_value());
  EXPECT_EQ(End().reason(), Reason::kUnavailable);
  EXPECT_EQ(jobs_.aborted, 1);
}

TEST_F(GuestCopiesTest, AFullDiskIsSaidToBeOne) {
  Begin();
  jobs_.End(Phase::kFailed, "No space left on device");
  const Status ended = End();
  EXPECT_EQ(ended.reason(), Reason::kTooManyRequests) << ended;
  EXPECT_NE(ended.message().find("No space left"), std::string::npos) << ended;
}

TEST(DomainText, TheDeviceOfAFileIsFoundWhateverItsName) {
  const std::string xml =
      "<disk type='file' device='disk'><source file='/a/disk.raw' index='2'/><backingStore/>"
      "<target dev='vda' bus='virtio'/></disk>"
      "<disk type='file' device='disk'><source file='/b/&lt;&amp;&apos;.raw' index='1'/>"
      "<target dev='vdb' bus='virtio'/></disk>";
  EXPECT_EQ(DeviceOfFile(xml, "/a/disk.raw"), "vda");
  EXPECT_EQ(DeviceOfFile(xml, "/b/<&'.raw"), "vdb");
  EXPECT_EQ(DeviceOfFile(xml, "/a/disk"), "");
  EXPECT_EQ(DeviceOfFile("<disk ", "/a/disk"), "");
  EXPECT_EQ(BackupTargetIn("<disk name='vda'><target file='/c/&quot;'/></disk>"), "/c/\"");
}

}  // namespace
}  // namespace berth::runtime
