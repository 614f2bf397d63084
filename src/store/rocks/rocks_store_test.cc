// SPDX-License-Identifier: Apache-2.0
// The rocks store keeps the whole contract: on files in memory with a virtual clock, and on real
// files with its own threads.
#include "store/rocks/rocks_store.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <rocksdb/db.h>
#include <rocksdb/env.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <filesystem>

#include "rt/asio/asio_loop.h"
#include "rt/sim/run_task.h"
#include "rt/sim/sim_loop.h"
#include "store/conformance/blocking.h"
#include "store/conformance/store_contract.h"
#include "store/rocks/commit_trace.h"
#include "store/rocks/meta_record.h"

namespace berth::store {
namespace {

// A folder that goes with the test.
class TempFolder {
 public:
  TempFolder() {
    std::string name = std::filesystem::temp_directory_path() / "berth-store-XXXXXX";
    CHECK(::mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  ~TempFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  std::string path(std::string_view name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

// One store on a loop of either kind.
template <class LoopType>
class RocksUnderTest final : public StoreUnderTest {
 public:
  RocksUnderTest(std::unique_ptr<LoopType> loop, RocksOptions options)
      : loop_(std::move(loop)), options_(std::move(options)) {
    Open();
  }
  ~RocksUnderTest() override { CHECK(Close().ok()); }

  rt::Loop& loop() override { return *loop_; }
  Status Run(rt::Task<Status> task) override { return rt::RunTask(*loop_, std::move(task)); }
  void Pass(Duration duration) override {
    if constexpr (std::is_same_v<LoopType, rt::SimLoop>) {
      loop_->RunFor(duration);
    } else {
      FAIL() << "a real clock does not jump " << FormatDuration(duration);
    }
  }
  Store& first() override { return *first_; }
  Store& second() override { return *second_; }
  Status Close() override { return Run(store_->Close()); }
  void Reopen() override {
    CHECK(Close().ok());
    first_.reset();
    second_.reset();
    store_.reset();
    Open();
  }

 private:
  void Open() {
    Result<std::unique_ptr<RocksStore>> store = RocksStore::Open(*loop_, options_);
    CHECK(store.ok()) << store.status();
    store_ = *std::move(store);
    first_ = store_->NewHandle();
    second_ = store_->NewHandle();
  }

  std::unique_ptr<LoopType> loop_;
  RocksOptions options_;
  std::unique_ptr<RocksStore> store_;
  std::unique_ptr<Store> first_;
  std::unique_ptr<Store> second_;
};
using SimulatedRocks = RocksUnderTest<rt::SimLoop>;
using RealRocks = RocksUnderTest<rt::AsioLoop>;

class RocksStoreContract : public testing::TestWithParam<StoreContract> {};

TEST_P(RocksStoreContract, HoldsInVirtualTime) {
  const std::unique_ptr<rocksdb::Env> env(rocksdb::NewMemEnv(rocksdb::Env::Default()));
  const RocksOptions options{
      .dir = "/store", .env = env.get(), .threads = RocksOptions::Threads::kNone};
  const auto factory = [&options] {
    return std::make_unique<SimulatedRocks>(std::make_unique<rt::SimLoop>(7), options);
  };
  RunStoreContract(factory, GetParam());
}

TEST_P(RocksStoreContract, HoldsOnRealFilesWithThreads) {
  if (GetParam().clock == Clock::kVirtual) return;
  const TempFolder folder;
  const RocksOptions options{.dir = folder.path("store")};
  const auto factory = [&options] {
    return std::make_unique<RealRocks>(std::make_unique<rt::AsioLoop>(), options);
  };
  RunStoreContract(factory, GetParam());
}

INSTANTIATE_TEST_SUITE_P(Rocks,
                         RocksStoreContract,
                         testing::ValuesIn(StoreContracts()),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(RocksStore, MatchesTheModelForManySeeds) {
  for (uint64_t seed = 1; seed <= 100 && !HasFailure(); ++seed) {
    const std::unique_ptr<rocksdb::Env> env(rocksdb::NewMemEnv(rocksdb::Env::Default()));
    SimulatedRocks under_test(
        std::make_unique<rt::SimLoop>(seed),
        {.dir = "/store", .env = env.get(), .threads = RocksOptions::Threads::kNone});
    RandomOperationsMatchTheModel(under_test, seed, 120);
  }
}

class RocksFolder : public testing::Test {
 protected:
  Result<std::unique_ptr<RocksStore>> Open() { return RocksStore::Open(loop_, {.dir = dir_}); }
  void Close(std::unique_ptr<RocksStore> store) {
    ASSERT_TRUE(rt::RunTask(loop_, store->Close()).ok());
  }
  // Changes the folder behind the store's back.
  void Tamper(const std::string& key, const std::string& value) {
    rocksdb::DB* raw = nullptr;
    ASSERT_TRUE(rocksdb::DB::Open(rocksdb::Options(), dir_, &raw).ok());
    const std::unique_ptr<rocksdb::DB> db(raw);
    ASSERT_TRUE(db->Put(rocksdb::WriteOptions(), key, value).ok());
  }
  void MakeStoreWith(std::string_view value) {
    auto store = Open();
    ASSERT_TRUE(store.ok()) << store.status();
    const auto handle = (*store)->NewHandle();
    Txn txn;
    txn.ops.push_back(Op::Put("a", Bytes(value)));
    ASSERT_TRUE(rt::RunTask(loop_, handle->Commit(txn)).ok());
    Close(*std::move(store));
  }
  void ExpectRefused(std::initializer_list<std::string_view> parts) {
    const auto store = Open();
    ASSERT_FALSE(store.ok());
    for (const std::string_view part : parts) {
      EXPECT_NE(store.status().message().find(part), std::string_view::npos) << store.status();
    }
  }

  TempFolder folder_;
  std::string dir_ = folder_.path("data/store");
  rt::AsioLoop loop_;
};

TEST_F(RocksFolder, IsPrivateToItsOwner) {
  MakeStoreWith("1");
  struct stat info{};
  ASSERT_EQ(::stat(dir_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700U);
  for (const auto& entry : std::filesystem::directory_iterator(dir_)) {
    ASSERT_EQ(::stat(entry.path().c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0077, 0U) << entry.path();
  }
}

TEST_F(RocksFolder, KeepsItsStoreId) {
  auto first = Open();
  ASSERT_TRUE(first.ok());
  const std::string id = (*first)->store_id();
  EXPECT_EQ(id.size(), 36U);
  Close(*std::move(first));
  auto second = Open();
  ASSERT_TRUE(second.ok());
  EXPECT_EQ((*second)->store_id(), id);
  Close(*std::move(second));
}

TEST_F(RocksFolder, IsOpenedByOneStoreOnly) {
  auto store = Open();
  ASSERT_TRUE(store.ok());
  ExpectRefused({dir_, "in use by another process"});
  Close(*std::move(store));
}

TEST_F(RocksFolder, InUseByAnotherProcessIsNamed) {
  MakeStoreWith("1");
  std::array<int, 2> locked{};
  std::array<int, 2> release{};
  ASSERT_EQ(::pipe(locked.data()), 0);
  ASSERT_EQ(::pipe(release.data()), 0);
  const std::string lock_file = dir_ + "/LOCK";
  const pid_t child = ::fork();
  if (child == 0) {  // only system calls: the parent has threads
    struct flock lock{};
    lock.l_type = F_WRLCK;
    lock.l_whence = SEEK_SET;
    char byte = ::fcntl(::open(lock_file.c_str(), O_RDWR), F_SETLK, &lock) == 0 ? 'y' : 'n';
    ::close(release[1]);
    if (::write(locked[1], &byte, 1) != 1) ::_exit(1);
    ::_exit(::read(release[0], &byte, 1) == 0 ? 0 : 1);
  }
  char byte = 0;
  ASSERT_EQ(::read(locked[0], &byte, 1), 1);
  EXPECT_EQ(byte, 'y');
  ExpectRefused({dir_, "in use by another process"});
  for (const int fd : {locked[0], locked[1], release[0], release[1]}) ::close(fd);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
}

TEST_F(RocksFolder, OfAnotherFormatVersionIsRefused) {
  MakeStoreWith("1");
  std::string meta = EncodeMeta({.store_id = "x", .compacted = {}});
  meta[4] = 99;
  Tamper("m", meta);
  ExpectRefused({dir_, "format version 99", "supports version 1"});
}

TEST_F(RocksFolder, WithADamagedDescriptionIsRefused) {
  MakeStoreWith("1");
  std::string meta = EncodeMeta({.store_id = "x", .compacted = {}});
  meta.back() = static_cast<char>(meta.back() ^ 1);
  Tamper("m", meta);
  ExpectRefused({dir_, "damaged"});
}

TEST_F(RocksFolder, WithADamagedRecordIsRefusedAndTheRevisionNamed) {
  MakeStoreWith("1");
  Tamper(std::string("r\0\0\0\0\0\0\0\x02\0", 10), "garbage");
  ExpectRefused({dir_, "revision 2", "damaged record"});
}

TEST_F(RocksFolder, WithAForeignDatabaseIsRefused) {
  std::filesystem::create_directories(dir_);
  rocksdb::Options options;
  options.create_if_missing = true;
  rocksdb::DB* raw = nullptr;
  ASSERT_TRUE(rocksdb::DB::Open(options, dir_, &raw).ok());
  ASSERT_TRUE(raw->Put(rocksdb::WriteOptions(), "foreign", "1").ok());
  delete raw;
  ExpectRefused({dir_, "not a store"});
}

TEST_F(RocksFolder, ThatCannotBeMadeIsNamed) {
  dir_ = "/proc/nowhere/store";
  ExpectRefused({dir_, "cannot be made"});
}

TEST_F(RocksFolder, ThatIsAFileIsNamed) {
  const std::string file = folder_.path("file");
  ASSERT_TRUE(std::filesystem::create_directories(folder_.path("data")));
  std::FILE* made = std::fopen(file.c_str(), "w");
  ASSERT_NE(made, nullptr);
  std::fclose(made);
  dir_ = file;
  ExpectRefused({dir_, "cannot be made"});
}

TEST_F(RocksFolder, AfterASkipHasHigherRevisionsAlsoWhenItIsOpenedAgain) {
  Revision revision;
  for (const int64_t skip : {int64_t{1'000'000}, int64_t{0}}) {
    auto store = Open();
    ASSERT_TRUE(store.ok()) << store.status();
    (*store)->SkipRevisions(skip);
    Txn txn;
    txn.ops.push_back(Op::Put("a", Bytes("1")));
    const auto written = rt::RunTask(loop_, (*store)->NewHandle()->Commit(txn));
    ASSERT_TRUE(written.ok()) << written.status();
    EXPECT_GT(written->revision, revision);
    EXPECT_GT(written->revision.value, 1'000'000);
    revision = written->revision;
    Close(*std::move(store));
  }
}

TEST(CommitTraceFile, TellsWhetherACommitIsUnderWay) {
  const TempFolder folder;
  const std::string path = folder.path("trace");
  {
    auto trace = CommitTrace::Create(path);
    ASSERT_TRUE(trace.ok()) << trace.status();
    rt::AsioLoop loop;
    auto store = RocksStore::Open(loop, {.dir = folder.path("store"), .observer = trace->get()});
    ASSERT_TRUE(store.ok()) << store.status();
    const auto handle = (*store)->NewHandle();
    for (int i = 0; i < 3; ++i) {
      Txn txn;
      txn.ops.push_back(Op::Put("a", Bytes("1")));
      ASSERT_TRUE(rt::RunTask(loop, handle->Commit(txn)).ok());
    }
    ASSERT_TRUE(rt::RunTask(loop, (*store)->Close()).ok());
    (*trace)->OnCommitBegin(4);
  }
  const auto counters = CommitTrace::Read(path);
  ASSERT_TRUE(counters.ok()) << counters.status();
  EXPECT_EQ(counters->begun, 4U);
  EXPECT_EQ(counters->ended, 3U);
  EXPECT_FALSE(CommitTrace::Read(folder.path("absent")).ok());
}

}  // namespace
}  // namespace berth::store
