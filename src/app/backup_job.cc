// SPDX-License-Identifier: Apache-2.0
#include "app/backup_job.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <utility>
#include <vector>

#include "app/backup/backup_file.h"
#include "app/backup/state_copy.h"
#include "pki/private_file.h"
#include "store/etcd/etcd_store.h"
#include "store/rocks/live_reader.h"

namespace berth::app {
namespace {

namespace fs = std::filesystem;

// Of the folder pki: not what is made anew, of the moment, or hidden there by somebody else.
bool BelongsIntoBackup(const fs::path& file) {
  const std::string name = file.filename().string();
  return name != "server.pem" && !name.starts_with('.') && !name.ends_with(".tmp") &&
         !name.ends_with(".lock") && !name.ends_with(".done");
}

Status AddFiles(const DataPlace& place, BackupWriter& writer, BackupMade& made) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(place.data_dir + "/pki", error)) {
    if (entry.is_regular_file() && BelongsIntoBackup(entry.path())) {
      names.push_back(entry.path().filename().string());
    }
  }
  if (error) return Unavailable("backup: " + place.data_dir + "/pki: " + error.message());
  std::ranges::sort(names);
  for (const std::string& name : names) {
    if (name == "encryption-keys") continue;
    TRY(const std::string content, pki::ReadPrivateFile(place.data_dir + "/pki/" + name));
    TRY_STATUS(writer.AddFile("pki/" + name, content));
    ++made.files;
  }
  TRY(const std::string keys, pki::ReadPrivateFile(place.key_file));
  ++made.files;
  return writer.AddFile("pki/encryption-keys", keys);
}

Status AddEmbedded(const DataPlace& place, BackupWriter& writer, BackupMade& made) {
  const auto add = [&](const store::KeyValue& item) {
    if (!IsCopied(item)) return OkStatus();
    ++made.values;
    return writer.AddValue(item.key, item.value.view());
  };
  TRY(const store::LiveState state, store::ReadLiveStore(place.data_dir + "/store", add));
  made.revision = state.revision.value;
  return OkStatus();
}

rt::Task<Status> AddEtcd(store::Store* store, BackupWriter* writer, BackupMade* made) {
  CO_TRY_STATUS(co_await CheckFilled(*store));
  CO_TRY(const int64_t base, co_await ReadRevisionBase(*store));
  StateReader reader(*store);
  while (true) {
    CO_TRY(const std::vector<store::KeyValue> values, co_await reader.Next());
    if (values.empty()) break;
    for (const store::KeyValue& item : values) {
      ++made->values;
      CO_TRY_STATUS(writer->AddValue(item.key, item.value.view()));
    }
  }
  made->revision = reader.revision().value + base;
  co_return OkStatus();
}

rt::Task<Status> AddValues(rt::AsioLoop* loop,
                           DataPlace place,
                           BackupWriter* writer,
                           BackupMade* made) {
  if (!place.etcd.has_value()) co_return AddEmbedded(place, *writer, *made);
  CO_TRY(const auto etcd, co_await store::EtcdStore::Open(*loop, *std::move(place.etcd)));
  std::unique_ptr<store::Store> handle = etcd->NewHandle();
  const Status added = co_await AddEtcd(handle.get(), writer, made);
  handle.reset();
  CO_TRY_STATUS(co_await etcd->Close());
  co_return added;
}

}  // namespace

rt::Task<Result<BackupMade>> MakeBackup(rt::AsioLoop& loop,
                                        DataPlace place,
                                        std::string path,
                                        std::string passphrase) {
  CO_TRY(const std::unique_ptr<BackupWriter> writer, BackupWriter::Begin(path, passphrase));
  BackupMade made;
  CO_TRY_STATUS(co_await AddValues(&loop, place, writer.get(), &made));
  // After the values: a key is in its file before anything is encrypted with it.
  CO_TRY_STATUS(AddFiles(place, *writer, made));
  BackupHead head;
  head.revision = made.revision;
  head.created = loop.WallNow().seconds();
  CO_TRY_STATUS(writer->AddHead(head));
  CO_TRY_STATUS(writer->Finish());
  co_return made;
}

}  // namespace berth::app
