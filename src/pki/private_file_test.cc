// SPDX-License-Identifier: Apache-2.0
// Defends: secret files are readable by their owner only, replaced whole, and refused when others
// could have read them.
#include "pki/private_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "pki/internal/temp_folder.h"

namespace berth::pki {
namespace {

void WritePlain(const std::string& path, const std::string& text, mode_t mode) {
  std::ofstream(path) << text;
  ASSERT_EQ(chmod(path.c_str(), mode), 0);
}

TEST(PrivateFile, IsWrittenForItsOwnerOnlyAndReadBack) {
  TempFolder folder;
  const std::string path = folder / "key";
  ASSERT_TRUE(WritePrivateFile(path, "secret").ok());
  EXPECT_EQ(ModeOf(path), 0600U);
  EXPECT_EQ(ReadPrivateFile(path).value(), "secret");
}

TEST(PrivateFile, ReplacesWhateverWasThereAndLeavesNoTemporaryFile) {
  TempFolder folder;
  const std::string path = folder / "key";
  WritePlain(path, "open to all", 0666);
  WritePlain(path + ".tmp", "left by a crash", 0644);
  ASSERT_TRUE(WritePrivateFile(path, "new").ok());
  EXPECT_EQ(ModeOf(path), 0600U);
  EXPECT_EQ(ReadPrivateFile(path).value(), "new");
  EXPECT_FALSE(std::filesystem::exists(path + ".tmp"));
}

TEST(PrivateFile, DoesNotWriteThroughALinkInPlaceOfTheTemporaryFile) {
  TempFolder folder;
  const std::string victim = folder / "victim";
  WritePlain(victim, "untouched", 0600);
  std::filesystem::create_symlink(victim, folder / "key.tmp");
  ASSERT_TRUE(WritePrivateFile(folder / "key", "new").ok());
  EXPECT_EQ(ReadPrivateFile(victim).value(), "untouched");
}

TEST(PrivateFile, IsRefusedWhenGroupOrOthersMayReadIt) {
  TempFolder folder;
  const std::string path = folder / "key";
  for (mode_t mode : {0640U, 0604U, 0660U, 0644U, 0602U}) {
    WritePlain(path, "secret", mode);
    auto text = ReadPrivateFile(path);
    ASSERT_FALSE(text.ok()) << mode;
    EXPECT_TRUE(text.status().Is(Reason::kForbidden));
    EXPECT_NE(text.status().message().find(path), std::string::npos);
    EXPECT_NE(text.status().message().find("chmod 600"), std::string::npos);
  }
}

TEST(PrivateFile, MissingIsNotFoundAndAFolderIsNoFile) {
  TempFolder folder;
  EXPECT_TRUE(ReadPrivateFile(folder / "nothing").status().Is(Reason::kNotFound));
  std::filesystem::create_directory(folder / "d");
  EXPECT_TRUE(ReadPrivateFile(folder / "d").status().Is(Reason::kForbidden));
}

TEST(PrivateFile, AFailedWriteNamesThePathAndKeepsTheOldFile) {
  TempFolder folder;
  Status status = WritePrivateFile(folder / "no/such/folder/key", "secret");
  EXPECT_FALSE(status.ok());
  EXPECT_NE(status.message().find("no/such/folder/key"), std::string::npos);
  EXPECT_EQ(status.message().find("secret"), std::string::npos);
}

TEST(PrivateFolder, IsMadeWithItsParentsAndClosedToOthers) {
  TempFolder folder;
  const std::string path = folder / "data/pki";
  ASSERT_TRUE(EnsurePrivateFolder(path).ok());
  EXPECT_EQ(ModeOf(path), 0700U);
  ASSERT_EQ(chmod(path.c_str(), 0755), 0);
  ASSERT_TRUE(EnsurePrivateFolder(path).ok());
  EXPECT_EQ(ModeOf(path), 0700U);
}

TEST(PrivateFolder, AFileInItsPlaceIsAnError) {
  TempFolder folder;
  WritePlain(folder / "pki", "", 0600);
  EXPECT_FALSE(EnsurePrivateFolder(folder / "pki").ok());
}

}  // namespace
}  // namespace berth::pki
