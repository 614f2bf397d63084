// SPDX-License-Identifier: Apache-2.0
// A libvirtd of a test's own: not root, and with folders and a socket in a temporary folder. Its
// guests are real ones, a Debian kernel with busybox, without KVM.
#pragma once

#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/strings.h"
#include "image/demo/cpio_archive.h"
#include "rt/asio/loop_thread.h"
#include "rt/process/child_processes.h"
#include "rt/sleep.h"
#include "rt/thread_pool.h"
#include "runtime/machine/domain_xml.h"

namespace berth::runtime {

inline std::string ReadText(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

class PrivateLibvirt {
 public:
  PrivateLibvirt() {
    std::string pattern = std::filesystem::temp_directory_path() / "berth-libvirt-XXXXXX";
    CHECK(mkdtemp(pattern.data()) != nullptr);
    folder_ = pattern;
    for (const char* const name : {"run", "config/libvirt", "cache", "guests"}) {
      std::filesystem::create_directories(Sub(name));
    }
    std::ofstream(Sub("config/libvirt/qemu.conf"))
        << "stdio_handler = \"file\"\nseccomp_sandbox = 1\nmax_core = 0\n";
    FindKernel();
    WriteInitramfs();
    Give(folder_);
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_)) {
      Give(entry.path());
    }
    StartDaemon();
  }
  ~PrivateLibvirt() {
    StopDaemon();
    for (const pid_t pid : Guests("")) kill(pid, SIGKILL);
    Wait([this] { return Guests("").empty(); }, "the guests are gone");
    std::filesystem::remove_all(folder_);
  }
  PrivateLibvirt(const PrivateLibvirt&) = delete;
  PrivateLibvirt& operator=(const PrivateLibvirt&) = delete;

  std::string uri() const {
    return "qemu+unix:///session?socket=" + Sub("run/libvirt/libvirt-sock");
  }
  std::string Sub(const std::string& name) const { return folder_ + "/" + name; }
  // The daemon's user owns it, as he would after libvirt gave it to him.
  static void Give(const std::string& path) {
    if (geteuid() == 0) CHECK(lchown(path.c_str(), kUser, kGroup) == 0) << path;
  }

  void StartDaemon() {
    daemon_ended_ = false;
    std::vector<std::string> argv = {"/usr/bin/env", "-i"};
    if (geteuid() == 0) {
      argv = {"/usr/bin/setpriv",
              "--reuid=" + std::to_string(kUser),
              "--regid=" + std::to_string(kGroup),
              "--clear-groups",
              "/usr/bin/env",
              "-i"};
    }
    for (std::string word : {std::string("PATH=/usr/sbin:/usr/bin:/sbin:/bin"),
                             "HOME=" + folder_,
                             "XDG_RUNTIME_DIR=" + Sub("run"),
                             "XDG_CONFIG_HOME=" + Sub("config"),
                             "XDG_CACHE_HOME=" + Sub("cache"),
                             std::string("/usr/sbin/libvirtd")}) {
      argv.push_back(std::move(word));
    }
    loop_.loop().Post("test.daemon", [this, argv] { tasks_.Spawn("test.daemon", Daemon(argv)); });
    Wait([this] { return Connects(Sub("run/libvirt/libvirt-sock")); }, "libvirtd listens");
  }
  // SIGKILL: guests stay.
  void StopDaemon() {
    kill(daemon(), SIGCONT);
    kill(daemon(), SIGKILL);
    Wait([this] { return daemon_ended_.load(); }, "libvirtd is gone");
  }
  pid_t daemon() const {
    return static_cast<pid_t>(
        ParseInt(Trim(ReadText(Sub("run/libvirt/libvirtd.pid")))).value_or(0));
  }

  // A guest that boots from memory and then obeys its console.
  DomainPlan Plan(const std::string& name) const {
    DomainPlan plan;
    plan.name = name;
    plan.uuid = UuidOf(folder_ + name);
    plan.memory_bytes = int64_t{96} << 20;
    plan.kernel =
        KernelBoot{.kernel = kernel_,
                   .initramfs = Sub("initramfs"),
                   .command_line = "console=ttyS0 quiet panic=-1 tsc=unstable no_timer_check"};
    plan.console_socket = Sub("guests/" + name + ".sock");
    plan.console_log = Sub("guests/" + name + ".log");
    plan.record = "record of " + name;
    return plan;
  }
  std::string Console(const std::string& name) const {
    return ReadText(Sub("guests/" + name + ".log"));
  }
  void AwaitConsole(const std::string& name, const std::string& text) {
    Wait([&] { return Console(name).find(text) != std::string::npos; },
         "the console of " + name + " says " + text);
  }
  void Type(const std::string& name, const std::string& line) const {
    const int fd = Connected(Sub("guests/" + name + ".sock"));
    CHECK(fd >= 0);
    const std::string text = line + "\n";
    CHECK(write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size()));
    close(fd);
  }
  // Processes of QEMU in our folder whose command line has `word`.
  std::vector<pid_t> Guests(const std::string& word) const {
    std::vector<pid_t> found;
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
      const auto pid = ParseInt(entry.path().filename().string());
      if (!pid.has_value()) continue;
      const std::string words = ReadText(entry.path() / "cmdline");
      if (words.find("qemu-system") != std::string::npos &&
          words.find(folder_) != std::string::npos && words.find(word) != std::string::npos) {
        found.push_back(static_cast<pid_t>(*pid));
      }
    }
    return found;
  }

  // Looks until it is so; a minute and a half, because nothing here is fast without KVM.
  static void Wait(const std::function<bool()>& done, const std::string& what) {
    rt::LoopThread pause("pause");
    for (int i = 0; i < 1800; ++i) {
      if (done()) return;
      CHECK(pause.Await(rt::Sleep(Duration::Millis(50))).ok());
    }
    CHECK(false) << "never: " << what;
  }

 private:
  // Debian's libvirt-qemu and kvm: fixed by the distribution where they exist, and just numbers
  // where they do not.
  static constexpr uid_t kUser = 64055;
  static constexpr gid_t kGroup = 64055;

  rt::Task<Status> Daemon(std::vector<std::string> argv) {
    rt::ProcessRequest request;
    request.argv = std::move(argv);
    request.limit = Duration::Minutes(10);
    const auto end = co_await processes_.Run(std::move(request));
    if (end.ok() && end->signal != SIGKILL) last_words_ = end->errors;
    daemon_ended_ = true;
    co_return OkStatus();
  }

  void FindKernel() {
    for (const auto& entry : std::filesystem::directory_iterator("/boot")) {
      const std::string name = entry.path().filename();
      if (name.starts_with("vmlinuz-") && name.ends_with("-cloud-amd64")) kernel_ = entry.path();
    }
    CHECK(!kernel_.empty()) << "no cloud kernel: install the packages of scripts/packages.txt";
    modules_ = "/lib/modules/" + std::filesystem::path(kernel_).filename().string().substr(8) +
               "/kernel/drivers/";
  }
  void WriteInitramfs() {
    image::CpioArchive archive;
    constexpr unsigned kProgram = 0755;
    for (const char* const name : {"bin", "dev", "proc", "sys"}) archive.AddFolder(name);
    archive.AddFile("bin/busybox", ReadText("/bin/busybox"), kProgram);
    for (const std::string name : {"virtio/virtio",
                                   "virtio/virtio_ring",
                                   "virtio/virtio_pci_modern_dev",
                                   "virtio/virtio_pci_legacy_dev",
                                   "virtio/virtio_pci",
                                   "block/virtio_blk"}) {
      const std::string module = ReadText(modules_ + name + ".ko");
      CHECK(!module.empty()) << name;
      archive.AddFile(std::filesystem::path(name).filename().string() + ".ko", module);
    }
    archive.AddFile(
        "init",
        "#!/bin/busybox sh\n"
        "b=/bin/busybox\n"
        "$b mount -t devtmpfs dev /dev\n$b mount -t proc proc /proc\n"
        "$b mount -t sysfs sys /sys\n"
        // Which of the first two needs the other depends on the kernel.
        "for m in virtio virtio_ring virtio virtio_pci_modern_dev virtio_pci_legacy_dev virtio_pci "
        "virtio_blk; do $b insmod /$m.ko 2>/dev/null; done\n"
        "$b stty -F /dev/ttyS0 -echo\n"
        "echo guest is up\n"
        "while read line; do case $line in\n"
        "off) $b poweroff -f;;\n"
        "crash) echo c >/proc/sysrq-trigger;;\n"
        "disks) for d in /sys/block/vd*; do [ -e $d ] && "
        "echo disk ${d##*/} $($b cat $d/size) $($b cat $d/serial) end; done; "
        "echo that is all;;\n"
        "esac; done </dev/ttyS0\n",
        kProgram);
    std::ofstream(Sub("initramfs"), std::ios::binary) << archive.Finish();
  }

  static int Connected(const std::string& path) {
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    CHECK(path.size() < sizeof(address.sun_path));
    path.copy(address.sun_path, path.size());
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0) return fd;
    close(fd);
    return -1;
  }
  bool Connects(const std::string& path) {
    CHECK(!daemon_ended_) << "libvirtd ended: " << last_words_;
    const int fd = Connected(path);
    if (fd >= 0) close(fd);
    return fd >= 0;
  }

  std::string folder_;
  std::string kernel_;
  std::string modules_;
  std::string last_words_;
  std::atomic<bool> daemon_ended_ = false;
  rt::ThreadPool programs_{{.threads = 2, .queue_max = 8, .name = "programs"}};
  rt::ChildProcesses processes_{programs_};
  rt::LoopThread loop_{"daemon"};
  rt::TaskScope tasks_{loop_.loop()};
};

}  // namespace berth::runtime
