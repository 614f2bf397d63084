// SPDX-License-Identifier: Apache-2.0
// A guest as libvirt is told about it. Pure: a plan in, XML out.
//
// Devices are few and named: virtio disks with a serial number, virtio interfaces, one serial line
// on a unix socket, a line to the guest's agent, a source of randomness. The format of a disk is
// always told, never guessed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "runtime/volume/disk_file.h"

namespace berth::runtime {

// Both kinds share the slots of one bus.
constexpr size_t kDomainDisksMax = 16;
constexpr size_t kDomainNicsMax = 8;
// What virtio shows of a serial number.
constexpr size_t kSerialBytesMax = 20;
// Of the disk with a guest's first configuration: behind all that TargetOf gives.
constexpr std::string_view kSeedTarget = "vdz";
constexpr std::string_view kSeedSerial = "cidata";
// And of the file system that a kernel mounts: /dev/disk/by-id/virtio-squashfs.
constexpr std::string_view kSquashfsTarget = "vdaa";
constexpr std::string_view kSquashfsSerial = "squashfs";
// Both are there from a guest's start to its end.
constexpr bool IsFixedTarget(std::string_view target) {
  return target == kSeedTarget || target == kSquashfsTarget;
}
// The namespace of our element in <metadata>.
constexpr std::string_view kMetadataNamespace = "https://berth.dev/xmlns/machine/1";
constexpr std::string_view kMetadataPrefix = "berth";

enum class Acceleration : uint8_t { kKvm, kTcg };
std::string_view AccelerationName(Acceleration acceleration);  // "kvm"

struct DomainDisk {
  enum class Access : uint8_t { kReadWrite, kReadOnly };
  std::string target;  // "vda"
  std::string serial;
  DiskFile file;
  std::string secret_uuid;  // of a kLuks file
  Access access = Access::kReadWrite;
  int64_t tps = 0;   // bytes per second; 0: no limit
  int64_t iops = 0;  // operations per second; the same
  bool operator==(const DomainDisk& other) const;
};

// Where an interface of a guest is plugged in.
struct DomainNic {
  enum class Kind : uint8_t { kBridge, kNetwork, kTap };
  Kind kind = Kind::kBridge;
  std::string source;  // name of the bridge or of libvirt's network; "" for kTap
  std::string device;  // name of the host's end; "" for libvirt's choice. Of kTap it is there
  std::string mac;     // "52:54:00:12:34:56"
  std::string filter;  // libvirt's network filter; "" for none
  bool operator==(const DomainNic&) const = default;
};

struct KernelBoot {
  std::string kernel;
  std::string initramfs;
  std::string command_line;
  bool operator==(const KernelBoot&) const = default;
};
struct EfiFirmware {
  std::string code;                // the firmware, read only
  std::string variables_template;  // what a new guest begins with
  std::string variables;           // the guest's own, made by libvirt
  bool operator==(const EfiFirmware&) const = default;
};

struct DomainPlan {
  std::string name;
  std::string uuid;
  std::string title;     // for people; "" for none
  std::string emulator;  // "" for libvirt's choice
  Acceleration acceleration = Acceleration::kTcg;
  int64_t cpus = 1;
  int64_t memory_bytes = 0;
  std::optional<EfiFirmware> efi;    // else BIOS
  std::optional<KernelBoot> kernel;  // else the first disk, else the CD
  std::vector<DomainDisk> disks;
  std::string iso;  // in the CD drive, which boots when no disk does; "" for no drive
  std::vector<DomainNic> nics;
  std::string console_socket;
  std::string agent_socket;  // "" for none
  std::string console_log;
  std::string ignition_file;  // shown to the guest as opt/com.coreos/config; "" for none
  std::string record;         // bytes that come back with the domain
};

// BadRequest names the field: what libvirt or QEMU would refuse or take for something else.
Status CheckPlan(const DomainPlan& plan);

// REQUIRES: CheckPlan is ok.
std::string DomainXml(const DomainPlan& plan);

// One device, for attaching it to a guest and for detaching it.
std::string DiskXml(const DomainDisk& disk);
std::string NicXml(const DomainNic& nic);

// A private secret that is in memory only: the key of an encrypted disk.
std::string SecretXml(std::string_view uuid, std::string_view description);

// The record in our element of <metadata>, as libvirt gives it back. BadRequest if it is none.
Result<std::string> RecordInMetadata(std::string_view element);

// Letters, digits, '-', '_' and '.' only.
bool IsPlainName(std::string_view text);
// The guest's name of a disk for IRI's "oda" to "ody": "vda" to "vdy".
Result<std::string> TargetOf(std::string_view device);
// What a guest sees as the serial number of the volume with this name: the name itself if it is
// short and plain, else its beginning and a hash.
std::string SerialOf(std::string_view volume_name);
// A locally administered address that is always the same for the same text.
std::string MacOf(std::string_view text);
// A UUID that is always the same for the same text.
std::string UuidOf(std::string_view text);

}  // namespace berth::runtime
