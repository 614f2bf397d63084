// SPDX-License-Identifier: Apache-2.0
// What is written down of a machine: in the metadata of its domain, so that libvirt alone knows
// everything. Secrets are never in it; they are in memory and in a file that a reboot forgets.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "base/result.h"
#include "iri/machine.h"

namespace berth::runtime {

// How a guest ended that nobody switched off.
struct GuestEnd {
  enum class Kind : uint8_t {
    kNone,      // it has not
    kShutDown,  // by itself, from inside
    kFailed,    // it crashed, was killed, or could not be started
  };
  Kind kind = Kind::kNone;
  std::string reason;  // one word
  std::string message;
  WallTime time;
  bool operator==(const GuestEnd&) const = default;
};

struct MachineRecord {
  std::string owner;              // which runtime's it is
  iri::Machine object;            // without secrets and status
  iri::ResourceVector resources;  // of its class when it was created: what it takes of the host
  // Of that, local disks that ask for no size and have their image's, by volume.
  std::map<std::string, int64_t> image_sized;
  int64_t media_bytes = 0;  // and what its image has beside a disk, of which it has a copy
  // The boot of the host in which its guest was last started; "" if it was not since it was
  // switched on.
  std::string started_in;
  // It has ignition or user data: a secret, which is not here (LacksIgnition).
  bool has_ignition = false;
  std::string efi_written;  // hash of the EFI variables that its firmware was given; "" for none
  GuestEnd end;
  bool is_deleted() const { return !object.metadata.deleted_at.is_zero(); }
  bool operator==(const MachineRecord&) const = default;
};

// REQUIRES: no secrets, no status.
std::string ToText(const MachineRecord& record);
// BadRequest for anything else than such a text.
Result<MachineRecord> MachineRecordOf(std::string_view text);

// The secrets of a machine's spec: a spec without anything else; and back into the parts
// that are still there.
iri::MachineSpec TakeSecrets(iri::MachineSpec& spec);
iri::MachineSpec WithSecrets(iri::MachineSpec spec, const iri::MachineSpec& secrets);
bool HasSecrets(const iri::MachineSpec& spec);
// A reboot of the host took its ignition or user data: its guest waits until that is given again.
bool LacksIgnition(const MachineRecord& record, const iri::MachineSpec& secrets);
inline constexpr std::string_view kIgnitionMissingWords =
    "its ignition or user data was in the memory of this host and is gone: its guest waits until "
    "the "
    "server has sent it again";

}  // namespace berth::runtime
