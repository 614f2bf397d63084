// SPDX-License-Identifier: Apache-2.0
// What is known of a host that has joined: the record `host-<name>`. It holds what its token
// granted, and the keys by which it is known.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "client/records/config_record.h"
#include "pki/join_token.h"

namespace berth::client {

inline constexpr std::string_view kHostRecordPrefix = "host-";
inline constexpr std::string_view kHostUserPrefix = "berth:host:";
inline constexpr std::string_view kHostGroup = "berth:hosts";
// 64 bytes of a certificate's common name, less its prefix.
inline constexpr size_t kHostNameMax = 64 - kHostUserPrefix.size();

// The certificate that the host was given last.
struct HostCertificate {
  std::string authority;  // the name of who signed it; "" if it was not noted
  WallTime until;
  bool operator==(const HostCertificate&) const = default;
};

// A host that is there, and what it has.
struct HeldCertificate {
  std::string host;
  std::vector<std::string> pools;  // "machinepool/name", sorted
  HostCertificate certificate;
};

struct HostRecord {
  pki::JoinGrant grant;
  // Hashes of public keys, newest first, at most two: a renewal whose answer was lost leaves the
  // host with the older one.
  std::vector<std::string> keys;
  WallTime joined;
  HostCertificate certificate = {};
  bool operator==(const HostRecord&) const = default;
};

std::string HostRecordName(std::string_view host);
// Lower case letters, digits, '-' and '.', beginning and ending with a letter or digit.
bool IsHostName(std::string_view host);

Result<HostRecord> ParseHostRecord(const RecordEntries& entries);
RecordEntries FormatHostRecord(const HostRecord& record);

// The key comes first from now on; the one before stays, older ones go.
void RememberKey(HostRecord& record, const std::string& key_hash);
bool KnowsKey(const HostRecord& record, std::string_view key_hash);

}  // namespace berth::client
