// SPDX-License-Identifier: Apache-2.0
// Copies of disks by the guests that use them, for a runtime that does not run guests itself.
// libvirt is loaded and asked when the first such copy is wanted; one that says nothing is waited
// for behind that, and meanwhile copies are refused with its trouble.
#pragma once

#include <memory>
#include <string>

#include "rt/gate.h"
#include "rt/loop.h"
#include "runtime/machine/guest_copies.h"
#include "runtime/machine/libvirt_hypervisor.h"

namespace berth::app {

class LibvirtCopies {
 public:
  // `folder` is that of all copies. Everything outlives this.
  LibvirtCopies(rt::Loop& loop,
                runtime::Disks& disks,
                runtime::LibvirtHypervisor::Options libvirt,
                std::string folder);

  runtime::LiveDisks& disks() { return copies_; }
  // Timeout: as LibvirtHypervisor::Stop.
  rt::Task<Status> Stop();

 private:
  rt::Task<Result<runtime::BackupJobs*>> Open();

  rt::Loop& loop_;
  const runtime::LibvirtHypervisor::Options libvirt_;
  rt::Gate opening_{1};
  std::unique_ptr<runtime::LibvirtHypervisor> hypervisor_;
  runtime::GuestCopies copies_;
};

}  // namespace berth::app
