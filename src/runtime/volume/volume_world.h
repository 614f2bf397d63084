// SPDX-License-Identifier: Apache-2.0
// A volume runtime on a folder of its own, for tests: started, stopped, killed and started again.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "image/testing/temporary_folder.h"
#include "iri/conformance/blocking.h"
#include "iri/labels.h"
#include "iri/local_disk.h"
#include "rt/asio/loop_thread.h"
#include "rt/process/child_processes.h"
#include "rt/sleep.h"
#include "rt/thread_pool.h"
#include "runtime/volume/fake_disks.h"
#include "runtime/volume/folder_shelf.h"
#include "runtime/volume/local_images.h"
#include "runtime/volume/power_cut.h"
#include "runtime/volume/qemu_disks.h"
#include "runtime/volume/volume_host.h"

namespace berth::runtime {

constexpr int64_t kMiB = 1 << 20;

using image::ReadWhole;
using image::TemporaryFolder;

enum class WorldDisks : uint8_t { kFake, kQemu };

class VolumeWorld final : public iri::RuntimeUnderTest {
 public:
  explicit VolumeWorld(WorldDisks disks, std::string folder = {})
      : folder_(folder.empty() ? temporary_.Sub("disks") : std::move(folder)) {
    QemuDisks::Options qemu;
    qemu.key_hardening = Duration::Millis(10);
    if (disks == WorldDisks::kQemu) {
      qemu_disks_ = std::make_unique<QemuDisks>(processes_, files_, qemu);
    }
    options.classes = *ParseVolumeClasses(
        "classes:\n"
        "- {name: fast, capabilities: {tps: 100Mi, iops: 5000}}\n"
        "- {name: plain, capabilities: {tps: 10Mi, iops: 500}, format: raw}\n");
    options.total_bytes = 64 * kMiB;
    options.boot_id = "boot-1";
    options.retry = {.initial = Duration::Millis(5), .max = Duration::Millis(50)};
    options.in_use_look = Duration::Millis(10);
    std::filesystem::create_directories(images());
    Start(nullptr);
  }
  ~VolumeWorld() override { Kill(); }
  VolumeWorld(const VolumeWorld&) = delete;
  VolumeWorld& operator=(const VolumeWorld&) = delete;

  // With a power cut that is owned by the caller, or without one.
  void Start(PowerCut* power) {
    auto shelf = FolderShelf::Open(folder_, files_);
    CHECK(shelf.ok()) << shelf.status();
    shelf_ = *std::move(shelf);
    Shelf* used_shelf = shelf_.get();
    Disks* used_disks = qemu_disks_ != nullptr ? static_cast<Disks*>(qemu_disks_.get()) : &fake;
    if (power != nullptr) {
      powered_shelf_ = std::make_unique<PoweredShelf>(*shelf_, *power);
      powered_disks_ = std::make_unique<PoweredDisks>(*used_disks, *power);
      used_shelf = powered_shelf_.get();
      used_disks = powered_disks_.get();
    }
    const VolumeHost::Deps deps = {.loop = loop_.loop(),
                                   .shelf = *used_shelf,
                                   .disks = *used_disks,
                                   .images = other_images != nullptr ? *other_images : images_,
                                   .live = live};
    auto host = loop_.Await(Begin(deps, options));
    CHECK(host.ok()) << host.status();
    host_ = *std::move(host);
  }
  // Whatever it did until now is all that it did.
  void Kill() {
    if (host_ == nullptr) return;
    CHECK(loop_.Await(host_->Stop()).ok());
    host_.reset();
    shelf_.reset();
  }
  void Restart(PowerCut* power = nullptr) {
    Kill();
    Start(power);
  }

  iri::Runtimes runtimes() override {
    iri::Runtimes runtimes;
    runtimes.volume = host_.get();
    runtimes.host = host_.get();
    return runtimes;
  }
  Status Run(rt::Task<Status> task) override { return loop_.Await(std::move(task)); }
  void Pass(Duration duration) override { CHECK(loop_.Await(rt::Sleep(duration)).ok()); }
  Time Now() override { return loop_.loop().Now(); }

  VolumeHost& host() { return *host_; }
  FolderShelf& shelf() { return *shelf_; }
  QemuDisks& qemu() { return *qemu_disks_; }
  std::string images() const { return temporary_.Sub("images"); }
  const TemporaryFolder& temporary() const { return temporary_; }
  const std::string& folder() const { return folder_; }

  template <class T>
  T Await(rt::Task<T> task) {
    return iri::Await(*this, std::move(task));
  }
  std::vector<Result<iri::Volume>> AwaitAll(std::vector<rt::Task<Result<iri::Volume>>> tasks) {
    return loop_.Await(rt::JoinAll(std::move(tasks)));
  }
  iri::Volume Wanted(const std::string& uid, int64_t bytes = kMiB) {
    iri::Volume volume;
    volume.metadata.labels = {{std::string(iri::kVolumeUidLabel), uid}};
    volume.spec.class_name = "fast";
    volume.spec.storage_bytes = bytes;
    return volume;
  }
  Result<iri::Volume> Create(iri::Volume wanted) {
    return Await(host_->CreateVolume(std::move(wanted)));
  }
  // Creates it and waits until it is there.
  iri::Volume Available(iri::Volume wanted) {
    const auto made = Create(std::move(wanted));
    CHECK(made.ok()) << made.status();
    CHECK(BecomesState(made->metadata.id, iri::VolumeState::kAvailable)) << Events();
    return *iri::GetVolume(*this, made->metadata.id);
  }
  bool BecomesState(const std::string& id, iri::VolumeState state) {
    return iri::Eventually(*this, [&] {
      const auto volume = iri::GetVolume(*this, id);
      return volume.has_value() && volume->status.state == state;
    });
  }
  bool IsGone(const std::string& id) {
    return iri::Eventually(*this, [&] { return !iri::GetVolume(*this, id).has_value(); });
  }
  Result<iri::VolumeSnapshot> Snapshot(const std::string& volume_id, const std::string& uid) {
    iri::VolumeSnapshot wanted;
    wanted.volume_id = volume_id;
    wanted.metadata.labels = {{std::string(iri::kSnapshotUidLabel), uid}};
    return Await(host_->CreateVolumeSnapshot(std::move(wanted)));
  }
  std::optional<iri::VolumeSnapshot> GetSnapshot(const std::string& id) {
    iri::ObjectFilter filter;
    filter.id = id;
    const auto listed = Await(host_->ListVolumeSnapshots(filter));
    CHECK(listed.ok());
    return listed->empty() ? std::nullopt : std::optional(listed->front());
  }
  bool SnapshotBecomes(const std::string& id, iri::SnapshotState state) {
    return iri::Eventually(*this, [&] {
      const auto snapshot = GetSnapshot(id);
      return snapshot.has_value() && snapshot->state == state;
    });
  }
  int64_t Used() {
    const auto capacity = Await(host_->Capacity());
    CHECK(capacity.ok()) << capacity.status();
    return capacity->used.at(std::string(iri::kStorage));
  }
  std::string Events() {
    std::string text;
    for (const iri::Event& event : *Await(host_->ListEvents(iri::EventFilter()))) {
      text += event.reason + ": " + event.message + "\n";
    }
    return text;
  }
  static std::string PathOf(const iri::Volume& volume) {
    return volume.status.access.attributes.at(std::string(iri::kPathAttribute));
  }
  // All files below the folder, but for the lock.
  std::vector<std::string> Files() const {
    std::vector<std::string> files;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_)) {
      if (entry.is_regular_file() && entry.path().filename() != "lock") {
        files.push_back(entry.path());
      }
    }
    return files;
  }

  VolumeHost::Options options;
  FakeDisks fake;
  ImageSource* other_images = nullptr;  // from the next start on; outlives this
  LiveDisks* live = nullptr;            // the same

 private:
  static rt::Task<Result<std::unique_ptr<VolumeHost>>> Begin(VolumeHost::Deps deps,
                                                             VolumeHost::Options options) {
    return VolumeHost::Start(deps, std::move(options));
  }

  TemporaryFolder temporary_;
  const std::string folder_;
  rt::LoopThread loop_{"loop"};
  rt::ThreadPool files_{{.threads = 2, .queue_max = 1024, .name = "files"}};
  rt::ThreadPool programs_{{.threads = 2, .queue_max = 1024, .name = "programs"}};
  rt::ChildProcesses processes_{programs_};
  LocalImages images_{images(), files_};
  std::unique_ptr<QemuDisks> qemu_disks_;
  std::unique_ptr<FolderShelf> shelf_;
  std::unique_ptr<PoweredShelf> powered_shelf_;
  std::unique_ptr<PoweredDisks> powered_disks_;
  std::unique_ptr<VolumeHost> host_;
};

}  // namespace berth::runtime
