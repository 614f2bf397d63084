// SPDX-License-Identifier: Apache-2.0
// What every Hypervisor promises, shown on the fake and on real guests of a libvirtd of our own;
// and what only libvirt can do: hang, die and come back.
#include <grp.h>
#include <gtest/gtest.h>
#include <pwd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <memory>

#include "base/mutex.h"
#include "runtime/machine/domain_text.h"
#include "runtime/machine/fake_hypervisor.h"
#include "runtime/machine/kvm_probe.h"
#include "runtime/machine/libvirt_hypervisor.h"
#include "runtime/machine/private_libvirt.h"

namespace berth::runtime {
namespace {

constexpr int64_t kMiB = 1 << 20;
using Kind = DomainEvent::Kind;

class Events {
 public:
  void Add(const DomainEvent& event) {
    MutexLock lock(mutex_);
    events_.push_back(event);
  }
  bool Has(Kind kind, const std::string& name, OffReason reason = OffReason::kUnknown) {
    MutexLock lock(mutex_);
    return std::ranges::any_of(events_, [&](const DomainEvent& event) {
      return event.kind == kind && event.name == name && event.reason == reason;
    });
  }

 private:
  Mutex mutex_;
  std::vector<DomainEvent> events_ GUARDED_BY(mutex_);
};

class Bench {
 public:
  virtual ~Bench() = default;
  virtual Hypervisor& hypervisor() = 0;
  virtual DomainPlan Plan(const std::string& name) = 0;
  virtual DomainDisk NewDisk(const std::string& target) = 0;
  virtual void AwaitBoot(const std::string& name) = 0;
  virtual void ShutDownFromInside(const std::string& name) = 0;
  virtual void Kill(const std::string& name) = 0;
  // What the guest sees of its disks; 0: none.
  virtual int64_t BytesInside(const std::string& name, const std::string& target) = 0;

  template <class T>
  T Await(rt::Task<T> task) {
    return loop.Await(std::move(task));
  }
  Domain Get(const std::string& name) {
    const auto domains = Await(hypervisor().List());
    CHECK(domains.ok()) << domains.status();
    for (const Domain& domain : *domains) {
      if (domain.name == name) return domain;
    }
    return {};
  }
  void AwaitEvent(Kind kind, const std::string& name, OffReason reason = OffReason::kUnknown) {
    PrivateLibvirt::Wait([&] { return events.Has(kind, name, reason); }, "an event of " + name);
  }
  void Listen() {
    loop.loop().Post("listen", [this] {
      hypervisor().Listen([this](const DomainEvent& event) { events.Add(event); });
    });
  }

  rt::LoopThread loop{"bench"};
  Events events;
};

class FakeBench final : public Bench {
 public:
  FakeBench() { Listen(); }
  Hypervisor& hypervisor() override { return fake_; }
  DomainPlan Plan(const std::string& name) override {
    DomainPlan plan;
    plan.name = name;
    plan.uuid = UuidOf(name);
    plan.memory_bytes = kMiB;
    plan.console_socket = "/console";
    plan.record = "record of " + name;
    return plan;
  }
  DomainDisk NewDisk(const std::string& target) override {
    DomainDisk disk;
    disk.target = target;
    disk.serial = target;
    disk.file = {.path = "/" + target, .format = DiskFormat::kRaw};
    return disk;
  }
  void AwaitBoot(const std::string&) override {}
  void ShutDownFromInside(const std::string& name) override { End(name, OffReason::kShutDown); }
  void Kill(const std::string& name) override { End(name, OffReason::kFailed); }
  int64_t BytesInside(const std::string& name, const std::string& target) override {
    const FakeHypervisor::Guest& guest = fake_.guests.at(name);
    if (!guest.devices.contains(target)) return 0;
    const auto size = guest.sizes.find(target);
    return size == guest.sizes.end() ? kMiB : size->second;
  }

 private:
  void End(const std::string& name, OffReason reason) { Await(Ending(name, reason)).ok(); }
  rt::Task<Status> Ending(std::string name, OffReason reason) {
    fake_.End(name, reason);
    co_return OkStatus();
  }
  FakeHypervisor fake_{loop.loop()};
};

class LibvirtBench final : public Bench {
 public:
  explicit LibvirtBench(Duration call_limit) {
    options.uri = libvirt.uri();
    options.call_limit = call_limit;
    auto started = Await(LibvirtHypervisor::Start(loop.loop(), options));
    CHECK(started.ok()) << started.status();
    hypervisor_ = *std::move(started);
    Listen();
  }
  ~LibvirtBench() override { CHECK(Await(hypervisor_->Stop()).ok()); }
  LibvirtBench(const LibvirtBench&) = delete;
  LibvirtBench& operator=(const LibvirtBench&) = delete;

  Hypervisor& hypervisor() override { return *hypervisor_; }
  DomainPlan Plan(const std::string& name) override { return libvirt.Plan(name); }
  DomainDisk NewDisk(const std::string& target) override {
    DomainDisk disk;
    disk.target = target;
    disk.serial = "serial-" + target;
    disk.file = {.path = libvirt.Sub("guests/" + target + ".raw"), .format = DiskFormat::kRaw};
    std::ofstream(disk.file.path).put('\0');
    std::filesystem::resize_file(disk.file.path, kMiB);
    PrivateLibvirt::Give(disk.file.path);
    return disk;
  }
  void AwaitBoot(const std::string& name) override { libvirt.AwaitConsole(name, "guest is up"); }
  void ShutDownFromInside(const std::string& name) override { libvirt.Type(name, "off"); }
  void Kill(const std::string& name) override {
    const auto pids = libvirt.Guests(Plan(name).uuid);
    CHECK(pids.size() == 1U);
    kill(pids[0], SIGKILL);
  }
  int64_t BytesInside(const std::string& name, const std::string& target) override {
    const size_t seen = libvirt.Console(name).size();
    libvirt.Type(name, "disks");
    std::string told;
    PrivateLibvirt::Wait(
        [&] {
          told = libvirt.Console(name).substr(seen);
          return told.find("that is all") != std::string::npos;
        },
        "the guest tells its disks");
    const std::string begin = "disk " + target + " ";
    const size_t at = told.find(begin);
    if (at == std::string::npos) return 0;
    const size_t number = at + begin.size();
    return ParseInt(told.substr(number, told.find(' ', number) - number)).value_or(0) *
           kSectorBytes;
  }

  PrivateLibvirt libvirt;
  LibvirtHypervisor::Options options;

 private:
  std::unique_ptr<LibvirtHypervisor> hypervisor_;
};

// Invariants of definitions: nothing here starts.
void KeepsWhatIsDefined(Bench& bench) {
  Hypervisor& hypervisor = bench.hypervisor();
  DomainPlan plan = bench.Plan("kept");
  ASSERT_EQ(bench.Await(hypervisor.Define(DomainXml(plan))), OkStatus());
  EXPECT_EQ(bench.Get("kept").record, "record of kept");
  EXPECT_EQ(bench.Get("kept").uuid, plan.uuid);
  EXPECT_EQ(bench.Get("kept").state, GuestState::kOff);
  plan.record = std::string("\0\xff another", 10);
  plan.title = "<&\"' \x1b";
  ASSERT_EQ(bench.Await(hypervisor.Define(DomainXml(plan))), OkStatus());
  EXPECT_EQ(bench.Get("kept").record, plan.record);
  EXPECT_EQ(bench.Await(hypervisor.Define("<domain>")).reason(), Reason::kBadRequest);
  EXPECT_EQ(bench.Await(hypervisor.Undefine("kept")), OkStatus());
  EXPECT_EQ(bench.Await(hypervisor.Undefine("kept")), OkStatus());
  EXPECT_EQ(bench.Get("kept").name, "");
}

void DoesNotKnowUnknownNames(Bench& bench) {
  Hypervisor& hypervisor = bench.hypervisor();
  const Status answers[] = {bench.Await(hypervisor.Start("none", StartMode::kRun)),
                            bench.Await(hypervisor.Resume("none")),
                            bench.Await(hypervisor.PressPower("none")),
                            bench.Await(hypervisor.Destroy("none")),
                            bench.Await(hypervisor.AttachDevice("none", "<disk/>")),
                            bench.Await(hypervisor.DetachDevice("none", "<disk/>")),
                            bench.Await(hypervisor.LiveDevices("none")).status(),
                            bench.Await(hypervisor.ResizeDisk("none", "vda", 1))};
  for (const Status& answer : answers) EXPECT_EQ(answer.reason(), Reason::kNotFound) << answer;
}

void HoldsAGuestUntilItIsResumed(Bench& bench) {
  Hypervisor& hypervisor = bench.hypervisor();
  ASSERT_EQ(bench.Await(hypervisor.Define(DomainXml(bench.Plan("held")))), OkStatus());
  ASSERT_EQ(bench.Await(hypervisor.Start("held", StartMode::kHeld)), OkStatus());
  EXPECT_EQ(bench.Get("held").state, GuestState::kPaused);
  EXPECT_EQ(bench.Get("held").pause_reason, PauseReason::kTold);
  EXPECT_EQ(bench.Await(hypervisor.Start("held", StartMode::kRun)), OkStatus());
  EXPECT_EQ(bench.Get("held").state, GuestState::kPaused) << "a second start changes nothing";
  EXPECT_EQ(bench.Await(hypervisor.Undefine("held")).reason(), Reason::kConflict);
  ASSERT_EQ(bench.Await(hypervisor.Resume("held")), OkStatus());
  EXPECT_EQ(bench.Get("held").state, GuestState::kRunning);
  EXPECT_EQ(bench.Await(hypervisor.Resume("held")), OkStatus()) << "it runs";
  bench.AwaitEvent(Kind::kResumed, "held");
  ASSERT_EQ(bench.Await(hypervisor.Destroy("held")), OkStatus());
  bench.AwaitEvent(Kind::kStopped, "held", OffReason::kDestroyed);
  EXPECT_EQ(bench.Get("held").state, GuestState::kOff);
  EXPECT_EQ(bench.Get("held").off_reason, OffReason::kDestroyed);
  EXPECT_EQ(bench.Await(hypervisor.Destroy("held")), OkStatus());
  EXPECT_EQ(bench.Await(hypervisor.LiveDevices("held")).status().reason(), Reason::kConflict);
  EXPECT_EQ(bench.Await(hypervisor.Undefine("held")), OkStatus());
}

void TellsOfAGuestThatIsKilled(Bench& bench) {
  Hypervisor& hypervisor = bench.hypervisor();
  ASSERT_EQ(bench.Await(hypervisor.Define(DomainXml(bench.Plan("victim")))), OkStatus());
  ASSERT_EQ(bench.Await(hypervisor.Start("victim", StartMode::kRun)), OkStatus());
  bench.AwaitEvent(Kind::kStarted, "victim");
  bench.Kill("victim");
  bench.AwaitEvent(Kind::kStopped, "victim", OffReason::kFailed);
  EXPECT_EQ(bench.Get("victim").off_reason, OffReason::kFailed);
  EXPECT_EQ(bench.Await(hypervisor.Undefine("victim")), OkStatus());
}

void ChangesTheDisksOfARunningGuest(Bench& bench) {
  Hypervisor& hypervisor = bench.hypervisor();
  const std::string name = "lively";
  DomainPlan plan = bench.Plan(name);
  DomainDisk first = bench.NewDisk("vda");
  first.tps = 100 * kMiB;
  first.iops = 1000;
  plan.disks = {first};
  ASSERT_EQ(bench.Await(hypervisor.Define(DomainXml(plan))), OkStatus());
  ASSERT_EQ(bench.Await(hypervisor.Start(name, StartMode::kRun)), OkStatus());
  bench.AwaitBoot(name);
  EXPECT_EQ(bench.BytesInside(name, "vda"), kMiB);

  const DomainDisk second = bench.NewDisk("vdb");
  ASSERT_EQ(bench.Await(hypervisor.AttachDevice(name, DiskXml(second))), OkStatus());
  bench.AwaitEvent(Kind::kDeviceAdded, name);
  const DeviceElements live = *bench.Await(hypervisor.LiveDevices(name));
  ASSERT_TRUE(live.contains("vdb"));
  EXPECT_TRUE(IsOwnDevice(live.at("vdb"))) << live.at("vdb");
  EXPECT_EQ(DeviceOfFile(live.at("vdb"), second.file.path), "vdb") << live.at("vdb");
  PrivateLibvirt::Wait([&] { return bench.BytesInside(name, "vdb") == kMiB; }, "the guest sees it");
  ASSERT_EQ(bench.Await(hypervisor.ResizeDisk(name, "vdb", 4 * kMiB)), OkStatus());
  PrivateLibvirt::Wait([&] { return bench.BytesInside(name, "vdb") == 4 * kMiB; }, "it grows");
  EXPECT_EQ(bench.Await(hypervisor.ResizeDisk(name, "vdx", kMiB)).reason(), Reason::kBadRequest);

  // As it looks now is as good as what it was attached with.
  ASSERT_EQ(bench.Await(hypervisor.DetachDevice(name, live.at("vdb"))), OkStatus());
  PrivateLibvirt::Wait([&] { return !bench.Await(hypervisor.LiveDevices(name))->contains("vdb"); },
                       "the guest lets go of it");
  bench.AwaitEvent(Kind::kDeviceRemoved, name);
  EXPECT_EQ(bench.BytesInside(name, "vdb"), 0);
  EXPECT_EQ(bench.BytesInside(name, "vda"), kMiB);

  const auto statistics = bench.Await(hypervisor.Statistics());
  ASSERT_TRUE(statistics.ok()) << statistics.status();
  const auto of_it = std::ranges::find(*statistics, name, &DomainStatistics::name);
  ASSERT_NE(of_it, statistics->end());
  EXPECT_GT(of_it->cpu_time, Duration());

  bench.ShutDownFromInside(name);
  bench.AwaitEvent(Kind::kStopped, name, OffReason::kShutDown);
  EXPECT_EQ(bench.Get(name).off_reason, OffReason::kShutDown);
  EXPECT_EQ(bench.Await(hypervisor.Undefine(name)), OkStatus());
}

void KeepsSecrets(Bench& bench) {
  Hypervisor& hypervisor = bench.hypervisor();
  const std::string uuid = UuidOf("key");
  EXPECT_EQ(bench.Await(hypervisor.SetSecret(uuid, "key of <disk>", "a")), OkStatus());
  EXPECT_EQ(bench.Await(hypervisor.SetSecret(uuid, "key of <disk>", "b")), OkStatus());
  EXPECT_EQ(bench.Await(hypervisor.RemoveSecret(uuid)), OkStatus());
  EXPECT_EQ(bench.Await(hypervisor.RemoveSecret(uuid)), OkStatus());
}

void RunContract(Bench& bench) {
  KeepsWhatIsDefined(bench);
  DoesNotKnowUnknownNames(bench);
  HoldsAGuestUntilItIsResumed(bench);
  TellsOfAGuestThatIsKilled(bench);
  ChangesTheDisksOfARunningGuest(bench);
  KeepsSecrets(bench);
  EXPECT_EQ(bench.hypervisor().Trouble(), "");
}

TEST(Hypervisor, TheFakeKeepsTheContract) {
  FakeBench bench;
  RunContract(bench);
}

// One daemon for everything: probing QEMU takes it seconds.
TEST(Hypervisor, LibvirtKeepsTheContractWithRealGuests) {
  LibvirtBench bench(Duration::Minutes(1));
  RunContract(bench);
  EXPECT_NE(bench.Await(bench.hypervisor().Version())->find("QEMU "), std::string::npos);
}

TEST(Hypervisor, LibvirtMayHangAndDieWithoutAnybodyElse) {
  // Shorter than the time after which the connection is given up.
  LibvirtBench bench(Duration::Seconds(10));
  Hypervisor& hypervisor = bench.hypervisor();
  ASSERT_EQ(bench.Await(hypervisor.Define(DomainXml(bench.Plan("guest")))), OkStatus());
  ASSERT_EQ(bench.Await(hypervisor.Start("guest", StartMode::kRun)), OkStatus());
  const auto pids = bench.libvirt.Guests(bench.Plan("guest").uuid);
  ASSERT_EQ(pids.size(), 1U);
  // P9: a guest is nobody, and may call little of the kernel.
  const std::string words = ReadText("/proc/" + std::to_string(pids[0]) + "/cmdline");
  EXPECT_NE(words.find(std::string("-sandbox\0on", 11)), std::string::npos);
  const std::string status = ReadText("/proc/" + std::to_string(pids[0]) + "/status");
  EXPECT_EQ(status.find("Uid:\t0"), std::string::npos);
  EXPECT_NE(status.find("Seccomp:\t2"), std::string::npos) << status;

  bench.libvirt.StopDaemon();
  bench.AwaitEvent(Kind::kLost, "");
  EXPECT_EQ(bench.Await(hypervisor.List()).status().reason(), Reason::kUnavailable);
  EXPECT_NE(hypervisor.Trouble().find("is not connected"), std::string::npos);
  bench.libvirt.StartDaemon();
  bench.AwaitEvent(Kind::kConnected, "");
  EXPECT_EQ(hypervisor.Trouble(), "");
  EXPECT_EQ(bench.Get("guest").state, GuestState::kRunning) << "it never noticed";

  kill(bench.libvirt.daemon(), SIGSTOP);
  EXPECT_EQ(bench.Await(hypervisor.List()).status().reason(), Reason::kTimeout);
  kill(bench.libvirt.daemon(), SIGCONT);
  PrivateLibvirt::Wait([&] { return bench.Await(hypervisor.List()).ok(); }, "it answers again");
  ASSERT_EQ(bench.Await(hypervisor.Destroy("guest")), OkStatus());
}

TEST(Hypervisor, LibvirtThatHangsAtTheStartIsConnectedWhenItGoesOn) {
  PrivateLibvirt libvirt;
  ASSERT_GT(libvirt.daemon(), 0);
  rt::LoopThread loop("loop");
  LibvirtHypervisor::Options options;
  options.uri = libvirt.uri();
  options.call_limit = Duration::Seconds(2);
  kill(libvirt.daemon(), SIGSTOP);
  auto started = loop.Await(LibvirtHypervisor::Start(loop.loop(), options));
  ASSERT_TRUE(started.ok()) << started.status();
  LibvirtHypervisor& hypervisor = **started;
  Events events;
  loop.loop().Post("listen", [&] {
    hypervisor.Listen([&events](const DomainEvent& event) { events.Add(event); });
  });
  const Status refused = loop.Await(hypervisor.List()).status();
  EXPECT_EQ(refused.reason(), Reason::kUnavailable);
  EXPECT_EQ(
      refused.message(),
      "libvirt at " + options.uri + " is not connected: it took the connection and says nothing");
  kill(libvirt.daemon(), SIGCONT);
  PrivateLibvirt::Wait([&] { return events.Has(Kind::kConnected, ""); }, "it is connected");
  PrivateLibvirt::Wait([&] { return loop.Await(hypervisor.List()).ok(); }, "it answers");
  EXPECT_EQ(loop.Await(hypervisor.Stop()), OkStatus());
}

// Ends as a probe guest that runs if it may read its disk, and says who it is.
std::string WriteNosyQemu(const std::string& path) {
  std::ofstream(path) << "#!/bin/sh\n"
                         "for word; do disk=${word#*file=}; done\n"
                         "head -c 512 \"$disk\" >/dev/null || exit 3\n"
                         "echo \"$(id -u) $(id -G)\" >&2\n"
                         "exit 4\n";
  std::filesystem::permissions(path, std::filesystem::perms(0755));
  return path;
}

TEST(KvmProbe, IsTheUserThatGuestsAreInAllOfItsGroups) {
  if (geteuid() != 0) GTEST_SKIP() << "only root becomes another user";
  rt::LoopThread loop("loop");
  rt::ThreadPool programs({.threads = 1, .queue_max = 4, .name = "programs"});
  rt::ChildProcesses processes(programs);
  const std::string base =
      std::filesystem::temp_directory_path() / ("berth-probe-" + std::to_string(getpid()));
  Probe probe;
  probe.qemu = WriteNosyQemu(base + ".sh");
  probe.floppy = base + ".img";
  for (const char* const user : {"nobody", "libvirt-qemu"}) {
    const passwd* const known = getpwnam(user);
    if (known == nullptr) continue;
    std::array<gid_t, 64> groups{};
    int count = groups.size();
    ASSERT_GT(getgrouplist(user, known->pw_gid, groups.data(), &count), 0);
    probe.user = user;
    const std::string said(loop.Await(RunProbe(&processes, probe)).message());
    EXPECT_TRUE(said.contains(": " + std::to_string(known->pw_uid) + " ")) << said;
    for (int i = 0; i < count; ++i) {
      EXPECT_TRUE((said + " ").contains(" " + std::to_string(groups.at(i)) + " ")) << said;
    }
  }
  probe.user = "nobody-of-that-name";
  EXPECT_EQ(loop.Await(RunProbe(&processes, probe)).reason(), Reason::kNotFound);
  std::filesystem::remove(probe.floppy);
  std::filesystem::remove(probe.qemu);
}

TEST(KvmProbe, TellsAGuestThatRanFromOneThatDidNot) {
  rt::LoopThread loop("loop");
  rt::ThreadPool programs({.threads = 1, .queue_max = 4, .name = "programs"});
  rt::ChildProcesses processes(programs);
  Probe probe;
  probe.floppy =
      std::filesystem::temp_directory_path() / ("berth-probe-" + std::to_string(getpid()) + ".img");
  probe.acceleration = Acceleration::kTcg;  // what every host can
  probe.limit = Duration::Minutes(1);
  EXPECT_EQ(loop.Await(RunProbe(&processes, probe)), OkStatus());
  Probe hangs = probe;
  hangs.limit = Duration::Millis(1);
  EXPECT_EQ(loop.Await(RunProbe(&processes, hangs)).reason(), Reason::kTimeout);
  Probe fails = probe;
  fails.qemu = "/bin/false";
  const Status failed = loop.Await(RunProbe(&processes, fails));
  EXPECT_EQ(failed.reason(), Reason::kUnavailable) << failed;
  std::filesystem::remove(probe.floppy);
}

}  // namespace
}  // namespace berth::runtime
