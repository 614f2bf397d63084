// SPDX-License-Identifier: Apache-2.0
#include "client/records/tombstones.h"

#include <functional>

#include "base/strings.h"
#include "base/uid.h"

namespace berth::client {

std::string TombstoneRecordName(std::string_view pool_uid) {
  return std::string(kTombstoneRecordPrefix) + std::string(pool_uid);
}

Tombstones ParseTombstones(const RecordEntries& entries) {
  Tombstones tombstones;
  for (const auto& [uid, text] : entries) {
    const auto parts = Split(text, ' ');
    if (!IsUid(uid) || parts.size() != 2) continue;
    const auto placement = ParseUint(parts[1]);
    if (!placement || parts[0].empty()) continue;
    tombstones[uid] = Tombstone{.kind = std::string(parts[0]), .placement = *placement};
  }
  return tombstones;
}

rt::Task<Status> AddTombstone(Client& client,
                              std::string pool_uid,
                              std::string uid,
                              Tombstone tombstone) {
  const std::string text = tombstone.kind + " " + std::to_string(tombstone.placement);
  const std::function<bool(RecordEntries&)> edit = [uid, text](RecordEntries& entries) {
    if (entries.contains(uid) && entries[uid] == text) return false;
    entries[uid] = text;
    return true;
  };
  const auto written = co_await EditRecord(client, TombstoneRecordName(pool_uid), edit);
  co_return written.status();
}

rt::Task<Status> RemoveTombstone(Client& client, std::string pool_uid, std::string uid) {
  const std::function<bool(RecordEntries&)> edit = [uid](RecordEntries& entries) {
    return entries.erase(uid) > 0;
  };
  const auto written = co_await EditRecord(client, TombstoneRecordName(pool_uid), edit);
  co_return written.status();
}

}  // namespace berth::client
