// SPDX-License-Identifier: Apache-2.0
#include "runtime/machine/kvm_probe.h"

#include <fmt/core.h>

#include <array>
#include <utility>
#include <vector>

#include "base/strings.h"
#include "pki/private_file.h"
#include "runtime/machine/guest_user.h"

namespace berth::runtime {
namespace {

constexpr size_t kFloppyBytes = 1440 * 1024;
constexpr size_t kSectorEnd = 510;
// What QEMU's debug exit makes of kSign.
constexpr int kSign = 0x10;
constexpr int kExitCode = kSign * 2 + 1;
constexpr size_t kErrorBytesMax = 300;

std::string Floppy() {
  // mov al, kSign; out 0xf4, al; halt: hlt; jmp halt
  constexpr std::array<unsigned char, 7> kCode = {0xB0, kSign, 0xE6, 0xF4, 0xF4, 0xEB, 0xFD};
  std::string bytes(kFloppyBytes, '\0');
  std::copy(kCode.begin(), kCode.end(), bytes.begin());
  bytes[kSectorEnd] = '\x55';
  bytes[kSectorEnd + 1] = '\xAA';
  return bytes;
}

// setpriv is in Debian's base. It dies with us, as it would without a user of its own.
std::vector<std::string> BecomeUser(const GuestUser& user) {
  return {"/usr/bin/setpriv",
          "--pdeathsig=KILL",
          "--reuid=" + std::to_string(user.uid),
          "--regid=" + std::to_string(user.gid),
          "--init-groups",
          "--"};
}

std::vector<std::string> QemuOf(const Probe& probe) {
  const bool is_kvm = probe.acceleration == Acceleration::kKvm;
  return {probe.qemu,
          "-accel",
          is_kvm ? "kvm" : "tcg",
          "-cpu",
          is_kvm ? "host" : "max",
          "-machine",
          "pc",
          "-m",
          "16",
          "-nodefaults",
          "-no-user-config",
          "-no-reboot",
          "-display",
          "none",
          "-sandbox",
          "on",
          "-device",
          "isa-debug-exit,iobase=0xf4,iosize=0x04",
          "-drive",
          "if=floppy,format=raw,readonly=on,file=" + probe.floppy};
}

}  // namespace

rt::Task<Status> RunProbe(rt::ProcessRunner* processes, Probe probe) {
  if (probe.floppy.find(',') != std::string::npos) {
    co_return BadRequest("a probe cannot have a disk at " + Quote(probe.floppy));
  }
  CO_TRY_STATUS(pki::WritePrivateFile(probe.floppy, Floppy()));
  rt::ProcessRequest request;
  if (!probe.user.empty()) {
    CO_TRY(const GuestUser user, GuestUserNamed(probe.user));
    CO_TRY_STATUS(GiveTo(user, probe.floppy));
    request.argv = BecomeUser(user);
  }
  for (std::string& word : QemuOf(probe)) request.argv.push_back(std::move(word));
  request.limit = probe.limit;
  const Result<rt::ProcessEnd> end = co_await processes->Run(std::move(request));
  if (end.status().Is(Reason::kTimeout)) {
    co_return Timeout(fmt::format("a probe guest hangs for {}", FormatDuration(probe.limit)));
  }
  if (!end.ok()) co_return end.status();
  if (end->exit_code == kExitCode) co_return OkStatus();
  const std::string_view said = Trim(end->errors).substr(0, kErrorBytesMax);
  co_return Unavailable(
      "a probe guest does not run: " +
      (said.empty() ? fmt::format("exit status {}", end->exit_code) : Printable(said)));
}

}  // namespace berth::runtime
