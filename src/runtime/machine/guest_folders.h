// SPDX-License-Identifier: Apache-2.0
// The files of guests: one folder each for what stays (local disks, the log of the console), and
// one each below a folder that a reboot empties (sockets, secrets, ignition, seed).
//
// Folders may be passed through but not listed by others: QEMU is another user.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "image/image_folder.h"
#include "iri/efi_variables.h"
#include "rt/blocking_pool.h"
#include "rt/task.h"
#include "runtime/machine/domain_xml.h"
#include "runtime/volume/disk_file.h"

namespace berth::runtime {

class GuestFolders {
 public:
  struct Places {
    std::string folder;
    std::string run_folder;
    std::string guest_user;    // who QEMU is, and owns what only it reads; "": who we are
    std::string libvirt_logs;  // where libvirt keeps a log of each domain; "": that is not ours
    bool secrets_may_be_on_disk = false;
  };
  // Makes both folders, with those above them that are missing, and locks the first: one runtime
  // each. BadRequest names a folder on the way that the guest's user may not enter, and a run
  // folder that is not in memory. The pools outlive this; what may be of many GiB is copied in
  // `large`.
  static Result<std::unique_ptr<GuestFolders>> Open(Places places,
                                                    rt::BlockingPool& pool,
                                                    rt::BlockingPool& large);
  ~GuestFolders();
  GuestFolders(const GuestFolders&) = delete;
  GuestFolders& operator=(const GuestFolders&) = delete;

  // The guest's folders, and what its first moments need. "" removes the file.
  struct Content {
    std::string secrets;
    std::string ignition;
    std::string seed;  // a whole disk
  };
  rt::Task<Status> Prepare(std::string id, Content content);
  // nullopt: there are none, or the host was rebooted since.
  rt::Task<Result<std::optional<std::string>>> Secrets(std::string id);
  rt::Task<Result<bool>> Exists(std::string path);
  // A disk that is whole gets its name.
  rt::Task<Status> Settle(std::string part, std::string whole);
  rt::Task<Status> RemoveFile(std::string path);
  // Whose folders there are without anything of worth: a guest that was not begun.
  rt::Task<Result<std::vector<std::string>>> ListUnused();
  // Everything of the guest. Ok if there is nothing.
  rt::Task<Status> Remove(std::string id);
  // What libvirt wrote about the domain, if that is ours. REQUIRES: it is off.
  rt::Task<Status> RemoveLibvirtLog(std::string domain);
  // The guest's own copy of a kernel, unless it has one already: it boots when its image is long
  // gone.
  rt::Task<Status> PutKernel(std::string id, image::KernelFiles kernel);
  // That copy; nullopt if there is none.
  rt::Task<Result<std::optional<KernelBoot>>> FindKernel(std::string id);
  // What there is of that copy, whole or not.
  rt::Task<Result<int64_t>> KernelBytes(std::string id);
  // Of all these files together; one that is not there has none.
  rt::Task<Result<int64_t>> BytesOf(std::vector<std::string> paths);
  // The same of what an image has beside its disk. "" for none.
  struct Media {
    std::string iso;
    std::string squashfs;
    bool operator==(const Media&) const = default;
  };
  rt::Task<Status> PutMedia(std::string id, Media media);
  rt::Task<Result<Media>> FindMedia(std::string id);

  // What the guest's firmware keeps, or `fresh` if it has kept nothing yet, with these variables in
  // it. REQUIRES: the guest is off.
  rt::Task<Status> PutEfiVariables(std::string id,
                                   std::string fresh,
                                   std::vector<iri::EfiVariable> variables);

  std::string ConsoleSocket(std::string_view id) const { return Run(id) + "/console.sock"; }
  std::string AgentSocket(std::string_view id) const { return Run(id) + "/agent.sock"; }
  std::string ConsoleLog(std::string_view id) const { return Stay(id) + "/console.log"; }
  // Of what libvirt and QEMU say about the domain; "" if that is not ours.
  std::string LibvirtLog(std::string_view domain) const {
    if (places_.libvirt_logs.empty()) return {};
    return places_.libvirt_logs + "/" + std::string(domain) + ".log";
  }
  std::string IgnitionFile(std::string_view id) const { return Run(id) + "/ignition"; }
  std::string SeedFile(std::string_view id) const { return Run(id) + "/seed.img"; }
  std::string EfiVariables(std::string_view id) const { return Stay(id) + "/efi-variables.fd"; }
  DiskFile LocalDisk(std::string_view id, std::string_view volume) const;
  const std::string& folder() const { return places_.folder; }

 private:
  GuestFolders(Places places, int lock, rt::BlockingPool& pool, rt::BlockingPool& large);
  std::string Stay(std::string_view id) const { return places_.folder + "/" + std::string(id); }
  std::string Run(std::string_view id) const { return places_.run_folder + "/" + std::string(id); }

  // In the guest's folder, the last one written last.
  static constexpr std::string_view kInitramfsName = "/initramfs";
  static constexpr std::string_view kCommandLineName = "/cmdline";
  static constexpr std::string_view kKernelName = "/vmlinuz";
  // Whatever a volume is called, its disk ends in .qcow2.
  static constexpr std::string_view kIsoName = "/boot.iso";
  static constexpr std::string_view kSquashfsName = "/root.squashfs";

  const Places places_;
  const int lock_;
  rt::BlockingPool& pool_;
  rt::BlockingPool& large_;
};

}  // namespace berth::runtime
