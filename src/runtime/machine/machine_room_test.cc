// SPDX-License-Identifier: Apache-2.0
// Defends PROTOCOL 6.6 of machines: whatever a guest has on the host's disk is promised before it
// is written, with all others of the host, and is free again when it is gone. No guest takes more.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "rt/event.h"
#include "runtime/machine/machine_world.h"
#include "runtime/volume/shared_budget.h"

namespace berth::runtime {
namespace {

using iri::MachineState;

constexpr int64_t kMiB = int64_t{1} << 20;
// The log of its console, what libvirt says about it, its firmware's variables.
constexpr int64_t kBesideOne = kConsoleLogMax + 2 * kMiB;

// Of an image that is claimed, comes when a test says so, and has nothing in it.
class ComingImages final : public ImageSource {
 public:
  Status Check(std::string_view) const override { return OkStatus(); }
  rt::Task<Result<image::ImageFiles>> Fetch(ImageRequest request) override {
    ++asks;
    ArrivingPieces pieces = {{"digest", bytes}};
    const Status claimed = co_await request.claim(std::move(pieces));
    if (!claimed.ok()) co_return claimed.Wrap("image \"" + request.reference + "\"");
    ++claims;
    CO_TRY_STATUS(co_await arrived_.Wait());
    taken_ = bytes;
    co_return image::ImageFiles();
  }
  rt::Task<Result<int64_t>> TakenBytes() override { co_return taken_; }
  rt::Task<Status> Arrive() {
    arrived_.Set();
    co_return OkStatus();
  }

  int64_t bytes = 60 * kMiB;
  std::atomic<int> asks = 0;
  std::atomic<int> claims = 0;  // that were granted

 private:
  rt::Event arrived_;
  int64_t taken_ = 0;
};

class MachineRoomTest : public testing::Test {
 protected:
  // It tells the budget what it has until then.
  void TearDown() override { world_.Stop(); }
  // Volumes have promised so much of so much.
  void Volumes(int64_t promised, int64_t total) {
    const DiskShare share = {.total = total, .promised = promised};
    CHECK(world_.Await(volumes_->Settle(share)) == OkStatus());
  }
  void Start(ImageSource* images) {
    world_.Stop();
    world_.budget = machines_.get();
    world_.other_images = images;
    world_.options.images_folder = world_.root + "/images";
    world_.Start();
  }
  OtherShares Machines() { return *world_.Await(volumes_->Others()); }
  Result<iri::Machine> Create(const std::string& uid, const std::string& image) {
    iri::Machine wanted = world_.Wanted(uid);
    wanted.spec.volumes = {LocalDisk("root", "oda", 4096, image)};
    return world_.Await(world_.host().CreateMachine(wanted));
  }
  iri::MachineCondition ImageReady(const std::string& id) {
    for (const iri::MachineCondition& one : world_.Get(id).status.conditions) {
      if (one.type == "ImageReady") return one;
    }
    return {};
  }
  bool IsRefused(const std::string& id) {
    return iri::Eventually(world_, [&] { return ImageReady(id).reason == "NoRoomForImage"; });
  }

  // One thread: whoever reads the budget sees what was asked for before.
  rt::ThreadPool files_{{.threads = 1, .queue_max = 64, .name = "budget"}};
  ComingImages coming_;
  MachineWorld world_;
  const std::string folder_ = world_.root + "/budget";
  std::unique_ptr<SharedBudget> machines_ = *SharedBudget::Open(folder_, "machines", files_);
  std::unique_ptr<SharedBudget> volumes_ = *SharedBudget::Open(folder_, "volumes", files_);
};

TEST_F(MachineRoomTest, P6_6_WhatMachinesHaveCountsWhileNobodyKnowsThem) {
  Volumes(0, 100 * kMiB);
  Start(nullptr);
  const auto made = Create("u-1", "");
  ASSERT_TRUE(made.ok()) << made.status();
  ASSERT_TRUE(world_.Becomes(made->metadata.id, MachineState::kRunning)) << world_.Events();
  world_.Stop();
  world_.hypervisor.trouble = "it says nothing";
  world_.Start();
  EXPECT_TRUE(world_.Await(world_.host().Capacity()).ok()) << "and nobody waits for it";
  EXPECT_EQ(Machines().promised, 4096);
  EXPECT_EQ(Machines().beside, kBesideOne);
  world_.OnLoop([this] { world_.hypervisor.trouble.clear(); });
  EXPECT_TRUE(iri::Eventually(
      world_, [this] { return world_.Await(world_.host().Capacity())->trouble.empty(); }));
  EXPECT_EQ(Machines().promised, 4096);
  EXPECT_EQ(Machines().beside, kBesideOne);
}

TEST_F(MachineRoomTest, P6_6_AMachineCountsWithItsLogAndItsKernel) {
  std::filesystem::create_directories(world_.root + "/images/demo");
  std::ofstream(world_.root + "/images/demo/vmlinuz") << "kernel";
  std::ofstream(world_.root + "/images/demo/initramfs") << "memory disk";
  constexpr int64_t kKernel = 6 + 11;
  Volumes(0, 100 * kMiB);
  Start(nullptr);
  const auto made = Create("u-1", "demo");
  ASSERT_TRUE(made.ok()) << made.status();
  ASSERT_TRUE(world_.Becomes(made->metadata.id, MachineState::kRunning)) << world_.Events();
  EXPECT_EQ(Machines().promised, 4096);
  EXPECT_EQ(Machines().beside, kBesideOne + kKernel);
  // Found again, and not twice.
  world_.Restart();
  EXPECT_EQ(Machines().promised, 4096);
  EXPECT_EQ(Machines().beside, kBesideOne + kKernel);
  ASSERT_EQ(world_.Await(world_.host().DeleteMachine(made->metadata.id)), OkStatus());
  EXPECT_TRUE(
      iri::Eventually(world_, [&] { return Machines().promised + Machines().beside == 0; }));
}

TEST_F(MachineRoomTest, P6_6_AMachineNeedsRoomForItsLog) {
  Volumes(94 * kMiB, 100 * kMiB);
  Start(nullptr);
  const auto full = Create("u-1", "");
  EXPECT_EQ(full.status().reason(), Reason::kTooManyRequests);
  const std::string_view words = full.status().message();
  EXPECT_TRUE(words.contains("local disks of 4096 bytes and " + std::to_string(kBesideOne)))
      << words;
  EXPECT_TRUE(words.contains(std::to_string(6 * kMiB) + " are free")) << words;
  EXPECT_EQ(Machines().promised + Machines().beside, 0);
  Volumes(93 * kMiB, 100 * kMiB);
  EXPECT_TRUE(Create("u-1", "").ok());
  EXPECT_EQ(Machines().promised, 4096) << "its disk";
  EXPECT_EQ(Machines().beside, kBesideOne) << "its log";
}

TEST_F(MachineRoomTest, P6_6_AKernelThatDoesNotFitIsSaidAndCopiedWhenThereIsRoom) {
  std::filesystem::create_directories(world_.root + "/images/demo");
  std::ofstream(world_.root + "/images/demo/vmlinuz") << std::string(2 * kMiB, 'k');
  Volumes(90 * kMiB, 100 * kMiB);
  Start(nullptr);
  const auto made = Create("u-1", "demo");
  ASSERT_TRUE(made.ok()) << made.status();
  const std::string id = made->metadata.id;
  ASSERT_TRUE(IsRefused(id)) << world_.Events();
  const std::string words = ImageReady(id).message;
  EXPECT_TRUE(words.contains("image \"demo\": no room for its kernel of 2097152 bytes")) << words;
  EXPECT_FALSE(std::filesystem::exists(world_.root + "/machines/" + id + "/vmlinuz"));
  Volumes(80 * kMiB, 100 * kMiB);
  EXPECT_TRUE(world_.Becomes(id, MachineState::kRunning)) << world_.Events();
  EXPECT_EQ(Machines().beside, kBesideOne + 2 * kMiB);
}

TEST_F(MachineRoomTest, P6_6_AnImageIsPromisedBeforeItComes) {
  Volumes(50 * kMiB, 100 * kMiB);
  Start(&coming_);
  const auto made = Create("u-1", "registry.test/os:1");
  ASSERT_TRUE(made.ok()) << made.status();
  const std::string id = made->metadata.id;
  ASSERT_TRUE(IsRefused(id)) << world_.Events();
  const std::string words = ImageReady(id).message;
  EXPECT_TRUE(
      words.contains("image \"registry.test/os:1\": no room for its files of 62914560 bytes"))
      << words;
  EXPECT_TRUE(words.contains(" are free (local disks 4096, ")) << words;
  EXPECT_EQ(Machines().arriving, 0) << "what was refused is not promised";
  // Something goes, and it comes.
  Volumes(20 * kMiB, 100 * kMiB);
  ASSERT_TRUE(iri::Eventually(world_, [&] { return Machines().arriving == 60 * kMiB; }))
      << world_.Events();
  // A second machine of this image does not want it twice.
  const auto second = Create("u-2", "registry.test/os:1");
  ASSERT_TRUE(second.ok()) << second.status();
  ASSERT_TRUE(iri::Eventually(world_, [&] { return coming_.claims == 2; })) << world_.Events();
  EXPECT_EQ(Machines().arriving, 60 * kMiB);
  ASSERT_EQ(world_.Run(coming_.Arrive()), OkStatus());
  ASSERT_TRUE(world_.Becomes(id, MachineState::kRunning)) << world_.Events();
  ASSERT_TRUE(world_.Becomes(second->metadata.id, MachineState::kRunning)) << world_.Events();
  EXPECT_TRUE(iri::Eventually(world_, [&] { return Machines().arriving == 0; }));
  EXPECT_EQ(Machines().images, 60 * kMiB) << "and counts as what it takes";
}

TEST_F(MachineRoomTest, P6_6_NothingIsToldBeforeAllMachinesAreKnownAgain) {
  Volumes(0, 200 * kMiB);
  Start(&coming_);
  ASSERT_TRUE(Create("u-1", "registry.test/os:1").ok());
  const std::string runs = Create("u-2", "")->metadata.id;
  ASSERT_TRUE(world_.Becomes(runs, MachineState::kRunning)) << world_.Events();
  ASSERT_TRUE(iri::Eventually(world_, [&] { return coming_.claims == 1; })) << world_.Events();
  EXPECT_EQ(Machines().beside, 2 * kBesideOne);
  // The one that runs is taken in late, and the other has asked for room by then.
  world_.Stop();
  world_.hypervisor.slow_guest = DomainNameOf(runs);
  std::thread starting([this] { world_.Start(); });
  EXPECT_TRUE(iri::Eventually(world_, [&] { return coming_.asks == 2; }));
  EXPECT_EQ(Machines().promised, 2 * 4096);
  EXPECT_EQ(Machines().beside, 2 * kBesideOne);
  EXPECT_EQ(coming_.claims, 1);
  world_.OnLoop([this] { world_.hypervisor.slow_guest_goes_on.Set(); });
  starting.join();
  EXPECT_TRUE(iri::Eventually(world_, [&] { return coming_.claims == 2; })) << world_.Events();
  EXPECT_EQ(Machines().promised, 2 * 4096);
  EXPECT_EQ(Machines().beside, 2 * kBesideOne);
}

TEST_F(MachineRoomTest, P6_6_AMachineThatIsFoundLaterCounts) {
  Volumes(0, 100 * kMiB);
  Start(nullptr);
  const std::string id = Create("u-1", "")->metadata.id;
  ASSERT_TRUE(world_.Becomes(id, MachineState::kRunning)) << world_.Events();
  // A create of a former life, to which libvirt comes only after the start.
  world_.Stop();
  auto defined = world_.hypervisor.guests.extract(DomainNameOf(id));
  world_.Start();
  EXPECT_EQ(Machines().promised + Machines().beside, 0);
  world_.OnLoop([&] {
    world_.hypervisor.guests.insert(std::move(defined));
    world_.hypervisor.Tell(DomainNameOf(id), DomainEvent::Kind::kDefined);
  });
  EXPECT_TRUE(iri::Eventually(world_, [&] { return Machines().beside == kBesideOne; }))
      << Machines().beside;
  EXPECT_EQ(Machines().promised, 4096);
}

TEST_F(MachineRoomTest, P6_6_WhatAGuestSaysIsCutWhileItRuns) {
  world_.Stop();
  world_.options.console_log_max = kConsoleLogMaxLeast;
  world_.options.log_look = Duration::Millis(5);
  world_.Start();
  const std::string id = iri::Running(world_, "u-1").metadata.id;
  const std::string path = world_.root + "/machines/" + id + "/console.log";
  const auto taken = [&path] {
    constexpr int64_t kBlock = 512;
    struct stat status = {};
    return stat(path.c_str(), &status) == 0 ? status.st_blocks * kBlock : 0;
  };
  std::ofstream(path, std::ios::app) << std::string(2 * kMiB, 'x') << "the last words";
  EXPECT_TRUE(iri::Eventually(world_, [&] { return taken() <= kConsoleLogMaxLeast; })) << taken();
  EXPECT_TRUE(FileText(path).ends_with("xxxthe last words"));
  // Said while there was no runtime.
  world_.Stop();
  std::ofstream(path, std::ios::app) << std::string(2 * kMiB, 'y');
  world_.Start();
  EXPECT_TRUE(iri::Eventually(world_, [&] { return taken() <= kConsoleLogMaxLeast; })) << taken();
}

}  // namespace
}  // namespace berth::runtime
