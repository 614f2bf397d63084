// SPDX-License-Identifier: Apache-2.0
// What is to be done next with a machine, and what it looks like from outside. Pure: the record and
// what is known beside it decide, so a runtime that was killed anywhere goes on where it was.
//
//   created -> off --start--> alive --ends by itself--> noted (waits to be switched on again)
//               ^               |
//               +-- power off --+            deleted: destroy -> files -> domain -> gone
//
// While it is alive its devices become those of the record, and it is resumed when it stopped for
// want of room on its disk.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "image/image_folder.h"
#include "runtime/machine/domain_xml.h"
#include "runtime/machine/guest_folders.h"
#include "runtime/machine/host_networks.h"
#include "runtime/machine/hypervisor.h"
#include "runtime/machine/machine_classes.h"
#include "runtime/machine/machine_record.h"

namespace berth::runtime {

enum class MachineStep : uint8_t {
  kNone,
  kNote,    // how its guest ended
  kStart,   // files, disks, keys, then the guest
  kStop,    // its power button, and after a while its plug
  kMatch,   // its devices and those of its record
  kResume,  // it, if its disk has room again
  kRemove,  // everything
};

// What is observed of a guest.
struct Observed {
  GuestState state = GuestState::kOff;
  OffReason off_reason = OffReason::kUnknown;
  PauseReason pause = PauseReason::kTold;
  bool alive() const { return state != GuestState::kOff; }
  bool lacks_room() const {
    return state == GuestState::kPaused && pause == PauseReason::kDiskFull;
  }
};

// What the time has come for.
struct Due {
  bool match = false;   // its devices may be others than those of its record
  bool resume = false;  // an attempt
};

MachineStep NextStep(const MachineRecord& record, const Observed& observed, Due due = {});

// How a guest ended that was started in `started_in` and is off now, in boot `boot_id`.
GuestEnd EndOf(const MachineRecord& record, const Observed& observed, std::string_view boot_id);

// "Move": it starts held.
bool MovesOnPoolLoss(const iri::Machine& machine);
// It was started so, and nothing of it has run yet.
bool IsHeld(const iri::Machine& machine, const Observed& observed);
// For a person: that it is paused, why, and what becomes of it.
std::string PausedWords(PauseReason why);

// A local disk that asks for no size and gets that of its image.
inline bool HasSizeOfImage(const iri::MachineVolume& volume) {
  return volume.local_disk.has_value() && volume.local_disk->size_bytes == 0 &&
         !volume.local_disk->image.empty();
}

// Names are there and unique, devices are possible and free, files and keys are named. BadRequest
// names the part.
Status CheckSpec(const iri::MachineSpec& spec);
// What a machine takes of the host: of its class, and its local disks.
iri::ResourceVector NeedsOf(const iri::MachineClass& machine_class, const iri::MachineSpec& spec);

// The secret of an encrypted volume.
std::string SecretUuid(std::string_view machine_id, std::string_view volume);
std::string DomainNameOf(std::string_view machine_id);

// What of an image its guest boots: a unified kernel image becomes its kernel under EFI firmware,
// and is left out under another if something else boots. BadRequest names the layer's type and the
// class if nothing does.
Status ChooseBoot(image::ImageFiles& files,
                  OfferedMachineClass::Firmware firmware,
                  std::string_view class_name);

// The disk with its first configuration (seed_disk.h).
DomainDisk SeedOf(std::string_view machine_id, const GuestFolders& folders);
// What the guest calls itself: as it was told, else the machine's name. "" if neither is known.
std::string HostnameOf(const iri::Machine& machine);
// An interface of it, as networks are told.
PluggedNic PluggedOf(const iri::Machine& machine, iri::MachineNic nic);

struct PlanContext {
  const GuestFolders& folders;
  const HostNetworks& networks;
  Acceleration acceleration = Acceleration::kTcg;
  std::string emulator;
  std::string efi_code;
  std::string efi_variables;
  OfferedMachineClass::Firmware firmware = OfferedMachineClass::Firmware::kBios;
  std::optional<KernelBoot> kernel;
  GuestFolders::Media media;
  bool has_ignition = false;  // and it is not for cloud-init
};
// REQUIRES: CheckSpec is ok.
Result<DomainPlan> PlanOf(const MachineRecord& record, const PlanContext& context);
Result<DomainDisk> DiskOf(std::string_view machine_id,
                          const iri::MachineVolume& volume,
                          const GuestFolders& folders);

// How the devices of a living guest differ from those of its plan. A disk of another file is both
// missing and extra. What this runtime did not attach is neither.
struct DeviceDrift {
  std::vector<DomainDisk> disks;  // missing
  std::vector<DomainNic> nics;    // missing
  DeviceElements extra;
  bool is_none() const { return disks.empty() && nics.empty() && extra.empty(); }
};
DeviceDrift DriftOf(const DomainPlan& plan, const DeviceElements& live);

}  // namespace berth::runtime
