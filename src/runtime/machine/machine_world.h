// SPDX-License-Identifier: Apache-2.0
// MachineWorld is a machine runtime for tests, on a hypervisor, disks, networks and consoles that
// do what the test says.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "iri/conformance/blocking.h"
#include "iri/local_disk.h"
#include "rt/asio/loop_thread.h"
#include "rt/sleep.h"
#include "rt/thread_pool.h"
#include "runtime/machine/fake_hypervisor.h"
#include "runtime/machine/fake_serial_lines.h"
#include "runtime/machine/machine_host.h"
#include "runtime/volume/fake_disks.h"
#include "runtime/volume/local_images.h"

namespace berth::runtime {

class FakeNetworks final : public HostNetworks {
 public:
  Result<DomainNic> Describe(std::string_view machine_id,
                             const iri::MachineNic& nic) const override {
    DomainNic described;
    described.kind = DomainNic::Kind::kTap;
    described.device = "tap0";
    described.mac = MacOf(std::string(machine_id) + nic.name);
    return described;
  }
  rt::Task<Status> Plug(PluggedNic one) override {
    plugged.insert(one.machine_id + "/" + one.nic.name);
    hostnames[one.nic.name] = one.hostname;
    co_return OkStatus();
  }
  rt::Task<Status> Unplug(std::string machine_id, iri::MachineNic nic) override {
    plugged.erase(machine_id + "/" + nic.name);
    co_return OkStatus();
  }
  rt::Task<Status> Adopt(std::vector<PluggedNic> all) override {
    plugged.clear();
    for (const PluggedNic& one : all) {
      plugged.insert(one.machine_id + "/" + one.nic.name);
      hostnames[one.nic.name] = one.hostname;
    }
    co_return OkStatus();
  }
  std::set<std::string> plugged;
  std::map<std::string, std::string> hostnames;  // by interface, as they were told last
};

inline std::string FileText(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// A disk of the machine's own, which begins with an image or, without one, empty.
inline iri::MachineVolume LocalDisk(std::string name,
                                    std::string device,
                                    int64_t bytes,
                                    std::string image) {
  iri::MachineVolume disk;
  disk.name = std::move(name);
  disk.device = std::move(device);
  disk.local_disk = iri::LocalDisk{.size_bytes = bytes, .image = std::move(image)};
  return disk;
}

class FakeDoors final : public ConsoleDoors {
 public:
  Result<std::string> Grant(Open open) override {
    doors.push_back(std::move(open));
    return "http://test/" + std::to_string(doors.size());
  }
  std::vector<Open> doors;
};

class MachineWorld final : public iri::RuntimeUnderTest {
 public:
  MachineWorld() {
    options.classes = *ParseMachineClasses(
        "classes:\n- {name: small, capabilities: {cpu: 1, memory: 64Mi}}\n"
        "- {name: large, capabilities: {cpu: 4, memory: 256Mi}}\n");
    options.total = {{"cpu", 4000}, {"memory", 1 << 30}, {"storage", 1 << 20}};
    options.boot_id = "boot-1";
    options.retry = {.initial = Duration::Millis(5), .max = Duration::Millis(20)};
    options.shutdown_grace = Duration::Millis(50);
    options.detach_limit = Duration::Millis(50);
    options.give_back_after = Duration::Millis(50);
    options.resume = options.retry;
    options.resume_trial = Duration::Millis(20);
    std::filesystem::create_directories(root + "/images");
    std::ofstream(root + "/volume.raw") << "disk";
    Start();
  }
  static std::string MakeRoot() {
    std::string pattern = std::filesystem::temp_directory_path() / "berth-machine-XXXXXX";
    CHECK(mkdtemp(pattern.data()) != nullptr);
    return pattern;
  }
  ~MachineWorld() override {
    Stop();
    std::filesystem::remove_all(root);
  }
  MachineWorld(const MachineWorld&) = delete;
  MachineWorld& operator=(const MachineWorld&) = delete;

  void Start() {
    GuestFolders::Places places;
    places.folder = root + "/machines";
    places.run_folder = root + "/run";
    places.libvirt_logs = root + "/logs";
    places.secrets_may_be_on_disk = true;
    auto folders = GuestFolders::Open(places, files_, files_);
    CHECK(folders.ok()) << folders.status();
    folders_ = *std::move(folders);
    const MachineHost::Deps deps = {.loop = loop_.loop(),
                                    .hypervisor = hypervisor,
                                    .folders = *folders_,
                                    .disks = disks,
                                    .images = other_images != nullptr ? *other_images : images_,
                                    .networks = networks,
                                    .lines = other_lines != nullptr ? *other_lines : lines,
                                    .doors = doors,
                                    .files = files_,
                                    .budget = budget};
    auto host = loop_.Await(Begin(deps, options));
    CHECK(host.ok()) << host.status();
    host_ = *std::move(host);
  }
  void Stop() {
    if (host_ == nullptr) return;
    CHECK(loop_.Await(host_->Stop()).ok());
    host_.reset();
    folders_.reset();
  }
  void Restart() {
    Stop();
    Start();
  }

  iri::Runtimes runtimes() override {
    iri::Runtimes runtimes;
    runtimes.machine = host_.get();
    runtimes.host = host_.get();
    return runtimes;
  }
  Status Run(rt::Task<Status> task) override { return loop_.Await(std::move(task)); }
  void Pass(Duration duration) override { CHECK(loop_.Await(rt::Sleep(duration)).ok()); }
  Time Now() override { return loop_.loop().Now(); }
  iri::VolumeConnection Connection(const std::string& name, int64_t bytes) override {
    iri::VolumeConnection connection;
    connection.driver = iri::kFileDriver;
    connection.handle = "h-" + name;
    connection.attributes = {{std::string(iri::kPathAttribute), root + "/volume.raw"},
                             {std::string(iri::kFormatAttribute), std::string(iri::kRawFormat)}};
    connection.secret_data = {{"key", "secret"}};
    connection.effective_storage_bytes = bytes;
    return connection;
  }

  MachineHost& host() { return *host_; }
  rt::Loop& loop() { return loop_.loop(); }
  template <class T>
  T Await(rt::Task<T> task) {
    return iri::Await(*this, std::move(task));
  }
  iri::Machine Wanted(const std::string& uid) { return iri::NewMachine(*this, uid); }
  iri::MachineVolume Volume(const std::string& name, const std::string& device) {
    iri::MachineVolume volume;
    volume.name = name;
    volume.device = device;
    volume.connection = Connection(name, 512);
    return volume;
  }
  iri::Machine Get(const std::string& id) { return *iri::GetMachine(*this, id); }
  bool Becomes(const std::string& id, iri::MachineState state) {
    return iri::BecomesState(*this, id, state);
  }
  // Of the guest of this machine, on the loop.
  void End(const std::string& id, OffReason reason) {
    CHECK(Run(Ending(DomainNameOf(id), reason)).ok());
  }
  // On the loop, so that nothing else happens meanwhile.
  void OnLoop(std::function<void()> job) { CHECK(Run(Doing(std::move(job))).ok()); }
  // Whether the guest of this machine has the device.
  bool Has(const std::string& id, const std::string& device) {
    bool has = false;
    OnLoop([&] { has = Guest(id).devices.contains(device); });
    return has;
  }
  const FakeHypervisor::Guest& Guest(const std::string& id) {
    return hypervisor.guests.at(DomainNameOf(id));
  }
  std::string ReasonOf(const std::string& id) {
    const auto conditions = Get(id).status.conditions;
    return conditions.empty() ? "" : conditions[0].reason;
  }
  std::string Events() {
    std::string text;
    for (const iri::Event& event : *Await(host_->ListEvents(iri::EventFilter()))) {
      text += event.reason + ": " + event.message + "\n";
    }
    return text;
  }

 private:
  static rt::Task<Status> Doing(std::function<void()> job) {
    job();
    co_return OkStatus();
  }
  static rt::Task<Result<std::unique_ptr<MachineHost>>> Begin(MachineHost::Deps deps,
                                                              MachineHost::Options options) {
    return MachineHost::Start(deps, std::move(options));
  }
  rt::Task<Status> Ending(std::string name, OffReason reason) {
    hypervisor.End(name, reason);
    co_return OkStatus();
  }

 public:
  const std::string root = MakeRoot();
  MachineHost::Options options;

 private:
  rt::LoopThread loop_{"loop"};
  rt::ThreadPool files_{{.threads = 2, .queue_max = 1024, .name = "files"}};

 public:
  FakeHypervisor hypervisor{loop_.loop()};
  FakeDisks disks;
  FakeNetworks networks;
  FakeSerialLines lines;
  FakeDoors doors;
  SerialLines* other_lines = nullptr;   // the same as with other_images
  ImageSource* other_images = nullptr;  // from the next start on; outlives this
  SharedBudget* budget = nullptr;       // the same

 private:
  LocalImages images_{root + "/images", files_};
  std::unique_ptr<GuestFolders> folders_;
  std::unique_ptr<MachineHost> host_;
};

}  // namespace berth::runtime
