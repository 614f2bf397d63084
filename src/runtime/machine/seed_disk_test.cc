// SPDX-License-Identifier: Apache-2.0
// The disk as another reader sees it: numbers and places of ECMA-119, read by hand. That a kernel
// mounts it is shown with a real guest (test/integration/real_guests_test.py).
#include "runtime/machine/seed_disk.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <string>

namespace berth::runtime {
namespace {

constexpr size_t kSector = 2048;

uint32_t Number(std::string_view disk, size_t at) {
  uint32_t value = 0;
  for (size_t i = 4; i > 0; --i) value = value << 8 | static_cast<uint8_t>(disk[at + i - 1]);
  return value;
}

// Names and contents of the root folder of a descriptor; the names of Joliet are wide.
std::map<std::string, std::string> Files(std::string_view disk, size_t descriptor, size_t width) {
  std::map<std::string, std::string> files;
  const std::string_view root = disk.substr(descriptor * kSector + 156, 34);
  size_t at = Number(root, 2) * kSector;
  const size_t end = at + Number(root, 10);
  while (at < end && disk[at] != 0) {
    const std::string_view record = disk.substr(at, static_cast<uint8_t>(disk[at]));
    const std::string_view wide = record.substr(33, static_cast<uint8_t>(record[32]));
    std::string name;
    for (size_t i = width - 1; i < wide.size(); i += width) name += wide[i];
    const bool is_folder = record[25] == 2;
    if (!is_folder) {
      files[name] = disk.substr(Number(record, 2) * kSector, Number(record, 10));
    }
    at += record.size();
  }
  return files;
}

TEST(SeedDisk, HasItsFilesUnderBothKindsOfNames) {
  const std::string large(3 * kSector + 5, 'x');
  const std::string disk =
      SeedDisk("cidata", {{"meta-data", "id\n"}, {"user-data", large}, {"empty", ""}});
  ASSERT_EQ(disk.size() % kSector, 0U);
  for (const size_t descriptor : {16, 17}) {
    const std::string_view sector = std::string_view(disk).substr(descriptor * kSector, kSector);
    EXPECT_EQ(sector[0], static_cast<char>(descriptor - 15));
    EXPECT_EQ(sector.substr(1, 5), "CD001");
    EXPECT_EQ(Number(sector, 80) * kSector, disk.size());
  }
  EXPECT_EQ(disk.substr(16 * kSector + 40, 7), "cidata ");
  EXPECT_EQ(disk.substr(17 * kSector + 40, 4), std::string("\0c\0i", 4));
  EXPECT_EQ(disk.substr(18 * kSector, 6),
            "\xff"
            "CD001");
  const auto joliet = Files(disk, 17, 2);
  EXPECT_EQ(joliet,
            (std::map<std::string, std::string>{
                {"meta-data", "id\n"}, {"user-data", large}, {"empty", ""}}));
  const auto short_names = Files(disk, 16, 1);
  EXPECT_EQ(short_names.size(), 3U);
  EXPECT_EQ(short_names.at("FILEB.;1"), large);
}

TEST(NetworkConfig, IsMissingWhereCloudInitDoesTheSameWithoutIt) {
  EXPECT_FALSE(NetworkConfig({}).has_value());
  EXPECT_FALSE(NetworkConfig({{.mac = "52:54:00:00:00:01", .ips = {"10.0.0.1"}}}).has_value());
}

TEST(NetworkConfig, AsksByDhcpOnEachInterfaceThatIsAnswered) {
  const auto file = NetworkConfig({{.mac = "52:54:00:00:00:01", .ips = {"10.0.0.1"}},
                                   {.mac = "52:54:00:00:00:02", .ips = {"10.1.0.1", "10.1.0.2"}},
                                   {.mac = "52:54:00:00:00:03", .ips = {}}});
  ASSERT_TRUE(file.has_value());
  EXPECT_EQ(file->content,
            "version: 2\n"
            "ethernets:\n"
            "  nic0:\n"
            "    match: {macaddress: \"52:54:00:00:00:01\"}\n"
            "    dhcp4: true\n"
            "  nic1:\n"
            "    match: {macaddress: \"52:54:00:00:00:02\"}\n"
            "    dhcp4: true\n"
            "  nic2:\n"
            "    match: {macaddress: \"52:54:00:00:00:03\"}\n"
            "    dhcp4: false\n");
}

TEST(NetworkConfig, TellsWhatNoDhcpTells) {
  const auto alone = NetworkConfig({{.mac = "52:54:00:00:00:01", .ips = {"fd00::1"}}});
  ASSERT_TRUE(alone.has_value());
  EXPECT_TRUE(alone->content.contains("addresses: [\"fd00::1/64\"]")) << alone->content;
  const auto file = NetworkConfig({{.mac = "52:54:00:00:00:01", .ips = {"10.0.0.1"}},
                                   {.mac = "52:54:00:00:00:02", .ips = {"fd00::2", "fd00:1::2"}}});
  ASSERT_TRUE(file.has_value());
  EXPECT_EQ(file->name, "network-config");
  EXPECT_EQ(file->content,
            "version: 2\n"
            "ethernets:\n"
            "  nic0:\n"
            "    match: {macaddress: \"52:54:00:00:00:01\"}\n"
            "    dhcp4: true\n"
            "  nic1:\n"
            "    match: {macaddress: \"52:54:00:00:00:02\"}\n"
            "    dhcp4: false\n"
            "    addresses: [\"fd00::2/64\", \"fd00:1::2/64\"]\n");
}

TEST(NoCloudFiles, SayWhoTheGuestIsWhateverItsNameIs) {
  const auto files = NoCloudFiles("m-1", "web", "#cloud-config\nx: 1\n");
  ASSERT_EQ(files.size(), 2U);
  EXPECT_EQ(files[0].name, "meta-data");
  EXPECT_EQ(files[0].content, "instance-id: \"m-1\"\nlocal-hostname: \"web\"\n");
  EXPECT_EQ(files[1].name, "user-data");
  EXPECT_EQ(files[1].content, "#cloud-config\nx: 1\n");
  EXPECT_EQ(NoCloudFiles("m-1", "", "")[0].content, "instance-id: \"m-1\"\n");
  EXPECT_EQ(NoCloudFiles("m-1", "", "")[1].content, "#cloud-config\n");
  EXPECT_EQ(NoCloudFiles("m-1", "a\"\nroot: yes", "")[0].content,
            "instance-id: \"m-1\"\nlocal-hostname: \"a\\\"\\nroot: yes\"\n");
}

TEST(IsCloudInit, KnowsItsBeginnings) {
  for (const char* data : {"#cloud-config\n", "#!/bin/sh\n", "Content-Type: multipart/mixed"}) {
    EXPECT_TRUE(IsCloudInit(data)) << data;
  }
  for (const char* data : {"", R"({"ignition":{"version":"3.4.0"}})", "variant: fcos", "#"}) {
    EXPECT_FALSE(IsCloudInit(data)) << data;
  }
}

}  // namespace
}  // namespace berth::runtime
