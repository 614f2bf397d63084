// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "apiserver/registry/cluster_identity.h"
#include "app/backup/backup_contents.h"
#include "app/backup/backup_file.h"
#include "app/backup/restored_access.h"
#include "app/backup/state_copy.h"
#include "app/backup_job.h"
#include "app/leading/presence.h"
#include "app/server_in_use.h"
#include "app/store_place.h"
#include "base/strings.h"
#include "pki/certificate_authority.h"
#include "pki/private_file.h"
#include "store/etcd/etcd_store.h"
#include "store/rocks/rocks_store.h"
#include "store/sealed/key_file.h"

namespace berth::app {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kAuthorityFile = "pki/ca.pem";
constexpr std::string_view kKeysFile = "pki/encryption-keys";

Result<BackupContents> CheckBackupFile(const std::string& path, const std::string& passphrase) {
  TRY(const auto reader, BackupReader::Open(path, passphrase));
  return CheckBackup(*reader);
}

// Reads it a second time, into the store.
rt::Task<Status> Fill(store::Store* store, std::string path, std::string passphrase) {
  CO_TRY(const auto reader, BackupReader::Open(path, passphrase));
  co_return co_await FillFromBackup(*store, reader.get());
}

Status CheckAuthority(const DataPlace& place, const BackupContents& contents, KeepAuthority keep) {
  const std::string path = place.data_dir + "/" + std::string(kAuthorityFile);
  const auto backup = contents.files.find(kAuthorityFile);
  if (backup == contents.files.end() || keep == KeepAuthority::kYes || !fs::exists(path)) {
    return OkStatus();
  }
  TRY(const std::string present, pki::ReadPrivateFile(path));
  if (present == backup->second) return OkStatus();
  // The same, with a change behind it: hosts and users know this one.
  if (pki::CertificateAuthority::Compare(present, backup->second) ==
      std::strong_ordering::greater) {
    return OkStatus();
  }
  return Conflict("restore: " + path +
                  " is another authority than the backup's, which hosts and users know: move " +
                  place.data_dir + "/pki away, or say --keep-authority if it was rotated since");
}

// What is there stays: it is the same, or newer. Keys of both are needed.
Status WriteFiles(const DataPlace& place, const BackupContents& contents) {
  TRY_STATUS(pki::EnsurePrivateFolder(place.data_dir + "/pki"));
  for (const auto& [name, content] : contents.files) {
    if (name == kKeysFile) {
      TRY(const store::Keyring ring, store::Keyring::Parse(content));
      TRY_STATUS(store::KeyFile::Merge(place.key_file, ring));
      continue;
    }
    const std::string path = place.data_dir + "/" + name;
    if (!fs::exists(path)) TRY_STATUS(pki::WritePrivateFile(path, content));
  }
  return OkStatus();
}

// The numbers of the last restore into this data folder: an etcd that was emptied has forgotten
// them. "ID INCARNATION REVISION".
Before ReadLastRestore(const DataPlace& place) {
  Before before;
  const Result<std::string> text = pki::ReadPrivateFile(place.data_dir + "/last-restore");
  if (!text.ok()) return before;
  const std::vector<std::string_view> parts = Split(Trim(*text), ' ');
  if (parts.size() != 3) return before;
  const auto incarnation = ParseUint(parts[1]);
  const auto revision = ParseInt(parts[2]);
  if (!incarnation || !revision) return before;
  before.identity = client::ClusterIdentity{
      .id = std::string(parts[0]), .incarnation = *incarnation, .start = 0, .is_rewound = false};
  before.revision = {*revision};
  return before;
}

Status WriteLastRestore(const DataPlace& place,
                        const client::ClusterIdentity& identity,
                        int64_t revision) {
  return pki::WritePrivateFile(place.data_dir + "/last-restore",
                               identity.id + " " + std::to_string(identity.incarnation) + " " +
                                   std::to_string(revision) + "\n");
}

Before Later(Before one, const Before& other) {
  one.revision = std::max(one.revision, other.revision);
  if (!one.identity.has_value() ||
      (other.identity.has_value() && other.identity->id == one.identity->id &&
       other.identity->incarnation > one.identity->incarnation)) {
    const uint64_t start = one.identity.has_value() ? one.identity->start : 0;
    one.identity = other.identity;
    if (one.identity.has_value()) one.identity->start = std::max(one.identity->start, start);
  }
  return one;
}

struct Job {
  rt::AsioLoop& loop;
  const DataPlace place;
  const BackupRestoreOptions options;
  const BackupContents contents;
};

// Fills `handle`, which shows revisions from `restored->revision` on.
rt::Task<Status> FillAndBegin(Job* job, store::Store* handle, Before before, Restored* restored) {
  CO_TRY_STATUS(co_await Fill(handle, job->options.path, job->options.passphrase));
  CO_TRY_STATUS(co_await EnterRevocations(job->loop, *handle, job->options.revoked));
  CO_TRY(const client::ClusterIdentity identity,
         co_await apiserver::BeginIncarnation(job->loop, *handle, std::move(before.identity)));
  CO_TRY(const store::Revision now, co_await handle->CurrentRevision());
  CO_TRY_STATUS(co_await handle->Compact(now));
  restored->incarnation = identity.incarnation;
  CO_TRY_STATUS(WriteFiles(job->place, job->contents));
  co_return WriteLastRestore(job->place, identity, restored->revision);
}

rt::Task<Status> IntoEmbedded(Job* job, Before before, Restored* restored) {
  const std::string store = job->place.data_dir + "/store";
  const std::string made = store + ".restoring";
  CO_TRY_STATUS(CheckNotInUse("restore", store));
  std::error_code error;
  fs::remove_all(made, error);
  CO_TRY(const Before present, co_await ReadBefore(&job->loop, store));
  before = Later(present, before);
  store::RocksOptions options;
  options.dir = made;
  CO_TRY(const auto rocks, store::RocksStore::Open(job->loop, std::move(options)));
  std::unique_ptr<store::Store> handle = rocks->NewHandle();
  restored->revision = std::max(before.revision.value, job->contents.head.revision) + kRevisionJump;
  rocks->SkipRevisions(restored->revision);
  const Status filled = co_await FillAndBegin(job, handle.get(), std::move(before), restored);
  handle.reset();
  CO_TRY_STATUS(co_await rocks->Close());
  CO_TRY_STATUS(filled);
  CO_TRY(restored->set_aside, PutStoreInPlace(made, store));
  co_return SyncFolder(job->place.data_dir);
}

rt::Task<Status> FillEtcd(Job* job, store::Store* handle, Before before, Restored* restored) {
  // One that went on would add the old base to revisions, and its clients would not be told 410.
  CO_TRY_STATUS(co_await CheckNobodyServesEmptied(*handle));
  CO_TRY_STATUS(co_await BeginFilling(*handle));
  CO_TRY(const store::Revision raw, co_await handle->CurrentRevision());
  restored->revision = std::max(before.revision.value, job->contents.head.revision) + kRevisionJump;
  const int64_t base = std::max<int64_t>(0, restored->revision - raw.value);
  CO_TRY_STATUS(co_await PutMark(*handle, kBaseKey, std::to_string(base)));
  CO_TRY_STATUS(co_await FillAndBegin(job, handle, std::move(before), restored));
  co_return co_await EndFilling(*handle);
}

rt::Task<Status> IntoEtcd(Job* job, Before before, Restored* restored) {
  CO_TRY(const auto etcd, co_await store::EtcdStore::Open(job->loop, *job->place.etcd));
  std::unique_ptr<store::Store> handle = etcd->NewHandle();
  const Status filled = co_await FillEtcd(job, handle.get(), std::move(before), restored);
  handle.reset();
  CO_TRY_STATUS(co_await etcd->Close());
  co_return filled.ok() ? filled : filled.Wrap("restore into etcd");
}

}  // namespace

rt::Task<Result<Restored>> RestoreBackup(rt::AsioLoop& loop,
                                         DataPlace place,
                                         BackupRestoreOptions options) {
  if (IsServerRunning(place.data_dir)) {
    co_return Conflict("restore: a server runs on " + place.data_dir + ": stop it first");
  }
  CO_TRY(BackupContents contents, CheckBackupFile(options.path, options.passphrase));
  CO_TRY_STATUS(CheckAuthority(place, contents, options.keep));
  CO_TRY_STATUS(pki::EnsurePrivateFolder(place.data_dir));
  Job job{.loop = loop,
          .place = std::move(place),
          .options = std::move(options),
          .contents = std::move(contents)};
  Before before = ReadLastRestore(job.place);
  Restored restored;
  if (job.place.etcd.has_value()) {
    CO_TRY_STATUS(co_await IntoEtcd(&job, std::move(before), &restored));
  } else {
    CO_TRY_STATUS(co_await IntoEmbedded(&job, std::move(before), &restored));
  }
  co_return restored;
}

}  // namespace berth::app
