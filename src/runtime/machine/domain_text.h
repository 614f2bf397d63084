// SPDX-License-Identifier: Apache-2.0
// What is read out of XML that we wrote ourselves and libvirt gave back. No parser: the few values
// looked for are plain names.
#pragma once

#include <set>
#include <string>
#include <string_view>

namespace berth::runtime {

// The text of the first <name> element; "" if there is none.
std::string DomainNameIn(std::string_view xml);
std::string UuidIn(std::string_view xml);
// Targets of disks and addresses of interfaces, in a domain or in one device.
std::set<std::string> DevicesIn(std::string_view xml);
// The device of the disk ("vda") that is the file at this path; "" if none is.
std::string DeviceOfFile(std::string_view xml, std::string_view path);
// The file that a backup job writes.
std::string BackupTargetIn(std::string_view xml);
// Our element of <metadata>; "" if there is none.
std::string_view MetadataIn(std::string_view xml);

}  // namespace berth::runtime
