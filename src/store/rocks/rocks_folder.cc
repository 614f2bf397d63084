// SPDX-License-Identifier: Apache-2.0
#include "store/rocks/rocks_folder.h"

#include <fmt/format.h>
#include <rocksdb/listener.h>

#include <algorithm>
#include <atomic>
#include <string>
#include <utility>
#include <vector>

#include "store/rocks/linked_files.h"
#include "store/rocks/private_files.h"
#include "store/rocks/rocks_options.h"

namespace berth::store {
namespace {

constexpr std::string_view kProbeName = "space.probe";
constexpr size_t kProbeBlockBytes = 1024 * 1024;
// What an open writes besides the log: its description of files, and RocksDB's messages.
constexpr uint64_t kOpenBytes = 4 * 1024 * 1024;

rocksdb::Status WriteProbe(rocksdb::Env& env, const std::string& path, uint64_t bytes) {
  std::unique_ptr<rocksdb::WritableFile> file;
  rocksdb::Status status = env.NewWritableFile(path, &file, rocksdb::EnvOptions());
  // Not zeros, which some file systems do not store.
  const std::string block(kProbeBlockBytes, 'x');
  while (status.ok() && bytes > 0) {
    const size_t size = std::min<uint64_t>(bytes, block.size());
    status = file->Append(rocksdb::Slice(block.data(), size));
    bytes -= size;
  }
  if (status.ok()) status = file->Sync();
  if (status.ok()) status = file->Close();
  return status;
}

// RocksDB makes a new database where CURRENT is missing, and later deletes the files of the old
// one. A folder that was never finished has no such files: they come after CURRENT.
rocksdb::Status CheckDescribed(rocksdb::Env& env, const std::string& dir) {
  if (!env.FileExists(dir + "/CURRENT").IsNotFound()) return rocksdb::Status::OK();
  std::vector<std::string> names;
  rocksdb::Status listed = env.GetChildren(dir, &names);
  std::ranges::sort(names);
  for (const std::string& name : names) {
    if (!name.ends_with(".sst") && !name.ends_with(".log")) continue;
    return rocksdb::Status::Corruption("CURRENT is missing, but there is " + name);
  }
  return listed;
}

}  // namespace

class RocksFolder::Listener final : public rocksdb::EventListener {
 public:
  Listener(std::string dir, std::function<void(const Status&)> on_error)
      : dir_(std::move(dir)), on_error_(std::move(on_error)) {}

  void OnBackgroundError(rocksdb::BackgroundErrorReason /*reason*/,
                         rocksdb::Status* status) override {
    on_error_(Failed(*status));
  }
  // Otherwise RocksDB would try to resume by itself as soon as the disk has space.
  void OnErrorRecoveryBegin(rocksdb::BackgroundErrorReason /*reason*/,
                            rocksdb::Status /*status*/,
                            bool* auto_recovery) override {
    *auto_recovery = false;
  }

  Status Failed(const rocksdb::Status& write) {
    if (!write.IsNoSpace()) only_lacked_space_ = false;
    return WriteError(dir_, write);
  }
  std::atomic<bool>& only_lacked_space() { return only_lacked_space_; }

 private:
  const std::string dir_;
  const std::function<void(const Status&)> on_error_;
  std::atomic<bool> only_lacked_space_ = true;
};

RocksFolder::RocksFolder(RocksOptions options, std::shared_ptr<Listener> listener)
    : options_(std::move(options)),
      listener_(std::move(listener)),
      own_env_(options_.env == nullptr ? NewPrivateFilesEnv() : nullptr) {}
RocksFolder::~RocksFolder() = default;

Result<std::unique_ptr<RocksFolder>> RocksFolder::Open(
    const RocksOptions& options, std::function<void(const Status&)> on_background_error) {
  TRY_STATUS(PrepareFolder(options));
  auto listener = std::make_shared<Listener>(options.dir, std::move(on_background_error));
  std::unique_ptr<RocksFolder> folder(new RocksFolder(options, std::move(listener)));
  const rocksdb::Status opened = folder->OpenDb();
  if (!opened.ok()) return OpenError(options.dir, opened);
  // What processes that died while they read from outside, or tried the room, left behind.
  const std::string probe = fmt::format("{}/{}", options.dir, kProbeName);
  if (options.env == nullptr) RemoveLinkedFolders(options.dir);
  if (folder->env().FileExists(probe).ok()) folder->env().DeleteFile(probe).PermitUncheckedError();
  return folder;
}

rocksdb::Env& RocksFolder::env() const { return own_env_ != nullptr ? *own_env_ : *options_.env; }

rocksdb::Options RocksFolder::MakeOptions() {
  rocksdb::Options options = MakeRocksOptions(options_, listener_);
  options.env = &env();
  return options;
}

rocksdb::Status RocksFolder::OpenDb() {
  rocksdb::Status described = CheckDescribed(env(), options_.dir);
  if (!described.ok()) return described;
  rocksdb::DB* raw = nullptr;
  rocksdb::Status opened = rocksdb::DB::Open(MakeOptions(), options_.dir, &raw);
  db_.reset(raw);
  return opened;
}

rocksdb::Status RocksFolder::OpenForReading() {
  rocksdb::DB* raw = nullptr;
  rocksdb::Status opened = rocksdb::DB::OpenForReadOnly(MakeOptions(), options_.dir, &raw);
  db_.reset(raw);
  return opened;
}

Result<rocksdb::DB*> RocksFolder::db() const {
  if (db_ == nullptr) return closed_;
  return db_.get();
}

Status RocksFolder::Failed(const rocksdb::Status& write) { return listener_->Failed(write); }

Status RocksFolder::MayReopen() const {
  if (listener_->only_lacked_space()) return OkStatus();
  return Unavailable(fmt::format(
      "data folder {} stays read-only until a restart: a write failed not for lack of space",
      options_.dir));
}

Status RocksFolder::CheckRoom() {
  uint64_t memtables = 0;
  if (db_ == nullptr || !db_->GetIntProperty("rocksdb.cur-size-all-mem-tables", &memtables)) {
    memtables = 2 * options_.memtable_bytes;
  }
  const uint64_t needed = memtables + kOpenBytes;
  uint64_t free = 0;
  if (env().GetFreeSpace(options_.dir, &free).ok() && free < needed) {
    return WriteError(options_.dir, rocksdb::Status::NoSpace());
  }
  // What is said to be free may be forbidden by a quota, or taken already.
  const std::string path = fmt::format("{}/{}", options_.dir, kProbeName);
  const rocksdb::Status written = WriteProbe(env(), path, needed);
  env().DeleteFile(path).PermitUncheckedError();
  return written.ok() ? OkStatus() : WriteError(options_.dir, written);
}

Status RocksFolder::Reopen() {
  db_.reset();
  listener_->only_lacked_space() = true;
  const rocksdb::Status opened = OpenDb();
  if (opened.ok()) return OkStatus();
  closed_ = OpenError(options_.dir, opened);
  OpenForReading().PermitUncheckedError();
  return WriteError(options_.dir, opened);
}

}  // namespace berth::store
