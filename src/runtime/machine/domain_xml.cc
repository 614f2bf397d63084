// SPDX-License-Identifier: Apache-2.0
#include "runtime/machine/domain_xml.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "base/strings.h"
#include "runtime/machine/xml_writer.h"

namespace berth::runtime {
namespace {

void WriteBoot(const DomainPlan& plan, XmlWriter& xml) {
  xml.Open("os");
  xml.Open("type").Attribute("arch", "x86_64").Attribute("machine", "pc").Text("hvm").Close();
  if (plan.efi.has_value()) {
    xml.Open("loader").Attribute("readonly", "yes").Attribute("type", "pflash");
    xml.Text(plan.efi->code).Close();
    xml.Open("nvram").Attribute("template", plan.efi->variables_template);
    xml.Text(plan.efi->variables).Close();
  }
  if (plan.kernel.has_value()) {
    xml.Element("kernel", plan.kernel->kernel);
    if (!plan.kernel->initramfs.empty()) xml.Element("initrd", plan.kernel->initramfs);
    if (!plan.kernel->command_line.empty()) xml.Element("cmdline", plan.kernel->command_line);
  }
  xml.Close();
}

void WriteProcessor(const DomainPlan& plan, XmlWriter& xml) {
  xml.Open("memory").Attribute("unit", "bytes").Text(std::to_string(plan.memory_bytes)).Close();
  xml.Open("memoryBacking").Open("nosharepages").Close().Close();
  xml.Element("vcpu", plan.cpus);
  xml.Open("features").Open("acpi").Close().Open("apic").Close().Close();
  const bool is_kvm = plan.acceleration == Acceleration::kKvm;
  xml.Open("cpu").Attribute("mode", is_kvm ? "host-passthrough" : "maximum").Close();
}

// What a guest does of its own accord is final here: whoever watches it decides what comes next.
void WriteLife(XmlWriter& xml) {
  xml.Element("on_poweroff", "destroy");
  xml.Element("on_reboot", "restart");
  xml.Element("on_crash", "destroy");
}

enum class Boots : uint8_t { kNo, kFirst };

void WriteDisk(const DomainDisk& disk, Boots boots, XmlWriter& xml) {
  xml.Open("disk").Attribute("type", "file").Attribute("device", "disk");
  const bool is_qcow2 = disk.file.format == DiskFormat::kQcow2;
  xml.Open("driver").Attribute("name", "qemu").Attribute("type", is_qcow2 ? "qcow2" : "raw");
  if (disk.access == DomainDisk::Access::kReadWrite) xml.Attribute("discard", "unmap");
  xml.Close();
  xml.Open("source").Attribute("file", disk.file.path);
  if (disk.file.format == DiskFormat::kLuks) {
    xml.Open("encryption").Attribute("format", "luks");
    xml.Open("secret").Attribute("type", "passphrase").Attribute("uuid", disk.secret_uuid).Close();
    xml.Close();
  }
  xml.Close();
  xml.Open("target").Attribute("dev", disk.target).Attribute("bus", "virtio").Close();
  if (disk.tps > 0 || disk.iops > 0) {
    xml.Open("iotune");
    if (disk.tps > 0) xml.Element("total_bytes_sec", disk.tps);
    if (disk.iops > 0) xml.Element("total_iops_sec", disk.iops);
    xml.Close();
  }
  if (disk.access == DomainDisk::Access::kReadOnly) xml.Open("readonly").Close();
  xml.Element("serial", disk.serial);
  if (boots == Boots::kFirst) xml.Open("boot").Attribute("order", 1).Close();
  xml.Close();
}

// A drive that every guest knows, which virtio's are not.
void WriteIso(const DomainPlan& plan, XmlWriter& xml) {
  const auto is_writable = [](const DomainDisk& disk) {
    return disk.access == DomainDisk::Access::kReadWrite;
  };
  xml.Open("disk").Attribute("type", "file").Attribute("device", "cdrom");
  xml.Open("driver").Attribute("name", "qemu").Attribute("type", "raw").Close();
  xml.Open("source").Attribute("file", plan.iso).Close();
  xml.Open("target").Attribute("dev", "hda").Attribute("bus", "ide").Close();
  xml.Open("readonly").Close();
  // Behind the disk: what was installed there is what boots from then on.
  const int order = std::ranges::any_of(plan.disks, is_writable) ? 2 : 1;
  if (!plan.kernel.has_value()) xml.Open("boot").Attribute("order", order).Close();
  xml.Close();
}

void WriteNic(const DomainNic& nic, XmlWriter& xml) {
  switch (nic.kind) {
    case DomainNic::Kind::kBridge:
      xml.Open("interface").Attribute("type", "bridge");
      xml.Open("source").Attribute("bridge", nic.source).Close();
      break;
    case DomainNic::Kind::kNetwork:
      xml.Open("interface").Attribute("type", "network");
      xml.Open("source").Attribute("network", nic.source).Close();
      break;
    case DomainNic::Kind::kTap: xml.Open("interface").Attribute("type", "ethernet"); break;
  }
  xml.Open("mac").Attribute("address", nic.mac).Close();
  if (!nic.device.empty()) {
    xml.Open("target").Attribute("dev", nic.device);
    if (nic.kind == DomainNic::Kind::kTap) xml.Attribute("managed", "no");
    xml.Close();
  }
  xml.Open("model").Attribute("type", "virtio").Close();
  if (!nic.filter.empty()) xml.Open("filterref").Attribute("filter", nic.filter).Close();
  xml.Close();
}

void WriteConsole(const DomainPlan& plan, XmlWriter& xml) {
  xml.Open("serial").Attribute("type", "unix");
  xml.Open("source").Attribute("mode", "bind").Attribute("path", plan.console_socket).Close();
  if (!plan.console_log.empty()) {
    xml.Open("log").Attribute("file", plan.console_log).Attribute("append", "on").Close();
  }
  xml.Open("target").Attribute("type", "isa-serial").Attribute("port", 0).Close();
  xml.Close();
}

// The line that QEMU's guest agent listens to. Its own agent connection libvirt would keep for
// itself, and loses with it whatever is longer than 3 MiB: to libvirt it is a line of another name.
constexpr std::string_view kAgentPort = "org.qemu.guest_agent.0";
constexpr std::string_view kAgentName = "dev.berth.agent.0";
constexpr std::string_view kAgentAlias = "ua-agent";
constexpr std::string_view kQemuNamespace = "http://libvirt.org/schemas/domain/qemu/1.0";

void WriteAgent(const DomainPlan& plan, XmlWriter& xml) {
  if (plan.agent_socket.empty()) return;
  // In the last slot: the names of a guest's interfaces are those of their slots.
  xml.Open("controller").Attribute("type", "virtio-serial").Attribute("index", 0);
  xml.Open("address").Attribute("type", "pci").Attribute("bus", 0).Attribute("slot", 31).Close();
  xml.Close();
  xml.Open("channel").Attribute("type", "unix");
  xml.Open("source").Attribute("mode", "bind").Attribute("path", plan.agent_socket).Close();
  xml.Open("target").Attribute("type", "virtio").Attribute("name", kAgentName).Close();
  xml.Open("alias").Attribute("name", kAgentAlias).Close();
  xml.Close();
}

void WriteAgentName(const DomainPlan& plan, XmlWriter& xml) {
  if (plan.agent_socket.empty()) return;
  xml.Open("qemu:override").Attribute("xmlns:qemu", kQemuNamespace);
  xml.Open("qemu:device").Attribute("alias", kAgentAlias).Open("qemu:frontend");
  xml.Open("qemu:property").Attribute("name", "name").Attribute("type", "string");
  xml.Attribute("value", kAgentPort).Close();
  xml.Close().Close().Close();
}

void WriteDevices(const DomainPlan& plan, XmlWriter& xml) {
  xml.Open("devices");
  if (!plan.emulator.empty()) xml.Element("emulator", plan.emulator);
  xml.Open("controller").Attribute("type", "usb").Attribute("model", "none").Close();
  Boots boots = plan.kernel.has_value() ? Boots::kNo : Boots::kFirst;
  for (const DomainDisk& disk : plan.disks) {
    const bool can_boot = disk.access == DomainDisk::Access::kReadWrite;
    WriteDisk(disk, can_boot ? boots : Boots::kNo, xml);
    if (can_boot) boots = Boots::kNo;
  }
  if (!plan.iso.empty()) WriteIso(plan, xml);
  for (const DomainNic& nic : plan.nics) WriteNic(nic, xml);
  WriteConsole(plan, xml);
  WriteAgent(plan, xml);
  xml.Open("rng").Attribute("model", "virtio");
  xml.Open("backend").Attribute("model", "random").Text("/dev/urandom").Close().Close();
  xml.Open("memballoon").Attribute("model", "none").Close();
  xml.Open("panic").Attribute("model", "isa").Close();
  xml.Close();
}

Status CheckPath(std::string_view field, std::string_view path) {
  constexpr size_t kPathMax = 4095;
  const bool fine = path.starts_with('/') && path.size() <= kPathMax && IsXmlText(path) &&
                    path.find_first_of("\t\n\r") == std::string_view::npos;
  if (fine) return OkStatus();
  return BadRequest(fmt::format("{} {}: expected an absolute path of text", field, Quote(path)));
}

Status CheckOptionalPath(std::string_view field, std::string_view path) {
  return path.empty() ? OkStatus() : CheckPath(field, path);
}

Status CheckDisk(const DomainDisk& disk) {
  const std::string field = "disk " + Quote(disk.target);
  const bool is_short = disk.target.size() == 3 && disk.target.starts_with("vd");
  if (disk.target != kSquashfsTarget && (!is_short || !IsPlainName(disk.target))) {
    return BadRequest(field + ": expected a target such as vda");
  }
  if (disk.serial.empty() || disk.serial.size() > kSerialBytesMax || !IsPlainName(disk.serial)) {
    return BadRequest(
        fmt::format("{}: serial {}: expected 1 to {} letters, digits, '-', '_' or '.'",
                    field,
                    Quote(disk.serial),
                    kSerialBytesMax));
  }
  if ((disk.file.format == DiskFormat::kLuks) != !disk.secret_uuid.empty()) {
    return BadRequest(field + ": an encrypted disk, and no other, has a secret");
  }
  if (disk.tps < 0 || disk.iops < 0) return BadRequest(field + ": a limit is below 0");
  return CheckPath(field, disk.file.path);
}

Status CheckNic(const DomainNic& nic) {
  constexpr size_t kInterfaceNameMax = 15;
  constexpr size_t kSourceMax = 255;
  const std::string field = "interface " + Quote(nic.mac);
  const bool needs_source = nic.kind != DomainNic::Kind::kTap;
  if (needs_source == nic.source.empty() || nic.source.size() > kSourceMax ||
      !IsXmlText(nic.source)) {
    return BadRequest(field + ": source " + Quote(nic.source));
  }
  if (nic.device.size() > kInterfaceNameMax || !IsPlainName(nic.device) ||
      (nic.device.empty() && !needs_source)) {
    return BadRequest(field + ": device " + Quote(nic.device));
  }
  if (nic.mac.size() != 17 || nic.mac.find_first_not_of("0123456789abcdef:") != std::string::npos) {
    return BadRequest(field + ": expected an address such as 52:54:00:12:34:56");
  }
  if (!IsXmlText(nic.filter)) return BadRequest(field + ": filter " + Quote(nic.filter));
  return OkStatus();
}

Status CheckDevices(const DomainPlan& plan) {
  const auto is_own = [](const DomainDisk& disk) { return !IsFixedTarget(disk.target); };
  const auto own = static_cast<size_t>(std::ranges::count_if(plan.disks, is_own));
  if (own > kDomainDisksMax) {
    return BadRequest(fmt::format("{} disks, at most {}", own, kDomainDisksMax));
  }
  if (plan.nics.size() > kDomainNicsMax) {
    return BadRequest(fmt::format("{} interfaces, at most {}", plan.nics.size(), kDomainNicsMax));
  }
  std::set<std::string> targets;
  for (const DomainDisk& disk : plan.disks) {
    TRY_STATUS(CheckDisk(disk));
    if (!targets.insert(disk.target).second) {
      return BadRequest("disk " + Quote(disk.target) + ": the target is taken");
    }
  }
  for (const DomainNic& nic : plan.nics) TRY_STATUS(CheckNic(nic));
  return OkStatus();
}

}  // namespace

bool DomainDisk::operator==(const DomainDisk& other) const {
  return target == other.target && serial == other.serial && file.path == other.file.path &&
         file.format == other.file.format && secret_uuid == other.secret_uuid &&
         access == other.access && tps == other.tps && iops == other.iops;
}

std::string_view AccelerationName(Acceleration acceleration) {
  return acceleration == Acceleration::kKvm ? "kvm" : "tcg";
}

Status CheckPlan(const DomainPlan& plan) {
  constexpr size_t kUuidBytes = 36;
  if (plan.name.empty() || !IsPlainName(plan.name)) return BadRequest("name " + Quote(plan.name));
  if (plan.uuid.size() != kUuidBytes || !IsPlainName(plan.uuid)) {
    return BadRequest("uuid " + Quote(plan.uuid));
  }
  if (plan.cpus < 1) return BadRequest(fmt::format("cpus {}: expected 1 or more", plan.cpus));
  if (plan.memory_bytes < 1) {
    return BadRequest(fmt::format("memory {}: expected 1 byte or more", plan.memory_bytes));
  }
  TRY_STATUS(CheckOptionalPath("emulator", plan.emulator));
  TRY_STATUS(CheckPath("console socket", plan.console_socket));
  TRY_STATUS(CheckOptionalPath("console log", plan.console_log));
  TRY_STATUS(CheckOptionalPath("agent socket", plan.agent_socket));
  TRY_STATUS(CheckOptionalPath("ignition file", plan.ignition_file));
  TRY_STATUS(CheckOptionalPath("CD image", plan.iso));
  if (plan.efi.has_value()) {
    TRY_STATUS(CheckPath("firmware", plan.efi->code));
    TRY_STATUS(CheckPath("template of EFI variables", plan.efi->variables_template));
    TRY_STATUS(CheckPath("EFI variables", plan.efi->variables));
  }
  if (plan.kernel.has_value()) {
    TRY_STATUS(CheckPath("kernel", plan.kernel->kernel));
    TRY_STATUS(CheckOptionalPath("initramfs", plan.kernel->initramfs));
    if (!IsXmlText(plan.kernel->command_line)) {
      return BadRequest("kernel command line " + Quote(plan.kernel->command_line));
    }
  }
  return CheckDevices(plan);
}

std::string DomainXml(const DomainPlan& plan) {
  XmlWriter xml;
  const bool is_kvm = plan.acceleration == Acceleration::kKvm;
  xml.Open("domain").Attribute("type", is_kvm ? "kvm" : "qemu");
  xml.Element("name", plan.name);
  xml.Element("uuid", plan.uuid);
  // libvirt refuses a title of several lines.
  if (!plan.title.empty()) xml.Element("title", Printable(plan.title));
  xml.Open("metadata").Open("berth:machine").Attribute("xmlns:berth", kMetadataNamespace);
  xml.Text(Base64Encode(plan.record)).Close().Close();
  WriteProcessor(plan, xml);
  WriteBoot(plan, xml);
  if (!plan.ignition_file.empty()) {
    xml.Open("sysinfo").Attribute("type", "fwcfg");
    xml.Open("entry").Attribute("name", "opt/com.coreos/config");
    xml.Attribute("file", plan.ignition_file).Close().Close();
  }
  WriteLife(xml);
  WriteDevices(plan, xml);
  WriteAgentName(plan, xml);
  xml.Close();
  return xml.Take();
}

std::string DiskXml(const DomainDisk& disk) {
  XmlWriter xml;
  WriteDisk(disk, Boots::kNo, xml);
  return xml.Take();
}

std::string NicXml(const DomainNic& nic) {
  XmlWriter xml;
  WriteNic(nic, xml);
  return xml.Take();
}

std::string SecretXml(std::string_view uuid, std::string_view description) {
  XmlWriter xml;
  xml.Open("secret").Attribute("ephemeral", "yes").Attribute("private", "yes");
  xml.Element("uuid", uuid);
  xml.Element("description", Printable(description));
  xml.Close();
  return xml.Take();
}

Result<std::string> RecordInMetadata(std::string_view element) {
  const size_t begin = element.find('>');
  const size_t end = element.rfind("</");
  if (begin == std::string_view::npos || end == std::string_view::npos || end <= begin) {
    return BadRequest("no record in the metadata");
  }
  std::string text;
  for (const char c : element.substr(begin + 1, end - begin - 1)) {
    if (c != ' ' && c != '\n' && c != '\t' && c != '\r') text += c;
  }
  std::optional<std::string> record = Base64Decode(text);
  if (!record.has_value() || record->empty()) return BadRequest("no record in the metadata");
  return *std::move(record);
}

}  // namespace berth::runtime
