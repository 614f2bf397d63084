// SPDX-License-Identifier: Apache-2.0
// A small read-only disk with a guest's first configuration, as cloud-init's source NoCloud reads
// it: ISO 9660 with Joliet names, volume "cidata". Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace berth::runtime {

// By which cloud-init finds the disk.
constexpr std::string_view kSeedLabel = "cidata";

struct SeedFile {
  std::string name;  // letters, digits, '-' and '.', at most 64
  std::string content;
};

// REQUIRES: at most 16 files, names as said.
std::string SeedDisk(std::string_view label, const std::vector<SeedFile>& files);

// The files for a machine: meta-data with its id and hostname, and user-data.
std::vector<SeedFile> NoCloudFiles(std::string_view id,
                                   std::string_view hostname,
                                   std::string_view user_data);

struct SeedNic {
  std::string mac;
  std::vector<std::string> ips;
};
// network-config, version 2: which interfaces ask by DHCP, and the IPv6 addresses, which no DHCP
// tells. Nullopt if cloud-init does the same without it: one interface, and no IPv6 address.
std::optional<SeedFile> NetworkConfig(const std::vector<SeedNic>& nics);

// Whether the data is for cloud-init; else it is for ignition.
bool IsCloudInit(std::string_view data);

}  // namespace berth::runtime
