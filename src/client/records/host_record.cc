// SPDX-License-Identifier: Apache-2.0
#include "client/records/host_record.h"

#include <algorithm>

#include "base/strings.h"

namespace berth::client {
namespace {

constexpr size_t kKeysMax = 2;
constexpr std::string_view kCertificateAuthority = "certificateAuthority";
constexpr std::string_view kCertificateUntil = "certificateUntil";

bool IsAlphanumeric(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }

}  // namespace

std::string HostRecordName(std::string_view host) {
  return std::string(kHostRecordPrefix) + std::string(host);
}

bool IsHostName(std::string_view host) {
  const auto allowed = [](char c) { return IsAlphanumeric(c) || c == '-' || c == '.'; };
  return !host.empty() && host.size() <= kHostNameMax && IsAlphanumeric(host.front()) &&
         IsAlphanumeric(host.back()) && std::ranges::all_of(host, allowed) &&
         host.find("..") == std::string_view::npos;
}

Result<HostRecord> ParseHostRecord(const RecordEntries& entries) {
  HostRecord record;
  TRY(record.grant, pki::ParseGrant(entries));
  const auto keys = entries.find("keys");
  if (keys != entries.end()) {
    for (std::string_view key : Split(keys->second, ',')) {
      if (!key.empty()) record.keys.emplace_back(key);
    }
  }
  const auto joined = entries.find("joined");
  if (joined == entries.end()) return BadRequest("host record: data.joined is missing");
  TRY(record.joined, ParseRfc3339(joined->second));
  const auto authority = entries.find(std::string(kCertificateAuthority));
  const auto until = entries.find(std::string(kCertificateUntil));
  if (authority != entries.end() && until != entries.end()) {
    record.certificate.authority = authority->second;
    TRY(record.certificate.until, ParseRfc3339(until->second));
  }
  return record;
}

RecordEntries FormatHostRecord(const HostRecord& record) {
  RecordEntries entries = pki::GrantEntries(record.grant);
  entries["keys"] = Join(record.keys, ",");
  entries["joined"] = FormatRfc3339(record.joined);
  if (!record.certificate.authority.empty()) {
    entries[std::string(kCertificateAuthority)] = record.certificate.authority;
    entries[std::string(kCertificateUntil)] = FormatRfc3339(record.certificate.until);
  }
  return entries;
}

void RememberKey(HostRecord& record, const std::string& key_hash) {
  std::erase(record.keys, key_hash);
  record.keys.insert(record.keys.begin(), key_hash);
  if (record.keys.size() > kKeysMax) record.keys.resize(kKeysMax);
}

bool KnowsKey(const HostRecord& record, std::string_view key_hash) {
  return std::ranges::find(record.keys, key_hash) != record.keys.end();
}

}  // namespace berth::client
