// SPDX-License-Identifier: Apache-2.0
// A backup gives back what went in, and nothing at all if a bit, a byte or its end is another.
#include "app/backup/backup_file.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/check.h"
#include "store/store.h"

namespace berth::app {
namespace {

constexpr std::string_view kPassphrase = "correct horse";

class BackupFileTest : public testing::Test {
 protected:
  BackupFileTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "berth-backup-XXXXXX").string();
    CHECK(mkdtemp(pattern.data()) != nullptr);
    folder_ = pattern;
  }
  ~BackupFileTest() override { std::filesystem::remove_all(folder_); }

  // In the order of the numbers.
  static std::string Key(size_t number) { return "/key/" + std::to_string(100 + number); }
  void Write(size_t values, size_t bytes) {
    auto writer = BackupWriter::Begin(path(), kPassphrase);
    ASSERT_TRUE(writer.ok()) << writer.status();
    for (size_t i = 0; i < values; ++i) {
      ASSERT_TRUE((*writer)->AddValue(Key(i), std::string(bytes, 'v')).ok());
    }
    ASSERT_TRUE((*writer)->AddFile("pki/ca.pem", "an authority").ok());
    ASSERT_TRUE((*writer)->AddHead({.revision = 17, .created = 1'700'000'000}).ok());
    ASSERT_TRUE((*writer)->Finish().ok());
  }
  Result<size_t> Read(std::string_view passphrase = kPassphrase) const {
    TRY(const auto reader, BackupReader::Open(path(), passphrase));
    size_t values = 0;
    while (true) {
      TRY(const std::optional<BackupEntry> entry, reader->Next());
      if (!entry.has_value()) return values;
      if (entry->type == BackupEntry::Type::kValue) {
        EXPECT_EQ(entry->name, Key(values));
        ++values;
      } else if (entry->type == BackupEntry::Type::kFile) {
        EXPECT_EQ(entry->name, "pki/ca.pem");
        EXPECT_EQ(entry->content, "an authority");
      } else {
        EXPECT_EQ(entry->head.revision, 17);
      }
    }
  }
  std::string Content() const {
    std::ifstream in(path(), std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void SetContent(const std::string& content) const {
    std::ofstream(path(), std::ios::binary | std::ios::trunc) << content;
  }
  std::string path() const { return folder_ + "/backup"; }

  std::string folder_;
};

TEST_F(BackupFileTest, GivesBackWhatWentIn) {
  Write(20, 100'000);  // some chunks, with entries over their borders
  const auto values = Read();
  ASSERT_TRUE(values.ok()) << values.status();
  EXPECT_EQ(*values, 20U);
  struct stat status{};
  ASSERT_EQ(stat(path().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600U);
}

TEST_F(BackupFileTest, TakesTheLargestValueOfAStore) {
  Write(1, store::kMaxValueBytes);
  EXPECT_EQ(Read().value(), 1U);
}

TEST_F(BackupFileTest, NoticesWhateverIsChanged) {
  Write(12, 100'000);
  const std::string good = Content();
  // Reading costs a tenth of a second because of the passphrase, so only some places are tried.
  for (const size_t at :
       {size_t{0}, size_t{9}, size_t{13}, size_t{33}, size_t{300'000}, good.size() - 1}) {
    std::string flipped = good;
    flipped[at] = static_cast<char>(flipped[at] ^ 0x10);
    SetContent(flipped);
    EXPECT_FALSE(Read().ok()) << at;
  }
  for (const size_t size : {size_t{0}, size_t{27}, size_t{28}, size_t{262'200}, good.size() - 1}) {
    SetContent(good.substr(0, size));
    EXPECT_FALSE(Read().ok()) << size;
  }
  SetContent(good + good);
  EXPECT_FALSE(Read().ok());
  SetContent(good);
  EXPECT_TRUE(Read().ok());
  const Status wrong = Read("another one").status();
  EXPECT_NE(wrong.message().find("passphrase"), std::string::npos) << wrong;
}

TEST_F(BackupFileTest, ChunksCannotBeLeftOutOrExchanged) {
  Write(12, 100'000);
  const std::string good = Content();
  constexpr size_t kFront = 28;
  constexpr size_t kChunk = 5 + kChunkBytes + 16;
  const std::string front = good.substr(0, kFront);
  const std::string one = good.substr(kFront, kChunk);
  const std::string two = good.substr(kFront + kChunk, kChunk);
  const std::string rest = good.substr(kFront + 2 * kChunk);
  SetContent(front + two + one + rest);
  EXPECT_FALSE(Read().ok());
  SetContent(front + one + rest);
  EXPECT_FALSE(Read().ok());
  SetContent(front + one + two + rest);
  EXPECT_TRUE(Read().ok());
}

TEST_F(BackupFileTest, AReaderIsNeverGivenWhatAWriterRefuses) {
  auto writer = BackupWriter::Begin(path(), kPassphrase);
  ASSERT_TRUE(writer.ok());
  ASSERT_TRUE((*writer)->AddValue("/b", "value").ok());
  const Status behind = (*writer)->AddValue("/a", "value");
  EXPECT_TRUE(behind.Is(Reason::kBadRequest)) << behind;
  EXPECT_NE(behind.message().find(path()), std::string::npos) << behind;
  EXPECT_TRUE((*writer)->AddFile("../ca.pem", "x").Is(Reason::kBadRequest));
  EXPECT_TRUE((*writer)->Finish().Is(Reason::kBadRequest)) << "without a head";
}

TEST_F(BackupFileTest, IsAPlainFile) {
  const Status folder = BackupReader::Open(folder_, kPassphrase).status();
  EXPECT_TRUE(folder.Is(Reason::kBadRequest)) << folder;
  ASSERT_EQ(mkfifo(path().c_str(), 0600), 0);
  const Status pipe = BackupReader::Open(path(), kPassphrase).status();
  EXPECT_TRUE(pipe.Is(Reason::kBadRequest)) << pipe;
}

TEST_F(BackupFileTest, LeavesNothingBehindUnlessItIsFinished) {
  {
    auto writer = BackupWriter::Begin(path(), kPassphrase);
    ASSERT_TRUE(writer.ok());
    ASSERT_TRUE((*writer)->AddValue("/key", "value").ok());
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
  Write(1, 1);
  EXPECT_TRUE(BackupWriter::Begin(path(), kPassphrase).status().Is(Reason::kConflict));
  EXPECT_FALSE(BackupWriter::Begin(folder_ + "/other", "short").ok());
}

}  // namespace
}  // namespace berth::app
