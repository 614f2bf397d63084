// SPDX-License-Identifier: Apache-2.0
#include "app/runtime/libvirt_copies.h"

#include <utility>

namespace berth::app {

LibvirtCopies::LibvirtCopies(rt::Loop& loop,
                             runtime::Disks& disks,
                             runtime::LibvirtHypervisor::Options libvirt,
                             std::string folder)
    : loop_(loop),
      libvirt_(std::move(libvirt)),
      copies_(loop, disks, [this] { return Open(); }, {.folder = std::move(folder)}) {}

rt::Task<Result<runtime::BackupJobs*>> LibvirtCopies::Open() {
  CO_TRY(const rt::Gate::Permit permit, co_await opening_.Enter());
  if (hypervisor_ == nullptr) {
    CO_TRY(hypervisor_, co_await runtime::LibvirtHypervisor::Start(loop_, libvirt_));
  }
  co_return hypervisor_.get();
}

rt::Task<Status> LibvirtCopies::Stop() {
  CO_TRY_STATUS(co_await copies_.Stop());
  if (hypervisor_ != nullptr) CO_TRY_STATUS(co_await hypervisor_->Stop());
  co_return OkStatus();
}

}  // namespace berth::app
