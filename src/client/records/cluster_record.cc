// SPDX-License-Identifier: Apache-2.0
#include "client/records/cluster_record.h"

#include <functional>
#include <optional>

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

}  // namespace

RecordEntries FormatCluster(const ClusterIdentity& identity) {
  return {{"id", identity.id},
          {"incarnation", std::to_string(identity.incarnation)},
          {"starts", std::to_string(identity.start)}};
}

Result<ClusterIdentity> ParseCluster(const RecordEntries& entries) {
  ClusterIdentity identity;
  const auto id = entries.find("id");
  if (id == entries.end() || !IsUid(id->second)) {
    return BadRequest("record cluster: data.id must be a UID");
  }
  identity.id = id->second;
  TRY(identity.incarnation, NumberOf(entries, "incarnation"));
  TRY(identity.start, NumberOf(entries, "starts"));
  return identity;
}

rt::Task<Status> PublishCluster(Client& client, ClusterIdentity identity) {
  const std::function<bool(RecordEntries&)> edit = [identity](RecordEntries& entries) {
    RecordEntries now = FormatCluster(identity);
    if (entries == now) return false;
    entries = std::move(now);
    return true;
  };
  const auto written = co_await EditRecord(client, std::string(kClusterRecord), edit);
  co_return written.status();
}

}  // namespace berth::client
