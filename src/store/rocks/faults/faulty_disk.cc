// SPDX-License-Identifier: Apache-2.0
#include "store/rocks/faults/faulty_disk.h"

#include <rocksdb/env.h>
#include <rocksdb/file_system.h>
#include <rocksdb/system_clock.h>

#include <algorithm>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/mutex.h"
#include "base/random.h"
#include "store/rocks/faults/background_gate.h"

namespace berth::store {
namespace {

using rocksdb::FileOptions;
using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;
using rocksdb::Slice;

constexpr size_t kSectorBytes = 512;
constexpr uint64_t kEndlessBytes = uint64_t{1} << 40;

struct FileState {
  uint64_t size = 0;
  uint64_t synced = 0;
};

// A change of the folder that the next sync of the folder makes durable.
struct FolderChange {
  enum class Type : uint8_t { kCreate, kRename, kDelete };
  Type type = Type::kCreate;
  std::string name;
  std::string new_name;                    // kRename
  std::optional<std::string> overwritten;  // what `name` (kDelete) or `new_name` (kRename) held
  FileState overwritten_state;
};

}  // namespace

// The file system that RocksDB sees: forwards to files in memory and keeps account of what is
// durable. Any thread.
class FaultyDisk::Files final : public rocksdb::FileSystemWrapper {
 public:
  Files(uint64_t seed, std::unique_ptr<rocksdb::Env> memory)
      : FileSystemWrapper(memory->GetFileSystem()), memory_(std::move(memory)), random_(seed) {}
  const char* Name() const override { return "FaultyDisk"; }

  IOStatus NewWritableFile(const std::string& name,
                           const FileOptions& options,
                           std::unique_ptr<rocksdb::FSWritableFile>* file,
                           IODebugContext* debug) override;
  IOStatus ReopenWritableFile(const std::string& name,
                              const FileOptions& /*options*/,
                              std::unique_ptr<rocksdb::FSWritableFile>* /*file*/,
                              IODebugContext* /*debug*/) override {
    return IOStatus::NotSupported("reopen " + name);
  }
  IOStatus ReuseWritableFile(const std::string& name,
                             const std::string& /*old_name*/,
                             const FileOptions& /*options*/,
                             std::unique_ptr<rocksdb::FSWritableFile>* /*file*/,
                             IODebugContext* /*debug*/) override {
    return IOStatus::NotSupported("reuse " + name);
  }
  IOStatus NewSequentialFile(const std::string& name,
                             const FileOptions& options,
                             std::unique_ptr<rocksdb::FSSequentialFile>* file,
                             IODebugContext* debug) override {
    if (!has_power()) return NoPower();
    return target()->NewSequentialFile(name, options, file, debug);
  }
  IOStatus NewRandomAccessFile(const std::string& name,
                               const FileOptions& options,
                               std::unique_ptr<rocksdb::FSRandomAccessFile>* file,
                               IODebugContext* debug) override {
    if (!has_power()) return NoPower();
    return target()->NewRandomAccessFile(name, options, file, debug);
  }
  IOStatus NewDirectory(const std::string& name,
                        const IOOptions& options,
                        std::unique_ptr<rocksdb::FSDirectory>* directory,
                        IODebugContext* debug) override;
  // Like a disk's, so that RocksDB acts on a full one as it does in production.
  IOStatus GetFreeSpace(const std::string& /*path*/,
                        const IOOptions& /*options*/,
                        uint64_t* free,
                        IODebugContext* /*debug*/) override {
    MutexLock lock(mutex_);
    *free = room_.value_or(kEndlessBytes);
    return IOStatus::OK();
  }
  IOStatus DeleteFile(const std::string& name,
                      const IOOptions& options,
                      IODebugContext* debug) override;
  IOStatus RenameFile(const std::string& from,
                      const std::string& to,
                      const IOOptions& options,
                      IODebugContext* debug) override;

  // What the wrapped files and folders report.
  IOStatus OnAppend(const std::string& name, Slice data, rocksdb::FSWritableFile* file);
  IOStatus OnSync(const std::string& name);
  IOStatus OnFolderSync();

  bool has_power() const {
    MutexLock lock(mutex_);
    return has_power_;
  }
  uint64_t operations() const {
    MutexLock lock(mutex_);
    return operations_;
  }
  void CutPowerAfter(uint64_t operations) {
    MutexLock lock(mutex_);
    power_ends_at_ = operations_ + operations;
  }
  void SetRoom(std::optional<uint64_t> bytes) {
    MutexLock lock(mutex_);
    room_ = bytes;
  }
  void RefuseSpaceFor(std::string suffix) {
    MutexLock lock(mutex_);
    refused_suffix_ = std::move(suffix);
  }
  void FailSyncs(int count, SyncError error) {
    MutexLock lock(mutex_);
    failing_syncs_ = count;
    sync_error_ = error;
  }
  void SetMode(Mode mode) {
    MutexLock lock(mutex_);
    mode_ = mode;
  }
  void RestorePower(Tails tails);
  int Corrupt(std::string_view suffix, uint64_t offset);

 private:
  static IOStatus NoPower() { return IOStatus::IOError("the power is off"); }
  // Counts an operation that changes the disk; not ok if it cannot happen.
  IOStatus Begin() REQUIRES(mutex_);
  void Undo(const FolderChange& change) REQUIRES(mutex_);
  void LoseUnsynced(const std::string& name, FileState& state) REQUIRES(mutex_);
  void TearUnsynced(const std::string& name, FileState& state) REQUIRES(mutex_);
  void PutGarbage(std::string& content, uint64_t from) REQUIRES(mutex_);
  std::string Content(const std::string& name);
  void Rewrite(const std::string& name, std::string_view content);

  const std::unique_ptr<rocksdb::Env> memory_;
  mutable Mutex mutex_;
  Random random_ GUARDED_BY(mutex_);
  std::map<std::string, FileState> states_ GUARDED_BY(mutex_);
  std::vector<FolderChange> changes_ GUARDED_BY(mutex_);
  bool has_power_ GUARDED_BY(mutex_) = true;
  uint64_t operations_ GUARDED_BY(mutex_) = 0;
  uint64_t power_ends_at_ GUARDED_BY(mutex_) = std::numeric_limits<uint64_t>::max();
  std::optional<uint64_t> room_ GUARDED_BY(mutex_);
  std::string refused_suffix_ GUARDED_BY(mutex_);
  int failing_syncs_ GUARDED_BY(mutex_) = 0;
  SyncError sync_error_ GUARDED_BY(mutex_) = SyncError::kInputOutput;
  Mode mode_ GUARDED_BY(mutex_) = Mode::kReadWrite;
};

namespace {

template <class Files>
class FaultyFile final : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  FaultyFile(Files& files, std::string name, std::unique_ptr<rocksdb::FSWritableFile> file)
      : FSWritableFileOwnerWrapper(std::move(file)), files_(files), name_(std::move(name)) {}

  IOStatus Append(const Slice& data, const IOOptions& /*options*/, IODebugContext*) override {
    return files_.OnAppend(name_, data, target());
  }
  IOStatus Append(const Slice& data,
                  const IOOptions& /*options*/,
                  const rocksdb::DataVerificationInfo& /*info*/,
                  IODebugContext*) override {
    return files_.OnAppend(name_, data, target());
  }
  IOStatus Sync(const IOOptions& /*options*/, IODebugContext*) override {
    return files_.OnSync(name_);
  }
  IOStatus Fsync(const IOOptions& /*options*/, IODebugContext*) override {
    return files_.OnSync(name_);
  }
  // A hint to start writing out; promises nothing.
  IOStatus RangeSync(uint64_t, uint64_t, const IOOptions&, IODebugContext*) override {
    return IOStatus::OK();
  }

 private:
  Files& files_;
  const std::string name_;
};

template <class Files>
class FaultyFolder final : public rocksdb::FSDirectoryWrapper {
 public:
  FaultyFolder(Files& files, std::unique_ptr<rocksdb::FSDirectory> folder)
      : FSDirectoryWrapper(std::move(folder)), files_(files) {}
  IOStatus Fsync(const IOOptions& /*options*/, IODebugContext*) override {
    return files_.OnFolderSync();
  }
  IOStatus FsyncWithDirOptions(const IOOptions& /*options*/,
                               IODebugContext*,
                               const rocksdb::DirFsyncOptions& /*how*/) override {
    return files_.OnFolderSync();
  }

 private:
  Files& files_;
};

// RocksDB waits a second after an error in the background; a test does not.
class ImpatientClock final : public rocksdb::SystemClockWrapper {
 public:
  ImpatientClock() : SystemClockWrapper(rocksdb::SystemClock::Default()) {}
  const char* Name() const override { return "ImpatientClock"; }
  void SleepForMicroseconds(int micros) override {
    target_->SleepForMicroseconds(std::min(micros, 1'000));
  }
};

class FaultyEnv final : public rocksdb::EnvWrapper {
 public:
  FaultyEnv(const std::shared_ptr<rocksdb::FileSystem>& files, std::shared_ptr<BackgroundGate> gate)
      : EnvWrapper(rocksdb::NewCompositeEnv(files)), gate_(std::move(gate)) {
    file_system_ = files;
    system_clock_ = std::make_shared<ImpatientClock>();
  }
  const char* Name() const override { return "FaultyEnv"; }

  void Schedule(void (*run)(void*),
                void* argument,
                Priority priority,
                void* tag,
                void (*drop)(void*)) override {
    auto work = std::make_unique<GatedWork>(gate_, run, argument, drop);
    EnvWrapper::Schedule(&GatedWork::Run, work.release(), priority, tag, &GatedWork::Drop);
  }

 private:
  const std::shared_ptr<BackgroundGate> gate_;
};

}  // namespace

IOStatus FaultyDisk::Files::Begin() {
  if (operations_ >= power_ends_at_) has_power_ = false;
  if (!has_power_) return NoPower();
  if (mode_ == Mode::kReadOnly) return IOStatus::IOError("Read-only file system");
  ++operations_;
  return IOStatus::OK();
}

IOStatus FaultyDisk::Files::NewWritableFile(const std::string& name,
                                            const FileOptions& options,
                                            std::unique_ptr<rocksdb::FSWritableFile>* file,
                                            IODebugContext* debug) {
  MutexLock lock(mutex_);
  if (IOStatus begun = Begin(); !begun.ok()) return begun;
  std::unique_ptr<rocksdb::FSWritableFile> made;
  IOStatus status = target()->NewWritableFile(name, options, &made, debug);
  if (!status.ok()) return status;
  states_[name] = {};
  changes_.push_back({.type = FolderChange::Type::kCreate,
                      .name = name,
                      .new_name = {},
                      .overwritten = {},
                      .overwritten_state = {}});
  *file = std::make_unique<FaultyFile<Files>>(*this, name, std::move(made));
  return status;
}

IOStatus FaultyDisk::Files::NewDirectory(const std::string& name,
                                         const IOOptions& options,
                                         std::unique_ptr<rocksdb::FSDirectory>* directory,
                                         IODebugContext* debug) {
  std::unique_ptr<rocksdb::FSDirectory> made;
  IOStatus status = target()->NewDirectory(name, options, &made, debug);
  if (status.ok()) *directory = std::make_unique<FaultyFolder<Files>>(*this, std::move(made));
  return status;
}

IOStatus FaultyDisk::Files::DeleteFile(const std::string& name,
                                       const IOOptions& options,
                                       IODebugContext* debug) {
  MutexLock lock(mutex_);
  if (IOStatus begun = Begin(); !begun.ok()) return begun;
  if (const auto it = states_.find(name); it != states_.end()) {
    changes_.push_back({.type = FolderChange::Type::kDelete,
                        .name = name,
                        .new_name = {},
                        .overwritten = Content(name),
                        .overwritten_state = it->second});
    states_.erase(it);
  }
  return target()->DeleteFile(name, options, debug);
}

IOStatus FaultyDisk::Files::RenameFile(const std::string& from,
                                       const std::string& to,
                                       const IOOptions& options,
                                       IODebugContext* debug) {
  MutexLock lock(mutex_);
  if (IOStatus begun = Begin(); !begun.ok()) return begun;
  const auto it = states_.find(from);
  if (it != states_.end()) {  // the log file of RocksDB is not ours to follow
    FolderChange change{.type = FolderChange::Type::kRename,
                        .name = from,
                        .new_name = to,
                        .overwritten = {},
                        .overwritten_state = {}};
    if (const auto old = states_.find(to); old != states_.end()) {
      change.overwritten = Content(to);
      change.overwritten_state = old->second;
    }
    changes_.push_back(std::move(change));
    states_[to] = it->second;
    states_.erase(from);
  }
  return target()->RenameFile(from, to, options, debug);
}

IOStatus FaultyDisk::Files::OnAppend(const std::string& name,
                                     Slice data,
                                     rocksdb::FSWritableFile* file) {
  MutexLock lock(mutex_);
  if (IOStatus begun = Begin(); !begun.ok()) return begun;
  if (!refused_suffix_.empty() && name.ends_with(refused_suffix_)) {
    return IOStatus::NoSpace("No space left on device");
  }
  Slice fits = data;
  if (room_.has_value()) {
    fits = Slice(data.data(), std::min<uint64_t>(*room_, data.size()));
    *room_ -= fits.size();
  }
  IOStatus status = file->Append(fits, IOOptions(), nullptr);
  if (!status.ok()) return status;
  states_[name].size += fits.size();
  return fits.size() == data.size() ? status : IOStatus::NoSpace("No space left on device");
}

IOStatus FaultyDisk::Files::OnSync(const std::string& name) {
  MutexLock lock(mutex_);
  if (IOStatus begun = Begin(); !begun.ok()) return begun;
  if (failing_syncs_ > 0) {
    --failing_syncs_;
    return sync_error_ == SyncError::kNoSpace ? IOStatus::NoSpace("No space left on device")
                                              : IOStatus::IOError("Input/output error");
  }
  states_[name].synced = states_[name].size;
  return IOStatus::OK();
}

IOStatus FaultyDisk::Files::OnFolderSync() {
  MutexLock lock(mutex_);
  if (IOStatus begun = Begin(); !begun.ok()) return begun;
  changes_.clear();
  return IOStatus::OK();
}

std::string FaultyDisk::Files::Content(const std::string& name) {
  std::string content;
  const IOStatus read = rocksdb::ReadFileToString(target(), name, &content);
  CHECK(read.ok()) << read.ToString();
  return content;
}

void FaultyDisk::Files::Rewrite(const std::string& name, std::string_view content) {
  const Slice slice(content.data(), content.size());
  const IOStatus written = rocksdb::WriteStringToFile(target(), slice, name);
  CHECK(written.ok()) << written.ToString();
}

void FaultyDisk::Files::Undo(const FolderChange& change) {
  const IOOptions options;
  switch (change.type) {
    case FolderChange::Type::kCreate:
      target()->DeleteFile(change.name, options, nullptr).PermitUncheckedError();
      states_.erase(change.name);
      return;
    case FolderChange::Type::kDelete:
      Rewrite(change.name, *change.overwritten);
      states_[change.name] = change.overwritten_state;
      return;
    case FolderChange::Type::kRename:
      target()->RenameFile(change.new_name, change.name, options, nullptr).PermitUncheckedError();
      states_[change.name] = states_[change.new_name];
      states_.erase(change.new_name);
      if (!change.overwritten.has_value()) return;
      Rewrite(change.new_name, *change.overwritten);
      states_[change.new_name] = change.overwritten_state;
      return;
  }
}

void FaultyDisk::Files::PutGarbage(std::string& content, uint64_t from) {
  for (uint64_t i = from; i < content.size(); ++i) content[i] = static_cast<char>(random_.Next());
}

void FaultyDisk::Files::LoseUnsynced(const std::string& name, FileState& state) {
  if (state.size == state.synced) return;
  std::string content = Content(name);
  const uint64_t kept = state.synced + random_.Below(state.size - state.synced + 1);
  content.resize(kept);
  const uint64_t torn = std::min<uint64_t>(kept - state.synced, random_.Below(kSectorBytes));
  if (random_.Chance(0.5)) PutGarbage(content, kept - torn);
  Rewrite(name, content);
  state = {.size = kept, .synced = kept};
}

void FaultyDisk::Files::TearUnsynced(const std::string& name, FileState& state) {
  if (state.size == state.synced) return;
  std::string content = Content(name);
  const uint64_t torn_max = std::min<uint64_t>(state.size - state.synced, kSectorBytes);
  PutGarbage(content, state.size - 1 - random_.Below(torn_max));
  Rewrite(name, content);
  state.synced = state.size;
}

void FaultyDisk::Files::RestorePower(Tails tails) {
  MutexLock lock(mutex_);
  const bool is_torn = tails == Tails::kTorn || random_.Chance(0.25);
  const uint64_t survive = random_.Below(changes_.size() + 1);
  for (size_t i = changes_.size(); i-- > survive;) Undo(changes_[i]);
  changes_.clear();
  for (auto& [name, state] : states_) {
    if (is_torn) {
      TearUnsynced(name, state);
    } else {
      LoseUnsynced(name, state);
    }
  }
  has_power_ = true;
  power_ends_at_ = std::numeric_limits<uint64_t>::max();
}

int FaultyDisk::Files::Corrupt(std::string_view suffix, uint64_t offset) {
  MutexLock lock(mutex_);
  int changed = 0;
  for (const auto& [name, state] : states_) {
    if (!name.ends_with(suffix) || state.size == 0) continue;
    std::string content = Content(name);
    char& byte = content[std::min<uint64_t>(offset, content.size() - 1)];
    byte = static_cast<char>(byte ^ 1);
    Rewrite(name, content);
    ++changed;
  }
  return changed;
}

FaultyDisk::FaultyDisk(uint64_t seed) {
  std::unique_ptr<rocksdb::Env> memory(rocksdb::NewMemEnv(rocksdb::Env::Default()));
  files_ = std::make_shared<Files>(seed, std::move(memory));
  gate_ = std::make_shared<BackgroundGate>();
  env_ = std::make_unique<FaultyEnv>(files_, gate_);
}
FaultyDisk::~FaultyDisk() = default;

rocksdb::Env* FaultyDisk::env() { return env_.get(); }
uint64_t FaultyDisk::operations() const { return files_->operations(); }
void FaultyDisk::CutPowerAfter(uint64_t operations) { files_->CutPowerAfter(operations); }
bool FaultyDisk::has_power() const { return files_->has_power(); }
void FaultyDisk::RestorePower(Tails tails) { files_->RestorePower(tails); }
void FaultyDisk::SetRoom(std::optional<uint64_t> bytes) { files_->SetRoom(bytes); }
void FaultyDisk::RefuseSpaceFor(std::string suffix) { files_->RefuseSpaceFor(std::move(suffix)); }
void FaultyDisk::FailSyncs(int count, SyncError error) { files_->FailSyncs(count, error); }
void FaultyDisk::SetMode(Mode mode) { files_->SetMode(mode); }
void FaultyDisk::HoldBackgroundWork() { gate_->Hold(); }
void FaultyDisk::FinishBackgroundWork() { gate_->Finish(); }
int FaultyDisk::Corrupt(std::string_view suffix, uint64_t offset) {
  return files_->Corrupt(suffix, offset);
}

}  // namespace berth::store
