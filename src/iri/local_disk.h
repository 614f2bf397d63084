// SPDX-License-Identifier: Apache-2.0
// How a volume that is a file of this host is told to the machine runtime beside it: the words of
// VolumeAccess (and of a machine's VolumeConnection). The handle is the volume's id.
#pragma once

#include <string_view>

namespace berth::iri {

inline constexpr std::string_view kFileDriver = "file";

// A fact of such a runtime's host: a new pool of it is used from the same host only.
inline constexpr std::string_view kVolumeReachFact = "volume-reach";
inline constexpr std::string_view kHostReach = "Host";

// Attributes.
inline constexpr std::string_view kPathAttribute = "path";      // absolute
inline constexpr std::string_view kFormatAttribute = "format";  // never to be probed
inline constexpr std::string_view kTpsAttribute = "tps";    // bytes per second; absent: no limit
inline constexpr std::string_view kIopsAttribute = "iops";  // operations per second; the same

// Values of kFormatAttribute.
inline constexpr std::string_view kQcow2Format = "qcow2";
inline constexpr std::string_view kRawFormat = "raw";
// A raw file that begins with a LUKS header; the key is kEncryptionKeyEntry of the volume's
// encryption data.
inline constexpr std::string_view kLuksFormat = "luks";
inline constexpr std::string_view kEncryptionKeyEntry = "encryptionKey";

}  // namespace berth::iri
