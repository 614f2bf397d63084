// SPDX-License-Identifier: Apache-2.0
// Defends: the folder of a host is made once, what a person has changed there stays, and nobody
// else may look into it.
#include "app/up/host_layout.h"

#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <utility>
#include <vector>

#include "app/up/local_host.h"
#include "base/folders.h"
#include "rt/asio/asio_loop.h"

namespace berth::app {
namespace {

class HostLayoutTest : public testing::Test {
 protected:
  HostLayoutTest() {
    std::string pattern = testing::TempDir() + "layout-XXXXXX";
    folder_ = mkdtemp(pattern.data());
    HostOptions options;
    options.folder = folder_ + "/host";
    options.run_folder = folder_ + "/run";
    options.name = "h1";
    options.acceleration = "tcg";
    options.gateway = "127.0.0.1:1";
    options.kubeconfig = folder_ + "/kubeconfig";
    layout_.emplace(options);
  }
  ~HostLayoutTest() override { std::filesystem::remove_all(folder_); }
  std::string folder_;
  std::optional<HostLayout> layout_;
};

TEST_F(HostLayoutTest, WhatAPersonChangedStays) {
  ASSERT_TRUE(layout_->Prepare().ok());
  const std::string classes = folder_ + "/host/machine-classes.yaml";
  std::ofstream(classes) << "classes: []\n";
  ASSERT_TRUE(layout_->Prepare().ok());
  std::string text;
  std::getline(std::ifstream(classes), text);
  EXPECT_EQ(text, "classes: []");
}

TEST_F(HostLayoutTest, FoldersAreForTheirOwner) {
  ASSERT_TRUE(layout_->Prepare().ok());
  for (const std::string name : {"/host", "/run", "/host/images", "/host/log"}) {
    struct stat seen{};
    ASSERT_EQ(stat((folder_ + name).c_str(), &seen), 0) << name;
    EXPECT_EQ(seen.st_mode & 0777U, 0700U) << name;
  }
}

TEST_F(HostLayoutTest, TheGuestsUserComesThroughFoldersThatAreMadeOnTheWay) {
  HostOptions options = layout_->options();
  options.folder = folder_ + "/srv/berth/host";
  const mode_t mask = umask(0077);
  EXPECT_EQ(HostLayout(options).Prepare(), OkStatus());
  umask(mask);
  const std::pair<std::string, mode_t> wanted[] = {
      {"/srv", 0711}, {"/srv/berth", 0711}, {"/srv/berth/host", 0700}};
  for (const auto& [name, mode] : wanted) {
    struct stat seen{};
    ASSERT_EQ(stat((folder_ + name).c_str(), &seen), 0) << name;
    EXPECT_EQ(seen.st_mode & 0777U, mode) << name;
  }
}

TEST_F(HostLayoutTest, WhatIsThereIsNotTouched) {
  ASSERT_TRUE(layout_->Prepare().ok());
  const std::string config = folder_ + "/host/config";
  std::filesystem::remove_all(config);
  std::filesystem::create_directory(folder_ + "/elsewhere");
  std::filesystem::create_directory_symlink(folder_ + "/elsewhere", config);
  ASSERT_TRUE(layout_->Prepare().ok());
  EXPECT_TRUE(std::filesystem::is_empty(folder_ + "/elsewhere"));
}

TEST_F(HostLayoutTest, AHostIsBesideItsDataFolder) {
  EXPECT_EQ(DefaultHostDir("/var/lib/berth"), "/var/lib/berth-host");
  EXPECT_EQ(DefaultHostDir("/srv/b/"), "/srv/b-host");
}

TEST_F(HostLayoutTest, SecretsAreInMemoryAndForEachHostElsewhere) {
  if (!IsInMemory("/dev/shm")) GTEST_SKIP() << "there is no memory to be a folder";
  const std::string none = DefaultRunDir("/srv/a-host", "");
  EXPECT_TRUE(IsInMemory(none)) << none;
  EXPECT_NE(none, DefaultRunDir("/srv/b-host", ""));
  if (geteuid() == 0) return;  // has nothing to do with users' folders
  const std::string ours = "/dev/shm/berth-" + std::to_string(geteuid()) + "/";
  EXPECT_TRUE(none.starts_with(ours)) << none;
  EXPECT_TRUE(DefaultRunDir("/srv/a-host", "/no/such").starts_with(ours));
  EXPECT_TRUE(DefaultRunDir("/srv/a-host", "/dev/shm").starts_with("/dev/shm/berth-"));
  if (!IsInMemory(folder_)) EXPECT_TRUE(DefaultRunDir("/srv/a-host", folder_).starts_with(ours));
}

TEST_F(HostLayoutTest, AFolderForSecretsLiesInOneOfOurs) {
  HostOptions options = layout_->options();
  options.run_folder = folder_ + "/berth-1000/run";
  ASSERT_EQ(HostLayout(options).Prepare(), OkStatus());
  struct stat seen{};
  ASSERT_EQ(stat((folder_ + "/berth-1000").c_str(), &seen), 0);
  EXPECT_EQ(seen.st_mode & 0777U, 0700U);
  EXPECT_EQ(HostLayout(options).Prepare(), OkStatus()) << "once more";
  // Somebody else may put things there, or has put a link there.
  ASSERT_EQ(chmod((folder_ + "/berth-1000").c_str(), 0777), 0);
  EXPECT_EQ(HostLayout(options).Prepare().reason(), Reason::kForbidden);
  std::filesystem::create_directory_symlink(folder_ + "/host", folder_ + "/berth-1001");
  options.run_folder = folder_ + "/berth-1001/run";
  EXPECT_EQ(HostLayout(options).Prepare().reason(), Reason::kForbidden);
}

TEST_F(HostLayoutTest, WhoLooksForAHostFindsItWhereUpPutsIt) {
  cli::Environment environment;
  environment.variables["BERTH_DATA_DIR"] = "/srv/b/";
  EXPECT_EQ(HostDirOf("", "", environment), "/srv/b-host");
  EXPECT_EQ(HostDirOf("", "/srv/data", environment), "/srv/data-host");
  environment.variables["BERTH_HOST_DIR"] = "/srv/host/";
  EXPECT_EQ(HostDirOf("", "/srv/data", environment), "/srv/host");
  EXPECT_EQ(HostDirOf("/srv/other", "", environment), "/srv/other");
  EXPECT_EQ(ImagesOf(folder_ + "/host"), layout_->images());
}

TEST_F(HostLayoutTest, ImagesMayBeThereBeforeTheHost) {
  ASSERT_TRUE(layout_->PrepareImages().ok());
  struct stat seen{};
  ASSERT_EQ(stat((folder_ + "/host/images").c_str(), &seen), 0);
  EXPECT_EQ(seen.st_mode & 0777U, 0700U);
  ASSERT_TRUE(layout_->Prepare().ok());
  EXPECT_TRUE(std::filesystem::exists(folder_ + "/host/config/libvirt/qemu.conf"));
}

TEST_F(HostLayoutTest, RuntimesAreToldWhatTheHostWasTold) {
  HostOptions options = layout_->options();
  options.image_words = {"--registry=registry.lan"};
  options.machine_words = {"--local-disk=1Gi"};
  options.volume_words = {"--reserve=5Gi"};
  const HostLayout told(options);
  const auto has = [](const PartCommand& command, const std::string& word) {
    return std::ranges::find(command.words, word) != command.words.end();
  };
  EXPECT_TRUE(has(told.MachineRuntime(), "--registry=registry.lan"));
  EXPECT_TRUE(has(told.VolumeRuntime(), "--registry=registry.lan"));
  EXPECT_TRUE(has(told.MachineRuntime(), "--local-disk=1Gi"));
  EXPECT_FALSE(has(told.VolumeRuntime(), "--local-disk=1Gi"));
  EXPECT_TRUE(has(told.VolumeRuntime(), "--reserve=5Gi"));
}

TEST_F(HostLayoutTest, WhatTheGuestsUserCannotReadIsNamed) {
  const std::string file = folder_ + "/ca.pem";
  EXPECT_NE(WhyUnreadable(file, std::nullopt), "");
  std::ofstream(file) << "text";
  EXPECT_EQ(WhyUnreadable(file, std::nullopt), "");
  const ProcessUser stranger{.uid = 4'000'000'000, .gid = 4'000'000'000};
  const std::string why = WhyUnreadable(file, stranger);
  EXPECT_NE(why.find("may not enter " + folder_), std::string::npos) << why;
}

TEST_F(HostLayoutTest, PartsMeetAtTheirSockets) {
  const auto has = [](const PartCommand& command, const std::string& word) {
    return std::ranges::find(command.words, word) != command.words.end();
  };
  const std::string run = folder_ + "/run";
  EXPECT_TRUE(has(layout_->MachineRuntime(), "--socket=" + run + "/machine.sock"));
  EXPECT_TRUE(has(layout_->Poollet(), "--machine-runtime=unix:" + run + "/machine.sock"));
  EXPECT_TRUE(has(layout_->VolumeRuntime(), "--socket=" + run + "/volume.sock"));
  EXPECT_TRUE(has(layout_->Poollet(), "--volume-runtime=unix:" + run + "/volume.sock"));
  EXPECT_TRUE(has(layout_->Poollet(), "--volume-pool=h1-disks"));
}

TEST_F(HostLayoutTest, LogsOfLibvirtAreWhereTheRuntimeLooksForThem) {
  const PartCommand libvirtd = layout_->Libvirtd();
  const std::string cache = "XDG_CACHE_HOME=" + folder_ + "/host/cache";
  EXPECT_NE(std::ranges::find(libvirtd.variables, cache), libvirtd.variables.end());
  const PartCommand runtime = layout_->MachineRuntime();
  const std::string logs = "--libvirt-logs=" + folder_ + "/host/cache/libvirt/qemu/log";
  EXPECT_NE(std::ranges::find(runtime.words, logs), runtime.words.end());
}

TEST_F(HostLayoutTest, AGuestThatLibvirtdWasKilledWithHasNoStatus) {
  const std::string states = folder_ + "/run/libvirt/qemu/run";
  std::filesystem::create_directories(states);
  const auto write = [&states](const std::string& name, const std::string& pid) {
    std::ofstream(states + "/" + name)
        << "<!--\nTHIS IS AN AUTO-GENERATED FILE\n-->\n\n"
        << "<domstatus state='paused' reason='starting up' pid='" << pid << "'>\n</domstatus>\n";
  };
  write("never ran.xml", "0");
  write("runs.xml", "4711");
  PartCommand libvirtd = layout_->Libvirtd();
  ASSERT_EQ(libvirtd.words.back(), "/usr/sbin/libvirtd");
  libvirtd.words.back() = "/bin/pwd";  // it is the last that happens
  std::filesystem::create_directories(folder_ + "/host/log");
  rt::AsioLoop loop;
  Part part(loop, libvirtd);
  EXPECT_EQ(rt::RunTask(loop, part.RunOnce()), OkStatus());
  EXPECT_FALSE(std::filesystem::exists(states + "/never ran.xml"));
  EXPECT_TRUE(std::filesystem::exists(states + "/runs.xml"));
  EXPECT_GT(std::filesystem::file_size(libvirtd.log), 0U);
  // The first time there is no folder.
  std::filesystem::remove_all(folder_ + "/run");
  EXPECT_EQ(rt::RunTask(loop, part.RunOnce()), OkStatus());
}

TEST_F(HostLayoutTest, AGuestThatIsNoMoreHasNoFolderOfSockets) {
  const std::string states = folder_ + "/run/libvirt/qemu/run";
  const std::string sockets = folder_ + "/host/config/libvirt/qemu/lib/";
  std::filesystem::create_directories(states);
  std::filesystem::create_directories(folder_ + "/host/log");
  for (const std::string name : {"domain-1-berth-m-gone",
                                 "domain-11-berth-m-runs",
                                 "domain-2-berth-m-alone",
                                 "domain-3-x"}) {
    std::filesystem::create_directories(sockets + name);
    std::ofstream(sockets + name + "/monitor.sock") << "a socket";
  }
  std::ofstream(states + "/berth-m-runs.xml")
      << "<domstatus state='running' pid='4711'>\n<libDir path='" << sockets
      << "domain-11-berth-m-runs'/>\n</domstatus>\n";
  // Stands for a guest whose status is elsewhere.
  std::string program = "/bin/sleep";
  std::string key = sockets + "domain-2-berth-m-alone/key";
  std::string forever = "infinity";
  const std::vector<char*> words = {key.data(), forever.data(), nullptr};
  pid_t guest = 0;
  ASSERT_EQ(posix_spawn(&guest, program.data(), nullptr, nullptr, words.data(), environ), 0);
  rt::AsioLoop loop;
  PartCommand libvirtd = layout_->Libvirtd();
  libvirtd.words.back() = "/bin/pwd";
  Part part(loop, libvirtd);
  EXPECT_EQ(rt::RunTask(loop, part.RunOnce()), OkStatus());
  EXPECT_FALSE(std::filesystem::exists(sockets + "domain-1-berth-m-gone"));
  EXPECT_TRUE(std::filesystem::exists(sockets + "domain-11-berth-m-runs/monitor.sock"));
  EXPECT_TRUE(std::filesystem::exists(sockets + "domain-2-berth-m-alone/monitor.sock"));
  EXPECT_TRUE(std::filesystem::exists(sockets + "domain-3-x/monitor.sock"));
  kill(guest, SIGKILL);
  EXPECT_EQ(waitpid(guest, nullptr, 0), guest);
  EXPECT_EQ(rt::RunTask(loop, part.RunOnce()), OkStatus());
  EXPECT_FALSE(std::filesystem::exists(sockets + "domain-2-berth-m-alone"));
}

TEST_F(HostLayoutTest, AFolderThatTheGuestsCannotEnterIsNamed) {
  const ProcessUser stranger{.uid = 4'000'000'000, .gid = 4'000'000'000};
  const std::string inside = folder_ + "/host";
  const std::string missing = MissingForGuests(inside, stranger);
  EXPECT_NE(missing, "");
  if (MissingForGuests("/", stranger).empty()) {  // QEMU and libvirt are here
    EXPECT_NE(missing.find("may not enter " + folder_), std::string::npos) << missing;
  }
}

}  // namespace
}  // namespace berth::app
