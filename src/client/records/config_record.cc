// SPDX-License-Identifier: Apache-2.0
#include "client/records/config_record.h"

#include <utility>

#include "apis/k8s/config_map.h"

namespace berth::client {
namespace {

using apis::k8s::ConfigMap;
using apis::k8s::kConfigMapKind;

constexpr int kAttemptsMax = 10;  // against other writers of one record, which are few

ObjectKey KeyOf(const std::string& name) {
  return {.namespace_ = std::string(kRecordNamespace), .name = name};
}

// The record, or a new one without a resourceVersion.
rt::Task<Result<ConfigMap>> ReadOrNew(Client& client, std::string name) {
  auto object = co_await client.Get(kConfigMapKind, KeyOf(name));
  if (object.ok()) co_return std::move(object->as<ConfigMap>());
  if (!object.status().Is(Reason::kNotFound)) co_return object.status();
  ConfigMap fresh;
  fresh.metadata.namespace_ = kRecordNamespace;
  fresh.metadata.name = name;
  co_return fresh;
}

}  // namespace

rt::Task<Result<std::optional<RecordEntries>>> ReadRecord(Client& client, std::string name) {
  auto object = co_await client.Get(kConfigMapKind, KeyOf(name));
  if (object.status().Is(Reason::kNotFound)) co_return std::optional<RecordEntries>();
  if (!object.ok()) co_return object.status();
  co_return std::optional<RecordEntries>(std::move(object->as<ConfigMap>().data));
}

rt::Task<Result<RecordEntries>> EditRecord(Client& client,
                                           std::string name,
                                           std::function<bool(RecordEntries&)> change) {
  Status last;
  for (int attempt = 0; attempt < kAttemptsMax; ++attempt) {
    CO_TRY(ConfigMap record, co_await ReadOrNew(client, name));
    if (!change(record.data)) co_return std::move(record.data);
    RecordEntries entries = record.data;
    const bool is_new = record.metadata.resource_version.empty();
    meta::Object object = meta::Object::Of(kConfigMapKind, std::move(record));
    const WriteOptions options;
    auto written = is_new ? co_await client.Create(std::move(object), options)
                          : co_await client.Update(std::move(object), options);
    if (written.ok()) co_return entries;
    last = written.status();
    if (!last.Is(Reason::kConflict) && !last.Is(Reason::kAlreadyExists)) co_return last;
  }
  co_return last.Wrap("record " + name);
}

}  // namespace berth::client
