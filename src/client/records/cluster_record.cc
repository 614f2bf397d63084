// SPDX-License-Identifier: Apache-2.0
#include "client/records/cluster_record.h"

#include <functional>
#include <utility>

#include "base/strings.h"
#include "base/uid.h"

namespace berth::client {
namespace {

Result<uint64_t> NumberOf(const RecordEntries& entries, const std::string& field) {
  const auto found = entries.find(field);
  const auto number =
      found == entries.end() ? std::nullopt : ParseUint(std::string_view(found->second));
  if (!number) return BadRequest("record cluster: data." + field + " must be a number");
  return *number;
}

// Edits the record through its parsed form; a record that cannot be read is an error, not a new
// cluster.
rt::Task<Result<ClusterRecord>> EditCluster(Client& client,
                                            std::string new_id,
                                            std::function<void(ClusterRecord&)> change) {
  Status broken;
  const auto edit = [&broken, new_id, change](RecordEntries& entries) {
    ClusterRecord record{.id = new_id};
    if (!entries.empty() || new_id.empty()) {
      auto parsed = ParseClusterRecord(entries);
      broken = parsed.status();
      if (!parsed.ok()) return false;
      record = *std::move(parsed);
    }
    change(record);
    entries = FormatClusterRecord(record);
    return true;
  };
  const std::function<bool(RecordEntries&)> edit_function = edit;
  CO_TRY(RecordEntries entries,
         co_await EditRecord(client, std::string(kClusterRecord), edit_function));
  if (!broken.ok()) co_return broken;
  co_return ParseClusterRecord(entries);
}

}  // namespace

Result<ClusterRecord> ParseClusterRecord(const RecordEntries& entries) {
  ClusterRecord record;
  const auto id = entries.find("id");
  if (id == entries.end() || !IsUid(id->second)) {
    return BadRequest("record cluster: data.id must be a UID");
  }
  record.id = id->second;
  TRY(record.incarnation, NumberOf(entries, "incarnation"));
  TRY(record.starts, NumberOf(entries, "starts"));
  return record;
}

RecordEntries FormatClusterRecord(const ClusterRecord& record) {
  return {{"id", record.id},
          {"incarnation", std::to_string(record.incarnation)},
          {"starts", std::to_string(record.starts)}};
}

rt::Task<Result<ClusterRecord>> CountStart(Client& client, std::string new_id) {
  const std::function<void(ClusterRecord&)> count = [](ClusterRecord& record) { ++record.starts; };
  co_return co_await EditCluster(client, new_id, count);
}

rt::Task<Result<ClusterRecord>> RaiseIncarnation(Client& client) {
  const std::function<void(ClusterRecord&)> raise = [](ClusterRecord& record) {
    ++record.incarnation;
  };
  co_return co_await EditCluster(client, std::string(), raise);
}

}  // namespace berth::client
