// SPDX-License-Identifier: Apache-2.0
// Defends: the folder of a host is made once, what a person has changed there stays, and nobody
// else may look into it.
#include "app/up/host_layout.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <utility>
#include <vector>

#include "app/up/local_host.h"
#include "base/folders.h"

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

TEST_F(HostLayoutTest, LibvirtdIsToldWhereItKeepsItsGuests) {
  const PartCommand libvirtd = layout_->Libvirtd();
  const std::vector<std::string> wanted = {
      "",
      "libvirtd",
      "--states=" + folder_ + "/run/libvirt/qemu/run",
      "--sockets=" + folder_ + "/host/config/libvirt/qemu/lib"};
  EXPECT_EQ(libvirtd.words, wanted);
  for (const std::string& folder :
       {"XDG_RUNTIME_DIR=" + folder_ + "/run", "XDG_CONFIG_HOME=" + folder_ + "/run/c"}) {
    EXPECT_NE(std::ranges::find(libvirtd.variables, folder), libvirtd.variables.end()) << folder;
  }
}

TEST_F(HostLayoutTest, AFolderThatTheGuestsCannotEnterIsNamed) {
  const ProcessUser stranger{.uid = 4'000'000'000, .gid = 4'000'000'000};
  const std::string inside = folder_ + "/host";
  const std::string missing = MissingForGuests(inside, "/run/x", stranger);
  EXPECT_NE(missing, "");
  if (MissingForGuests("/", "/run/x", stranger).empty()) {  // QEMU and libvirt are here
    EXPECT_NE(missing.find("may not enter " + folder_), std::string::npos) << missing;
  }
}

TEST_F(HostLayoutTest, AHostMayBeDeepDownAndItsSocketsMayNot) {
  const std::string deep = "/srv/people/administrator/.local/share/berth-host";
  // Guests that run already are found where they were.
  const std::string hash = RunDirIn("", deep).substr(std::string("/berth-").size());
  EXPECT_EQ(RunDirIn("/dev/shm/berth-0", deep), "/dev/shm/berth-0/berth-" + hash);
  EXPECT_EQ(RunDirIn("/run/user/100000", deep), "/run/user/100000/berth-" + hash);
  EXPECT_EQ(RunDirIn("/run/user/4294967295", deep), "/run/user/4294967295/" + hash);
  EXPECT_LE(RunDirIn("/dev/shm/berth-4294967295", deep).size(), kRunFolderBytesMax);
  const std::string run = RunDirIn("/run/user/4294967295", deep);
  if (!MissingForGuests("/", "/run/x", {}).empty()) GTEST_SKIP() << "no QEMU or libvirt is here";
  EXPECT_EQ(MissingForGuests(deep, run, {}), "");
  const std::string too_deep = "/run/user/100000/" + std::string(26, 'x');
  EXPECT_EQ(MissingForGuests(deep, too_deep, {}),
            too_deep + " has 43 characters: libvirt's sockets in it allow 42");
  ASSERT_EQ(layout_->Prepare(), OkStatus());
  EXPECT_EQ(std::filesystem::read_symlink(layout_->config_link()), folder_ + "/host/config");
}

}  // namespace
}  // namespace berth::app
