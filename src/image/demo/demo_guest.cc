// SPDX-License-Identifier: Apache-2.0
#include "image/demo/demo_guest.h"

#include <fmt/core.h>

#include <array>
#include <filesystem>
#include <utility>
#include <vector>

#include "image/demo/cpio_archive.h"
#include "image/demo/kernel_modules.h"
#include "image/file_reader.h"
#include "image/manifest.h"

namespace berth::image {
namespace {

namespace fs = std::filesystem;

constexpr size_t kModuleBytesMax = 16 << 20;
constexpr size_t kBusyboxBytesMax = 64 << 20;

// Disks, interfaces, the seed disk, the power button, randomness.
constexpr std::array<std::string_view, 6> kModules = {
    "virtio_pci", "virtio_blk", "virtio_net", "isofs", "button", "evdev"};

constexpr std::string_view kInit = R"sh(#!/bin/busybox sh
export PATH=/bin HOME=/root PS1='\h:\w# '
/bin/busybox --install -s /bin
mount -t devtmpfs dev /dev; mount -t proc proc /proc; mount -t sysfs sys /sys
mkdir -p /dev/pts; mount -t devpts pts /dev/pts; mount -t tmpfs tmp /tmp
echo 1 >/proc/sys/kernel/printk
while read module; do insmod /modules/$module; done </modules/order

name=berth-demo
for disk in /sys/block/vd*; do
  [ "$(cat $disk/serial 2>/dev/null)" = cidata ] || continue
  if mount -t iso9660 -o ro /dev/${disk##*/} /mnt 2>/dev/null; then
    said=$(sed -n 's/^local-hostname: *//p' /mnt/meta-data | tr -cd 'a-zA-Z0-9.-')
    umount /mnt
    [ -n "$said" ] && name=$said
  fi
done
hostname "$name"

ifconfig lo 127.0.0.1 up
for link in /sys/class/net/*; do
  link=${link##*/}
  [ $link = lo ] && continue
  ifconfig $link up
  udhcpc -i $link -b -S -t 3 -T 2 -s /etc/dhcp >/dev/null 2>&1 &
done
acpid >/dev/null 2>&1

echo
echo "GREETING $name: Linux $(uname -r), $(nproc) cpu, $(($(sed -n 's/MemTotal: *\([0-9]*\) kB/\1/p' /proc/meminfo) / 1024)) MiB."
echo
while :; do setsid cttyhack sh -l; done
)sh";

constexpr std::string_view kDhcp = R"sh(#!/bin/busybox sh
case $1 in
bound|renew)
  ifconfig $interface $ip netmask $subnet
  [ -n "$router" ] && route add default gw ${router%% *} dev $interface 2>/dev/null
  : >/etc/resolv.conf
  for server in $dns; do echo nameserver $server >>/etc/resolv.conf; done
esac
)sh";

constexpr std::string_view kPowerButton = "#!/bin/busybox sh\nsync\npoweroff -f\n";

std::string InitScript() {
  constexpr std::string_view kMark = "GREETING";
  std::string script(kInit);
  script.replace(script.find(kMark), kMark.size(), kDemoGreeting);
  return script;
}

Result<std::string> KernelIn(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code failed;
  for (const auto& file : fs::directory_iterator(folder, failed)) {
    names.push_back(file.path().filename());
  }
  std::string kernel = ChooseKernel(names);
  if (!kernel.empty()) return kernel;
  return NotFound(fmt::format("no kernel in {}: install Debian's linux-image-cloud-amd64", folder));
}

Result<std::string> ReadSource(const std::string& path,
                               size_t bytes_max,
                               std::string_view package) {
  Result<std::string> content = ReadText(path, bytes_max);
  if (content.ok() || !content.status().Is(Reason::kNotFound)) return content;
  return NotFound(fmt::format("{} does not exist: install Debian's {}", path, package));
}

Status AddModules(const std::string& folder, CpioArchive& archive) {
  TRY(const std::string dependencies,
      ReadSource(folder + "/modules.dep", kDocumentBytesMax, "linux-image-cloud-amd64"));
  std::string order;
  for (const std::string& file : LoadOrder(dependencies, kModules)) {
    if (!file.ends_with(".ko")) return BadRequest(file + " is compressed: take Debian's kernel");
    TRY(const std::string content, ReadText(folder + "/" + file, kModuleBytesMax));
    const std::string name = fs::path(file).filename();
    archive.AddFile("modules/" + name, content);
    order += name + "\n";
  }
  archive.AddFile("modules/order", order);
  return OkStatus();
}

}  // namespace

Result<DemoGuest> MakeDemoGuest(const DemoSources& sources) {
  TRY(const std::string kernel, KernelIn(sources.boot_folder));
  DemoGuest guest;
  guest.kernel = sources.boot_folder + "/" + kernel;
  guest.version = kernel.substr(kernel.find('-') + 1);
  TRY(const std::string busybox, ReadSource(sources.busybox, kBusyboxBytesMax, "busybox-static"));
  CpioArchive archive;
  // acpid wants its places in var.
  for (const std::string_view folder : {"bin",
                                        "dev",
                                        "etc",
                                        "etc/acpi",
                                        "etc/acpi/PWRF",
                                        "mnt",
                                        "modules",
                                        "proc",
                                        "root",
                                        "sys",
                                        "tmp",
                                        "var",
                                        "var/log",
                                        "var/run"}) {
    archive.AddFolder(folder);
  }
  archive.AddFile("bin/busybox", busybox, 0755);
  archive.AddFile("etc/dhcp", kDhcp, 0755);
  archive.AddFile("etc/acpi/PWRF/00000080", kPowerButton, 0755);
  archive.AddFile("init", InitScript(), 0755);
  TRY_STATUS(AddModules(sources.modules_folder + "/" + guest.version, archive));
  guest.initramfs = archive.Finish();
  // Without KVM the clocks of a busy host look wrong to a guest, and its kernel may not give up for
  // that.
  guest.command_line = "console=ttyS0 quiet tsc=unstable no_timer_check";
  return guest;
}

std::string DemoBootBlock() {
  constexpr size_t kSectorBytes = 512;
  constexpr unsigned kLoadedAt = 0x7c00;
  std::string code = {
      '\xfc', '\x31', '\xc0', '\x8e', '\xd8', '\xbe', 0,
      0,                                                       // strings go up; segment 0; the text
      '\xac', '\x84', '\xc0', '\x74', '\x11', '\x88', '\xc4',  // next byte; behind the last, rest
      '\xba', '\xfd', '\x03', '\xec', '\xa8', '\x20', '\x74',
      '\xfb',                                                  // until the line has room
      '\xb2', '\xf8', '\x88', '\xe0', '\xee', '\xeb', '\xea',  // say it; the next
      '\xfa', '\xf4', '\xeb', '\xfd'};                         // rest
  const unsigned text_at = kLoadedAt + static_cast<unsigned>(code.size());
  constexpr size_t kTextField = 6;
  code[kTextField] = static_cast<char>(text_at & 0xff);
  code[kTextField + 1] = static_cast<char>(text_at >> 8);
  code += fmt::format("{} a disk without a kernel.\r\n", kDemoGreeting);
  code.resize(kSectorBytes - 2);
  return code + "\x55\xaa";
}

}  // namespace berth::image
