// SPDX-License-Identifier: Apache-2.0
// Defends: a libvirt that takes connections and says nothing is the trouble of those who want
// something of it, and of nobody else.
#include "app/runtime/libvirt_copies.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "rt/asio/loop_thread.h"
#include "runtime/volume/fake_disks.h"

namespace berth::app {
namespace {

// As a libvirtd that was stopped: the kernel takes connections for it.
class SilentLibvirt {
 public:
  SilentLibvirt() {
    std::string pattern = std::filesystem::temp_directory_path() / "berth-silent-XXXXXX";
    CHECK(mkdtemp(pattern.data()) != nullptr);
    folder_ = pattern;
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    CHECK(socket_path().size() < sizeof(address.sun_path));
    socket_path().copy(address.sun_path, socket_path().size());
    fd_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(bind(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0);
    CHECK(listen(fd_, 8) == 0);
  }
  ~SilentLibvirt() {
    Die();
    std::filesystem::remove_all(folder_);
  }
  SilentLibvirt(const SilentLibvirt&) = delete;
  SilentLibvirt& operator=(const SilentLibvirt&) = delete;

  // Whoever waits for it hears of that.
  void Die() {
    if (fd_ >= 0) close(fd_);
    fd_ = -1;
  }
  std::string uri() const { return "qemu+unix:///session?socket=" + socket_path(); }

 private:
  std::string socket_path() const { return folder_ + "/libvirt-sock"; }

  std::string folder_;
  int fd_ = -1;
};

rt::Task<Status> Copy(LibvirtCopies* copies) {
  runtime::DiskFile source{.path = "/disks/v-1", .format = runtime::DiskFormat::kRaw};
  runtime::DiskFile target{.path = "/disks/s-1", .format = runtime::DiskFormat::kRaw};
  co_return co_await copies->disks().Copy(std::move(source), std::move(target));
}

TEST(LibvirtCopies, ASilentLibvirtRefusesEachCopyAndEndsNobody) {
  SilentLibvirt silent;
  rt::LoopThread loop("loop");
  runtime::FakeDisks disks;
  runtime::LibvirtHypervisor::Options libvirt;
  libvirt.uri = silent.uri();
  libvirt.call_limit = Duration::Millis(200);
  LibvirtCopies copies(loop.loop(), disks, libvirt, "/disks");
  // One after the other: what the first has begun is the second's.
  for (int i = 0; i < 3; ++i) {
    const Status refused = loop.Await(Copy(&copies));
    EXPECT_EQ(refused.reason(), Reason::kUnavailable);
    EXPECT_EQ(refused.message(),
              "libvirt at " + silent.uri() +
                  " is not connected: it took the connection and says nothing");
  }
  // A thread waits for it, and who wants to end is not kept by that.
  EXPECT_EQ(loop.Await(copies.Stop()).reason(), Reason::kTimeout);
  silent.Die();
  EXPECT_EQ(loop.Await(copies.Stop()), OkStatus());
}

}  // namespace
}  // namespace berth::app
