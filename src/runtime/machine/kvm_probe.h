// SPDX-License-Identifier: Apache-2.0
// Whether this host runs guests with KVM. That /dev/kvm can be opened says little: a guest may hang
// for ever all the same. So one is booted: a sector of machine code behind a BIOS, which ends QEMU
// with a number that nothing else ends it with.
#pragma once

#include <string>

#include "base/result.h"
#include "base/time.h"
#include "rt/process/process_runner.h"
#include "rt/task.h"
#include "runtime/machine/domain_xml.h"

namespace berth::runtime {

struct Probe {
  std::string qemu = "/usr/bin/qemu-system-x86_64";
  std::string floppy;  // where its disk is written
  Acceleration acceleration = Acceleration::kKvm;
  Duration limit = Duration::Seconds(15);
  // Who QEMU of guests is, with all groups of that user: root may open what guests may not. "": who
  // we are. REQUIRES: one only if we are root.
  std::string user;
};

// Ok if the guest ran; else why it did not. NotFound: there is no such user. The runner outlives
// the call.
rt::Task<Status> RunProbe(rt::ProcessRunner* processes, Probe probe);

}  // namespace berth::runtime
