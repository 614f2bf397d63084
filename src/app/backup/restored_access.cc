// SPDX-License-Identifier: Apache-2.0
#include "app/backup/restored_access.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <map>
#include <utility>

#include "apis/k8s/config_map.h"
#include "apis/k8s/secret.h"
#include "apiserver/cache/keys.h"
#include "base/strings.h"
#include "base/uid.h"
#include "meta/at_rest.h"
#include "meta/object.h"
#include "pki/join_token.h"
#include "pki/token.h"

namespace berth::app {
namespace {

using apis::k8s::ConfigMap;
using apis::k8s::kConfigMapKind;
using Entries = std::map<std::string, std::string>;

// As large as an object may be: the next revocation must fit, too.
constexpr size_t kRecordBytesMax = 1024 * 1024;

const std::string& SecretsPrefix() {
  static const std::string prefix =
      apiserver::KeyPrefix(apis::k8s::kSecretKind) + std::string(pki::kTokenNamespace) + "/";
  return prefix;
}

// Nobody's entry is weakened: what is there and cannot be read as a time revokes for good.
void Merge(const pki::Revocation& revocation, Entries& entries) {
  const auto [entry, is_new] =
      entries.try_emplace(pki::EntryOf(revocation), pki::ValueOf(revocation));
  if (is_new) return;
  const auto present = ParseRfc3339(Trim(entry->second));
  if (!present.ok() || (revocation.until && *revocation.until <= *present)) return;
  entry->second = pki::ValueOf(revocation);
}

ConfigMap NewRecord(rt::Loop& loop, const std::string& name) {
  ConfigMap record;
  record.metadata.namespace_ = pki::kTokenNamespace;
  record.metadata.name = name;
  record.metadata.uid = NewUid(loop.random());
  record.metadata.generation = 1;
  record.metadata.creation_timestamp = WallTime::FromSeconds(loop.WallNow().seconds());
  return record;
}

rt::Task<Status> EnterInto(rt::Loop* loop,
                           store::Store* store,
                           std::string name,
                           std::vector<pki::Revocation> revocations) {
  const std::string key = apiserver::StoreKey(
      kConfigMapKind, {.namespace_ = std::string(pki::kTokenNamespace), .name = name});
  store::RangeRequest request;
  request.start = key;
  CO_TRY(const store::RangeResult found, co_await store->Range(std::move(request)));
  ConfigMap record;
  if (found.items.empty()) {
    record = NewRecord(*loop, name);
  } else {
    CO_TRY(const meta::Object object,
           meta::DecodeAtRest(kConfigMapKind, found.items[0].value.view(), ""));
    record = object.as<ConfigMap>();
  }
  for (const pki::Revocation& revocation : revocations) Merge(revocation, record.data);
  const Bytes bytes = meta::EncodeAtRest(meta::Object::Of(kConfigMapKind, std::move(record)));
  if (bytes.view().size() > kRecordBytesMax) {
    co_return BadRequest("configmap berth-system/" + name + " with these revocations has " +
                         std::to_string(bytes.view().size()) + " bytes, at most " +
                         std::to_string(kRecordBytesMax));
  }
  store::Txn txn;
  txn.ops.push_back(store::Op::Put(key, bytes));
  const auto committed = co_await store->Commit(std::move(txn));
  co_return committed.status();
}

}  // namespace

bool IsToken(std::string_view key) {
  if (!key.starts_with(SecretsPrefix())) return false;
  key.remove_prefix(SecretsPrefix().size());
  return key.starts_with(pki::kTokenNamePrefix) || key.starts_with(pki::kJoinTokenNamePrefix);
}

rt::Task<Status> VoidTokens(store::Store& store) {
  store::RangeRequest request;
  request.start = SecretsPrefix();
  request.end = store::PrefixEnd(SecretsPrefix());
  request.keys_only = true;
  CO_TRY(const store::RangeResult found, co_await store.Range(std::move(request)));
  std::vector<store::Txn> txns;
  size_t tokens = 0;
  for (const store::KeyValue& item : found.items) {
    if (!IsToken(item.key)) continue;
    if (tokens++ % store::kMaxTxnKeys == 0) txns.emplace_back();
    txns.back().ops.push_back(store::Op::Delete(item.key));
  }
  for (store::Txn& txn : txns) CO_TRY_STATUS(co_await store.Commit(std::move(txn)));
  co_return OkStatus();
}

Result<std::vector<pki::Revocation>> ReadRevocationList(const std::string& path, WallTime now) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  std::string text(pki::kRevocationListBytesMax + 1, '\0');
  if (!file || (!file.read(text.data(), static_cast<std::streamsize>(text.size())) && file.bad())) {
    return NotFound("revocations " + path + ": " +
                    (errno == 0 ? "cannot be read" : std::strerror(errno)));
  }
  text.resize(static_cast<size_t>(file.gcount()));
  Result<std::vector<pki::Revocation>> parsed = pki::ParseRevocations(text, now);
  if (!parsed.ok()) return parsed.status().Wrap("revocations " + path);
  return parsed;
}

rt::Task<Status> EnterRevocations(rt::Loop& loop,
                                  store::Store& store,
                                  std::vector<pki::Revocation> revocations) {
  std::map<std::string, std::vector<pki::Revocation>> by_record;
  for (pki::Revocation& revocation : revocations) {
    by_record[std::string(pki::RecordOf(revocation.kind))].push_back(std::move(revocation));
  }
  for (auto& [name, entries] : by_record) {
    CO_TRY_STATUS(co_await EnterInto(&loop, &store, name, std::move(entries)));
  }
  co_return OkStatus();
}

}  // namespace berth::app
