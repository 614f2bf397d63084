// SPDX-License-Identifier: Apache-2.0
#include "runtime/machine/seed_disk.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "base/check.h"
#include "meta/ip.h"
#include "meta/json.h"

namespace berth::runtime {
namespace {

// Of ECMA-119 (ISO 9660), which this follows: numbers of sectors, lengths and offsets as there.
constexpr size_t kSector = 2048;
constexpr size_t kFirstDescriptor = 16;  // behind the system area
constexpr size_t kPrimaryTable = 19;     // path tables: little and big endian, of each tree
constexpr size_t kJolietTable = 21;
constexpr size_t kPrimaryRoot = 23;
constexpr size_t kJolietRoot = 24;
constexpr size_t kFirstFile = 25;
constexpr size_t kFilesMax = 16;
constexpr size_t kRootRecordBytes = 34;
// Whoever shares this much of an IPv6 address is on the same link.
constexpr int kIp6LinkLength = 64;
constexpr size_t kPathTableBytes = 10;

enum class Names : uint8_t { kShort, kJoliet };

void Little(std::string& out, uint64_t value, size_t bytes) {
  for (size_t i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i));
}
void Big(std::string& out, uint64_t value, size_t bytes) {
  for (size_t i = bytes; i > 0; --i) out += static_cast<char>(value >> (8 * (i - 1)));
}
void Both(std::string& out, uint64_t value, size_t bytes) {
  Little(out, value, bytes);
  Big(out, value, bytes);
}

std::string Wide(std::string_view text) {
  std::string wide;
  for (const char c : text) {
    wide += '\0';
    wide += c;
  }
  return wide;
}

void Padded(std::string& out, std::string text, size_t bytes, Names names) {
  text.resize(std::min(text.size(), bytes));
  while (text.size() + (names == Names::kJoliet ? 1 : 0) < bytes) {
    text += names == Names::kJoliet ? std::string("\0 ", 2) : " ";
  }
  text.resize(bytes, '\0');
  out += text;
}

// FILE0.;1 and so on: whoever does not read Joliet finds them by number.
std::string NameOf(const SeedFile& file, size_t index, Names names) {
  if (names == Names::kJoliet) return Wide(file.name);
  return "FILE" + std::string(1, static_cast<char>('A' + index)) + ".;1";
}

enum class Entry : uint8_t { kFile = 0, kFolder = 2 };

std::string Record(std::string_view name, size_t sector, size_t bytes, Entry entry) {
  std::string record;
  constexpr size_t kFixed = 33;
  const size_t length = (kFixed + name.size() + 1) / 2 * 2;
  record += static_cast<char>(length);
  record += '\0';
  Both(record, sector, 4);
  Both(record, bytes, 4);
  record += std::string({100, 1, 1, 0, 0, 0, 0});  // the first day of 2000, always
  record += static_cast<char>(entry);
  record += std::string(2, '\0');
  Both(record, 1, 2);
  record += static_cast<char>(name.size());
  record += name;
  record.resize(length, '\0');
  return record;
}

size_t SectorsOf(size_t bytes) { return (bytes + kSector - 1) / kSector; }

std::string Folder(const std::vector<SeedFile>& files, size_t self, Names names) {
  std::string folder = Record(std::string_view("\0", 1), self, kSector, Entry::kFolder);
  folder += Record(std::string_view("\1", 1), self, kSector, Entry::kFolder);
  std::vector<std::string> records;
  size_t sector = kFirstFile;
  for (size_t i = 0; i < files.size(); ++i) {
    const size_t bytes = files[i].content.size();
    records.push_back(Record(NameOf(files[i], i, names), sector, bytes, Entry::kFile));
    sector += SectorsOf(bytes);
  }
  for (const std::string& record : records) folder += record;
  CHECK(folder.size() <= kSector);
  folder.resize(kSector, '\0');
  return folder;
}

std::string PathTable(size_t root, bool is_big) {
  std::string table = {1, 0};
  if (is_big) {
    Big(table, root, 4);
    Big(table, 1, 2);
  } else {
    Little(table, root, 4);
    Little(table, 1, 2);
  }
  table.resize(kSector, '\0');
  return table;
}

std::string Descriptor(std::string_view label, size_t sectors, Names names) {
  const bool joliet = names == Names::kJoliet;
  const auto text = [&](std::string_view value) {
    return joliet ? Wide(value) : std::string(value);
  };
  std::string out(1, joliet ? '\2' : '\1');
  out += "CD001";
  out += '\1';
  out += '\0';
  Padded(out, text(""), 32, names);
  Padded(out, text(label), 32, names);
  out.resize(out.size() + 8, '\0');
  Both(out, sectors, 4);
  std::string escapes = joliet ? "%/E" : "";  // UCS-2
  escapes.resize(32, '\0');
  out += escapes;
  Both(out, 1, 2);
  Both(out, 1, 2);
  Both(out, kSector, 2);
  Both(out, kPathTableBytes, 4);
  const size_t table = joliet ? kJolietTable : kPrimaryTable;
  Little(out, table, 4);
  Little(out, 0, 4);
  Big(out, table + 1, 4);
  Big(out, 0, 4);
  const size_t root = joliet ? kJolietRoot : kPrimaryRoot;
  const std::string record = Record(std::string_view("\0", 1), root, kSector, Entry::kFolder);
  CHECK(record.size() == kRootRecordBytes);
  out += record;
  for (const size_t bytes : {128, 128, 128, 128, 37, 37, 37}) Padded(out, text(""), bytes, names);
  for (int i = 0; i < 4; ++i) out += "0000000000000000" + std::string(1, '\0');
  out += '\1';
  out.resize(kSector, '\0');
  return out;
}

}  // namespace

std::string SeedDisk(std::string_view label, const std::vector<SeedFile>& files) {
  CHECK(files.size() <= kFilesMax);
  size_t sectors = kFirstFile;
  for (const SeedFile& file : files) sectors += SectorsOf(file.content.size());
  std::string disk(kFirstDescriptor * kSector, '\0');
  disk += Descriptor(label, sectors, Names::kShort);
  disk += Descriptor(label, sectors, Names::kJoliet);
  std::string end =
      "\xff"
      "CD001\1";
  end.resize(kSector, '\0');
  disk += end;
  for (const size_t root : {kPrimaryRoot, kJolietRoot}) {
    disk += PathTable(root, false);
    disk += PathTable(root, true);
  }
  disk += Folder(files, kPrimaryRoot, Names::kShort);
  disk += Folder(files, kJolietRoot, Names::kJoliet);
  CHECK(disk.size() == kFirstFile * kSector);
  for (const SeedFile& file : files) {
    disk += file.content;
    disk.resize(SectorsOf(disk.size()) * kSector, '\0');
  }
  return disk;
}

std::vector<SeedFile> NoCloudFiles(std::string_view id,
                                   std::string_view hostname,
                                   std::string_view user_data) {
  // YAML takes a string of JSON as it is.
  std::string meta = "instance-id: ";
  meta::AppendJsonString(id, meta);
  meta += "\n";
  if (!hostname.empty()) {
    meta += "local-hostname: ";
    meta::AppendJsonString(hostname, meta);
    meta += "\n";
  }
  const std::string data = user_data.empty() ? "#cloud-config\n" : std::string(user_data);
  return {{.name = "meta-data", .content = meta}, {.name = "user-data", .content = data}};
}

std::optional<SeedFile> NetworkConfig(const std::vector<SeedNic>& nics) {
  // Without a file cloud-init asks by DHCP on one interface, of its own choice. Where that is the
  // only one it is left alone: what an image says about its network by itself stays as it is.
  bool is_needed = nics.size() > 1;
  std::string text = "version: 2\nethernets:\n";
  for (size_t i = 0; i < nics.size(); ++i) {
    std::string addresses;
    bool has_ip4 = false;
    for (const std::string& ip : nics[i].ips) {
      const std::optional<meta::IpAddress> address = meta::IpAddress::Parse(ip);
      has_ip4 = has_ip4 || (address && address->family() == meta::IpFamily::kV4);
      if (!address || address->family() != meta::IpFamily::kV6) continue;
      addresses += fmt::format("{}\"{}/{}\"", addresses.empty() ? "" : ", ", ip, kIp6LinkLength);
    }
    is_needed = is_needed || !addresses.empty();
    text += fmt::format(
        "  nic{}:\n    match: {{macaddress: \"{}\"}}\n    dhcp4: {}\n", i, nics[i].mac, has_ip4);
    if (!addresses.empty()) text += fmt::format("    addresses: [{}]\n", addresses);
  }
  if (!is_needed) return std::nullopt;
  return SeedFile{.name = "network-config", .content = std::move(text)};
}

bool IsCloudInit(std::string_view data) {
  constexpr std::array<std::string_view, 7> kBeginnings = {"#cloud-config",
                                                           "#!",
                                                           "#include",
                                                           "#cloud-boothook",
                                                           "## template:",
                                                           "Content-Type:",
                                                           "MIME-Version:"};
  return std::ranges::any_of(kBeginnings,
                             [data](std::string_view begin) { return data.starts_with(begin); });
}

}  // namespace berth::runtime
