// SPDX-License-Identifier: Apache-2.0
// Defends: a libvirtd that starts does not stumble over what one that was killed has left, and what
// guests use stays.
#include "app/up/libvirtd_command.h"

#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "app/up/part.h"
#include "rt/asio/asio_loop.h"

namespace berth::app {
namespace {

class LibvirtdLineTest : public testing::Test {
 protected:
  LibvirtdLineTest() {
    std::string pattern = testing::TempDir() + "libvirtd-XXXXXX";
    folder_ = mkdtemp(pattern.data());
    folders_ = {.states = folder_ + "/states", .sockets = folder_ + "/sockets"};
    std::filesystem::create_directories(folders_.states);
  }
  ~LibvirtdLineTest() override { std::filesystem::remove_all(folder_); }

  // Up to libvirtd, in whose place another program says that it was started.
  void Start() {
    PartCommand command;
    command.name = "libvirtd";
    command.words = LibvirtdLine(folders_);
    ASSERT_EQ(command.words.back(), "/usr/sbin/libvirtd");
    command.words.back() = "/bin/pwd";
    command.log = folder_ + "/log";
    std::filesystem::remove(command.log);
    rt::AsioLoop loop;
    Part part(loop, command);
    EXPECT_EQ(rt::RunTask(loop, part.RunOnce()), OkStatus());
    EXPECT_GT(std::filesystem::file_size(command.log), 0U);
  }

  std::string folder_;
  LibvirtdFolders folders_;
};

TEST_F(LibvirtdLineTest, AGuestThatLibvirtdWasKilledWithHasNoStatus) {
  const auto write = [this](const std::string& name, const std::string& pid) {
    std::ofstream(folders_.states + "/" + name)
        << "<!--\nTHIS IS AN AUTO-GENERATED FILE\n-->\n\n"
        << "<domstatus state='paused' reason='starting up' pid='" << pid << "'>\n</domstatus>\n";
  };
  write("never ran.xml", "0");
  write("runs.xml", "4711");
  Start();
  EXPECT_FALSE(std::filesystem::exists(folders_.states + "/never ran.xml"));
  EXPECT_TRUE(std::filesystem::exists(folders_.states + "/runs.xml"));
}

TEST_F(LibvirtdLineTest, TheFirstTimeThereIsNoFolder) {
  std::filesystem::remove_all(folders_.states);
  Start();
}

TEST_F(LibvirtdLineTest, AGuestThatIsNoMoreHasNoFolderOfSockets) {
  const std::string sockets = folders_.sockets + "/";
  for (const std::string name : {"domain-1-berth-m-gone",
                                 "domain-11-berth-m-runs",
                                 "domain-2-berth-m-alone",
                                 "domain-3-x"}) {
    std::filesystem::create_directories(sockets + name);
    std::ofstream(sockets + name + "/monitor.sock") << "a socket";
  }
  std::ofstream(folders_.states + "/berth-m-runs.xml")
      << "<domstatus state='running' pid='4711'>\n<libDir path='" << sockets
      << "domain-11-berth-m-runs'/>\n</domstatus>\n";
  // Stands for a guest whose status is elsewhere.
  std::string program = "/bin/sleep";
  std::string key = sockets + "domain-2-berth-m-alone/key";
  std::string forever = "infinity";
  const std::vector<char*> words = {key.data(), forever.data(), nullptr};
  pid_t guest = 0;
  ASSERT_EQ(posix_spawn(&guest, program.data(), nullptr, nullptr, words.data(), environ), 0);
  Start();
  EXPECT_FALSE(std::filesystem::exists(sockets + "domain-1-berth-m-gone"));
  EXPECT_TRUE(std::filesystem::exists(sockets + "domain-11-berth-m-runs/monitor.sock"));
  EXPECT_TRUE(std::filesystem::exists(sockets + "domain-2-berth-m-alone/monitor.sock"));
  EXPECT_TRUE(std::filesystem::exists(sockets + "domain-3-x/monitor.sock"));
  kill(guest, SIGKILL);
  EXPECT_EQ(waitpid(guest, nullptr, 0), guest);
  Start();
  EXPECT_FALSE(std::filesystem::exists(sockets + "domain-2-berth-m-alone"));
}

}  // namespace
}  // namespace berth::app
