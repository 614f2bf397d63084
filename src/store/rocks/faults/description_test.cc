// SPDX-License-Identifier: Apache-2.0
// The description of the store's files (RocksDB's MANIFEST, and CURRENT that names it): a power cut
// while it changes keeps no store from opening, and damage to it is refused, never guessed at.
#include <gtest/gtest.h>
#include <rocksdb/env.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"
#include "rt/sim/run_task.h"
#include "rt/sim/sim_loop.h"
#include "store/rocks/faults/faulty_disk.h"
#include "store/rocks/rocks_store.h"

namespace berth::store {
namespace {

using Keys = std::vector<std::string>;
constexpr size_t kMemtableBytes = 64 * 1024;
constexpr size_t kValueBytes = 8'000;

class Described {
 public:
  explicit Described(uint64_t seed) : disk_(seed), loop_(seed) {}
  ~Described() { Kill(); }
  Described(const Described&) = delete;
  Described& operator=(const Described&) = delete;

  FaultyDisk& disk() { return disk_; }

  Status Open() {
    RocksOptions options;
    options.dir = "/store";
    options.env = disk_.env();
    options.threads = RocksOptions::Threads::kNone;
    options.memtable_bytes = kMemtableBytes;
    TRY(store_, RocksStore::Open(loop_, options));
    handle_ = store_->NewHandle();
    return OkStatus();
  }
  // As a process ends that is killed: nothing is flushed.
  void Kill() {
    handle_.reset();
    store_.reset();
  }
  void Close() {
    const Status closed = rt::RunTask(loop_, store_->Close());
    CHECK(closed.ok()) << closed;
    Kill();
  }
  Status TryPut(const std::string& key) {
    Txn txn;
    txn.ops.push_back(Op::Put(key, Bytes(std::string(kValueBytes, 'x'))));
    return rt::RunTask(loop_, handle_->Commit(std::move(txn))).status();
  }
  void Put(const std::string& key) {
    const Status put = TryPut(key);
    CHECK(put.ok()) << put;
    acknowledged_.push_back(key);
  }
  // As many as fill a memtable, so that it waits for being written out.
  void FillMemtable() {
    for (size_t bytes = 0; bytes < kMemtableBytes * 3 / 2; bytes += kValueBytes) {
      Put("k" + std::to_string(1'000 + acknowledged_.size()));
    }
  }
  Status Recover() { return rt::RunTask(loop_, store_->Recover()); }
  const Keys& acknowledged() const { return acknowledged_; }
  Keys Stored() {
    RangeRequest request;
    request.end = kNoEnd;
    const Result<RangeResult> range = rt::RunTask(loop_, handle_->Range(request));
    CHECK(range.ok()) << range.status();
    Keys keys;
    for (const KeyValue& kv : range->items) keys.push_back(kv.key);
    return keys;
  }

  // --- the files, while the store is closed ---

  std::string Read(const std::string& name) {
    std::string content;
    const rocksdb::Status read = rocksdb::ReadFileToString(disk_.env(), "/store/" + name, &content);
    CHECK(read.ok()) << read.ToString();
    return content;
  }
  void Write(const std::string& name, const std::string& content) {
    const rocksdb::Status written =
        rocksdb::WriteStringToFile(disk_.env(), content, "/store/" + name, /*should_sync=*/true);
    CHECK(written.ok()) << written.ToString();
  }
  // All but RocksDB's messages and its lock.
  std::map<std::string, std::string> Files() {
    std::vector<std::string> names;
    const rocksdb::Status listed = disk_.env()->GetChildren("/store", &names);
    CHECK(listed.ok()) << listed.ToString();
    std::map<std::string, std::string> files;
    for (const std::string& name : names) {
      if (!name.starts_with("LOG") && name != "LOCK") files[name] = Read(name);
    }
    return files;
  }
  // The name of the description that counts.
  std::string Current() {
    std::string name = Read("CURRENT");
    CHECK(name.ends_with('\n')) << name;
    name.pop_back();
    return name;
  }

 private:
  FaultyDisk disk_;
  rt::SimLoop loop_;
  std::unique_ptr<RocksStore> store_;
  std::unique_ptr<Store> handle_;
  Keys acknowledged_;
};

// The power goes at every operation of writing out a memtable, which ends with a new description.
TEST(Description, IsWholeWheneverThePowerGoes) {
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    bool had_power = false;
    for (uint64_t operations = 0; !had_power; ++operations) {
      SCOPED_TRACE(testing::Message() << "seed " << seed << ", operation " << operations);
      ASSERT_LT(operations, 200U);
      Described store(seed);
      ASSERT_TRUE(store.Open().ok());
      store.disk().HoldBackgroundWork();
      store.FillMemtable();
      store.disk().CutPowerAfter(operations);
      store.disk().FinishBackgroundWork();
      had_power = store.disk().has_power();
      store.disk().CutPowerAfter(0);
      store.Kill();
      store.disk().RestorePower(FaultyDisk::Tails::kTorn);
      const Status opened = store.Open();
      ASSERT_TRUE(opened.ok()) << opened;
      EXPECT_EQ(store.Stored(), store.acknowledged());
    }
  }
}

// The same while a store is opened after a crash: what the log of writes held is written out.
TEST(Description, IsWholeWheneverThePowerGoesDuringAStart) {
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    bool had_power = false;
    for (uint64_t operations = 0; !had_power; ++operations) {
      SCOPED_TRACE(testing::Message() << "seed " << seed << ", operation " << operations);
      ASSERT_LT(operations, 200U);
      Described store(seed);
      ASSERT_TRUE(store.Open().ok());
      store.FillMemtable();
      store.Kill();
      store.disk().CutPowerAfter(operations);
      had_power = store.Open().ok();
      store.disk().CutPowerAfter(0);
      store.Kill();
      store.disk().RestorePower(FaultyDisk::Tails::kTorn);
      const Status opened = store.Open();
      ASSERT_TRUE(opened.ok()) << opened;
      EXPECT_EQ(store.Stored(), store.acknowledged());
    }
  }
}

// The new description is there, but CURRENT cannot be made to name it.
TEST(Description, WithoutSpaceForItsNameLosesNothing) {
  for (const bool has_power_cut : {false, true}) {
    SCOPED_TRACE(has_power_cut);
    Described store(1);
    ASSERT_TRUE(store.Open().ok());
    store.disk().HoldBackgroundWork();
    store.FillMemtable();
    store.disk().RefuseSpaceFor(".dbtmp");
    store.disk().FinishBackgroundWork();
    const Status put = store.TryPut("lost");
    EXPECT_NE(put.message().find("no space left on device"), std::string_view::npos) << put;
    store.disk().RefuseSpaceFor("");
    if (has_power_cut) {
      store.disk().CutPowerAfter(0);
      store.Kill();
      store.disk().RestorePower(FaultyDisk::Tails::kTorn);
      ASSERT_TRUE(store.Open().ok());
    } else {
      ASSERT_TRUE(store.Recover().ok());
    }
    store.Put("z");
    EXPECT_EQ(store.Stored(), store.acknowledged());
  }
}

// Also in its last record: the logs of writes that it made needless are deleted, so without it what
// was acknowledged would be lost.
TEST(Description, ThatIsDamagedIsRefusedAndNothingIsChanged) {
  Described store(1);
  ASSERT_TRUE(store.Open().ok());
  store.FillMemtable();
  store.Close();
  const std::string name = store.Current();
  const std::string whole = store.Read(name);
  for (const size_t at : {size_t{0}, size_t{7}, whole.size() / 2, whole.size() - 1}) {
    SCOPED_TRACE(at);
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 1);
    store.Write(name, damaged);
    const auto before = store.Files();
    const Status opened = store.Open();
    ASSERT_FALSE(opened.ok());
    EXPECT_EQ(opened.reason(), Reason::kInternal) << opened;
    EXPECT_NE(opened.message().find("data folder /store is damaged"), std::string_view::npos)
        << opened;
    EXPECT_TRUE(store.Files() == before);
  }
  store.Write(name, whole);
  ASSERT_TRUE(store.Open().ok());
  EXPECT_EQ(store.Stored(), store.acknowledged());
}

// RocksDB takes a folder without CURRENT for a new one, and deletes what lies in it at the second
// start.
TEST(Description, WithoutItsNameIsRefusedAndNothingIsChanged) {
  struct Case {
    std::optional<std::string> current;
    std::string_view message;
  };
  const std::vector<Case> cases = {
      {.current = {}, .message = "is damaged: Corruption: CURRENT is missing, but there is 0000"},
      {.current = "", .message = "is damaged: Corruption: CURRENT file does not end with newline"},
      {.current = "MANIFEST-000099\n", .message = "/store/MANIFEST-000099"},
  };
  for (const auto& [current, message] : cases) {
    SCOPED_TRACE(current.value_or("missing"));
    Described store(1);
    ASSERT_TRUE(store.Open().ok());
    store.FillMemtable();
    store.Close();
    const std::string whole = store.Read("CURRENT");
    if (current.has_value()) {
      store.Write("CURRENT", *current);
    } else {
      ASSERT_TRUE(store.disk().env()->DeleteFile("/store/CURRENT").ok());
    }
    const auto before = store.Files();
    for (int start = 0; start < 2; ++start) {
      const Status opened = store.Open();
      ASSERT_FALSE(opened.ok());
      EXPECT_NE(opened.message().find("data folder /store "), std::string_view::npos) << opened;
      EXPECT_NE(opened.message().find(message), std::string_view::npos) << opened;
      EXPECT_TRUE(store.Files() == before);
    }
    store.Write("CURRENT", whole);
    ASSERT_TRUE(store.Open().ok());
    EXPECT_EQ(store.Stored(), store.acknowledged());
  }
}

}  // namespace
}  // namespace berth::store
