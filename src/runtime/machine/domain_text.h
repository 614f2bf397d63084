// SPDX-License-Identifier: Apache-2.0
// What is read out of XML that we wrote ourselves and libvirt gave back. No parser: the few values
// looked for are plain names.
#pragma once

#include <string>
#include <string_view>

#include "runtime/machine/hypervisor.h"

namespace berth::runtime {

// The text of the first <name> element; "" if there is none.
std::string DomainNameIn(std::string_view xml);
std::string UuidIn(std::string_view xml);
// Disks and interfaces of a domain, or the one device that is all of the text.
DeviceElements DevicesIn(std::string_view xml);
// Whether a device is one that this runtime gives its guests: a disk with a serial number, an
// interface whose host's end was there before. What somebody attaches by hand is neither, unless he
// takes care that it is.
bool IsOwnDevice(std::string_view element);
// The device of the disk ("vda") that is the file at this path; "" if none is.
std::string DeviceOfFile(std::string_view xml, std::string_view path);
// The file that a backup job writes.
std::string BackupTargetIn(std::string_view xml);
// Our element of <metadata>; "" if there is none.
std::string_view MetadataIn(std::string_view xml);

}  // namespace berth::runtime
