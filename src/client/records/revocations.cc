// SPDX-License-Identifier: Apache-2.0
#include "client/records/revocations.h"

#include <functional>
#include <limits>

namespace berth::client {
namespace {

constexpr std::string_view kHostEntry = "host.";
constexpr std::string_view kSerialEntry = "serial.";
constexpr WallTime kForever = WallTime::FromMicros(std::numeric_limits<int64_t>::max());

rt::Task<Status> Enter(Client& client, std::string entry, WallTime now) {
  const std::function<bool(RecordEntries&)> edit = [entry, now](RecordEntries& entries) {
    entries[entry] = FormatRfc3339(now);
    return true;
  };
  const auto written = co_await EditRecord(client, std::string(kRevocationRecord), edit);
  co_return written.status();
}

}  // namespace

Revocations::Revocations(const RecordEntries& entries) {
  for (const auto& [entry, value] : entries) {
    const auto parsed = ParseRfc3339(value);
    const WallTime until = parsed.ok() ? *parsed : kForever;
    const std::string_view name = entry;
    if (name.starts_with(kHostEntry)) hosts_.emplace(name.substr(kHostEntry.size()), until);
    if (name.starts_with(kSerialEntry)) serials_.emplace(name.substr(kSerialEntry.size()), until);
  }
}

bool Revocations::Covers(std::string_view host, std::string_view serial, WallTime issued) const {
  if (serials_.contains(serial)) return true;
  const auto found = hosts_.find(host);
  return found != hosts_.end() && issued <= found->second;
}

rt::Task<Status> RevokeHost(Client& client, std::string host, WallTime now) {
  co_return co_await Enter(client, std::string(kHostEntry) + host, now);
}

rt::Task<Status> RevokeSerial(Client& client, std::string serial, WallTime now) {
  co_return co_await Enter(client, std::string(kSerialEntry) + serial, now);
}

}  // namespace berth::client
