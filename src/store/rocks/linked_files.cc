// SPDX-License-Identifier: Apache-2.0
#include "store/rocks/linked_files.h"

#include <fmt/format.h>
#include <stdlib.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>
#include <vector>

namespace berth::store {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kFolderMark = ".reading-";

Status Failed(const fs::path& path, const std::error_code& error) {
  return Unavailable(fmt::format("{}: {}", path.string(), error.message()));
}

// Nothing here for a file that is gone: whoever needs it notices.
Status LinkInto(const fs::path& file, const fs::path& folder) {
  const fs::path to = folder / file.filename();
  std::error_code error;
  fs::create_hard_link(file, to, error);
  if (!error || error == std::errc::no_such_file_or_directory || error == std::errc::file_exists) {
    return OkStatus();
  }
  // A file system without links.
  fs::copy_file(file, to, error);
  if (!error || error == std::errc::no_such_file_or_directory) return OkStatus();
  return Failed(to, error);
}

uint64_t NumberOf(const fs::path& log) {
  const std::string stem = log.stem().string();
  uint64_t number = 0;
  std::from_chars(stem.data(), stem.data() + stem.size(), number);
  return number;
}

Result<std::vector<fs::path>> FilesEnding(const std::string& dir, std::string_view ending) {
  std::vector<fs::path> files;
  std::error_code error;
  fs::directory_iterator it(dir, error);
  for (; !error && it != fs::directory_iterator(); it.increment(error)) {
    if (it->path().extension() == ending) files.push_back(it->path());
  }
  if (error) return Failed(dir, error);
  return files;
}

}  // namespace

LinkedFolder::LinkedFolder(const std::string& dir) : dir_(dir) {}
LinkedFolder::~LinkedFolder() { Remove(); }

void LinkedFolder::Remove() {
  if (path_.empty()) return;
  std::error_code error;
  fs::remove_all(path_, error);
  path_.clear();
}

Status LinkedFolder::Link(const std::function<void()>& between) {
  Remove();
  TRY_STATUS(Prepare());
  TRY_STATUS(LinkLogs());
  if (between) between();
  TRY_STATUS(CopyDescription());
  return LinkTables();
}

Status LinkedFolder::Prepare() {
  std::string path = fmt::format("{}{}XXXXXX", dir_, kFolderMark);
  if (::mkdtemp(path.data()) == nullptr) {
    return Unavailable(fmt::format("{}: {}", path, std::strerror(errno)));
  }
  path_ = path;
  return OkStatus();
}

// While a folder is listed, a log made later can be seen and one made before it be missed. So only
// those up to the newest of a first look count: one of them that is missing is written out.
Status LinkedFolder::LinkLogs() const {
  TRY(const std::vector<fs::path> first, FilesEnding(dir_, ".log"));
  uint64_t newest = 0;
  for (const fs::path& log : first) newest = std::max(newest, NumberOf(log));
  TRY(const std::vector<fs::path> logs, FilesEnding(dir_, ".log"));
  for (const fs::path& log : logs) {
    if (NumberOf(log) <= newest) TRY_STATUS(LinkInto(log, path_));
  }
  return OkStatus();
}

// A copy, because a server of an older version appends to it.
Status LinkedFolder::CopyDescription() const {
  std::ifstream current(dir_ + "/CURRENT");
  std::string name;
  if (!std::getline(current, name)) {
    return Unavailable(fmt::format("{}/CURRENT cannot be read", dir_));
  }
  std::error_code error;
  fs::copy_file(dir_ + "/" + name, path_ + "/" + name, error);
  if (error == std::errc::no_such_file_or_directory) return OkStatus();
  if (error) return Failed(dir_ + "/" + name, error);
  fs::copy_file(dir_ + "/IDENTITY", path_ + "/IDENTITY", error);
  std::ofstream(path_ + "/CURRENT") << name << '\n';
  return OkStatus();
}

Status LinkedFolder::LinkTables() const {
  TRY(const std::vector<fs::path> tables, FilesEnding(dir_, ".sst"));
  for (const fs::path& table : tables) TRY_STATUS(LinkInto(table, path_));
  return OkStatus();
}

void RemoveLinkedFolders(const std::string& dir) {
  const fs::path store(dir);
  const std::string mark = store.filename().string() + std::string(kFolderMark);
  std::error_code error;
  std::vector<fs::path> left;
  for (fs::directory_iterator it(store.parent_path(), error);
       !error && it != fs::directory_iterator();
       it.increment(error)) {
    if (it->path().filename().string().starts_with(mark)) left.push_back(it->path());
  }
  for (const fs::path& folder : left) fs::remove_all(folder, error);
}

}  // namespace berth::store
