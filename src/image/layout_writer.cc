// SPDX-License-Identifier: Apache-2.0
#include "image/layout_writer.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <set>
#include <utility>
#include <vector>

#include "base/file_status.h"
#include "image/file_reader.h"
#include "image/file_writer.h"
#include "pki/digest.h"

namespace berth::image {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kVersionText = "{\"imageLayoutVersion\":\"1.0.0\"}";
constexpr mode_t kListableForAll = 0755;
constexpr Duration kPartLife = Duration::Seconds(24 * 60 * 60);

Status MakeFolder(const std::string& path) {
  std::error_code failed;
  fs::create_directories(fs::path(path).parent_path(), failed);
  if (mkdir(path.c_str(), kListableForAll) == 0) {
    // Whatever the umask is: who runs guests is often another user.
    if (chmod(path.c_str(), kListableForAll) != 0) return FileFailed("open up", path);
    return OkStatus();
  }
  return errno == EEXIST ? OkStatus() : FileFailed("make folder", path);
}

// Changes of the index, one at a time.
class IndexLock {
 public:
  static Result<IndexLock> Take(const Layout& layout) {
    const std::string path = layout.folder() + "/oci-layout";
    const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0) return FileFailed("open", path);
    IndexLock lock(fd);
    while (flock(fd, LOCK_EX) != 0) {
      if (errno != EINTR) return FileFailed("lock", path);
    }
    return lock;
  }
  ~IndexLock() {
    if (fd_ >= 0) close(fd_);
  }
  IndexLock(IndexLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  IndexLock& operator=(IndexLock&&) = delete;

 private:
  explicit IndexLock(int fd) : fd_(fd) {}
  int fd_;
};

Status ReplaceEntries(const Layout& layout, const std::vector<Descriptor>& entries) {
  return ReplaceFile(layout.folder() + "/index.json", IndexText(entries));
}

// Everything that a document leads to, itself included. What cannot be read leads to nothing.
void Reach(const Layout& layout,
           const Descriptor& from,
           int depth,
           std::set<std::string>& reached) {
  constexpr int kDepthMax = 4;
  if (depth == kDepthMax || !reached.insert(from.digest).second) return;
  const Result<std::string> text = layout.Document(from);
  if (!text.ok()) return;
  if (from.is_index()) {
    const Result<std::vector<Descriptor>> entries = ParseIndex(*text);
    if (!entries.ok()) return;
    for (const Descriptor& entry : *entries) Reach(layout, entry, depth + 1, reached);
    return;
  }
  const Result<Manifest> manifest = ParseManifest(*text);
  if (!manifest.ok()) return;
  for (const Descriptor& part : manifest->parts()) reached.insert(part.digest);
}

// The digest of what `fill` has written into the part; of what was not written to its end nothing
// stays, because it may be what fills the disk.
Result<std::string> FillPart(const std::string& part,
                             FileWriter& writer,
                             const std::function<Status()>& fill) {
  const Status filled = fill();
  Result<std::string> digest = filled.ok() ? writer.Finish() : Result<std::string>(filled);
  if (!digest.ok()) unlink(part.c_str());
  return digest;
}

using IsKept = std::function<bool(const std::string& name, const struct stat& status)>;
Result<int64_t> RemoveFiles(const std::string& folder, const IsKept& is_kept) {
  int64_t removed = 0;
  std::error_code failed;
  for (const auto& file : fs::directory_iterator(folder, failed)) {
    const std::string path = file.path();
    struct stat status = {};
    if (lstat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) continue;
    if (is_kept(file.path().filename(), status)) continue;
    if (unlink(path.c_str()) != 0) return FileFailed("remove", path);
    removed += int64_t{status.st_size};
  }
  return removed;
}

}  // namespace

Result<LayoutWriter> LayoutWriter::Open(const std::string& folder) {
  for (const std::string_view inner :
       {"", "/blobs", "/blobs/sha256", "/parts", "/unpacked", "/origins"}) {
    TRY_STATUS(MakeFolder(folder + std::string(inner)));
  }
  TRY(LayoutHold hold, LayoutHold::Take(folder, LayoutHold::Kind::kShared));
  LayoutWriter writer(folder, std::move(hold));
  const std::string version = folder + "/oci-layout";
  std::error_code ignored;
  if (!fs::exists(version, ignored)) TRY_STATUS(ReplaceFile(version, kVersionText));
  TRY(const IndexLock lock, IndexLock::Take(writer.layout_));
  if (!writer.layout_.Exists()) TRY_STATUS(ReplaceEntries(writer.layout_, {}));
  return writer;
}

std::string PartFile(const Layout& layout, std::string_view name) {
  return fmt::format("{}/parts/{}", layout.folder(), name);
}

Status SettlePart(const Layout& layout, const std::string& part, const std::string& digest) {
  const std::string path = layout.folder() + "/blobs/sha256/" + digest;
  if (rename(part.c_str(), path.c_str()) != 0) return FileFailed("put in place", path);
  return SyncFolder(layout.folder() + "/blobs/sha256");
}

Result<Descriptor> LayoutWriter::AddText(std::string_view media_type, std::string_view text) {
  Descriptor descriptor{.media_type = std::string(media_type),
                        .digest = pki::Sha256Hex(text),
                        .size = static_cast<int64_t>(text.size())};
  const std::string part = PartFile(layout_, fmt::format("{}.{}", descriptor.digest, getpid()));
  TRY(const auto writer, FileWriter::Open(part, FileWriter::Begin::kEmpty));
  const auto fill = [&writer, text] { return writer->Append(text); };
  TRY_STATUS(FillPart(part, *writer, fill).status());
  TRY_STATUS(SettlePart(layout_, part, descriptor.digest));
  return descriptor;
}

Result<Descriptor> LayoutWriter::AddFile(std::string_view media_type,
                                         const std::string& path,
                                         const std::function<void(int64_t bytes)>& copied) {
  TRY(FileReader file, FileReader::Open(path));
  return AddFile(media_type, std::move(file), copied);
}

Result<Descriptor> LayoutWriter::AddFile(std::string_view media_type,
                                         FileReader file,
                                         const std::function<void(int64_t bytes)>& copied) {
  const std::string part = PartFile(layout_, fmt::format("file.{}", getpid()));
  TRY(const auto writer, FileWriter::Open(part, FileWriter::Begin::kEmpty));
  const auto copy = [&writer, &copied](std::string_view bytes) -> Status {
    TRY_STATUS(writer->Append(bytes));
    if (copied != nullptr) copied(static_cast<int64_t>(bytes.size()));
    return OkStatus();
  };
  const auto fill = [&file, &copy] { return file.ReadAll(copy); };
  TRY(std::string digest, FillPart(part, *writer, fill));
  Descriptor descriptor{
      .media_type = std::string(media_type), .digest = std::move(digest), .size = writer->bytes()};
  TRY_STATUS(SettlePart(layout_, part, descriptor.digest));
  return descriptor;
}

Result<Descriptor> LayoutWriter::AddManifest(const Manifest& manifest,
                                             std::string_view tag,
                                             std::string_view architecture) {
  TRY(Descriptor entry, AddText(kManifestType, ManifestText(manifest)));
  entry.tag = tag;
  entry.architecture = architecture;
  TRY_STATUS(SetEntry(entry));
  return entry;
}

Status LayoutWriter::SetEntry(const Descriptor& entry) {
  TRY(const IndexLock lock, IndexLock::Take(layout_));
  TRY(std::vector<Descriptor> entries, layout_.Entries());
  std::erase_if(entries, [&entry](const Descriptor& other) {
    return other.tag == entry.tag && other.architecture == entry.architecture;
  });
  entries.push_back(entry);
  return ReplaceEntries(layout_, entries);
}

Status RemoveEntries(const Layout& layout,
                     const std::function<bool(const Descriptor& entry)>& is_unwanted) {
  TRY(const IndexLock lock, IndexLock::Take(layout));
  TRY(std::vector<Descriptor> entries, layout.Entries());
  if (std::erase_if(entries, is_unwanted) == 0) return OkStatus();
  return ReplaceEntries(layout, entries);
}

Result<int64_t> Sweep(const Layout& layout, WallTime now) {
  TRY(const LayoutHold hold, LayoutHold::Take(layout.folder(), LayoutHold::Kind::kAlone));
  TRY(const std::vector<Descriptor> entries, layout.Entries());
  std::set<std::string> reached;
  for (const Descriptor& entry : entries) Reach(layout, entry, 0, reached);
  const auto is_reached = [&reached](const std::string& name, const struct stat&) {
    return reached.contains(name);
  };
  const WallTime old = now - kPartLife;
  const auto is_young = [old](const std::string&, const struct stat& status) {
    return WallTime::FromSeconds(status.st_mtim.tv_sec) > old;
  };
  TRY(const int64_t blobs, RemoveFiles(layout.folder() + "/blobs/sha256", is_reached));
  TRY(const int64_t parts, RemoveFiles(layout.folder() + "/parts", is_young));
  const auto is_of_reached = [&reached](const std::string& name, const struct stat&) {
    return reached.contains(name.substr(0, name.find('.')));
  };
  TRY(const int64_t unpacked, RemoveFiles(layout.folder() + "/unpacked", is_of_reached));
  TRY(const int64_t origins, RemoveFiles(layout.folder() + "/origins", is_of_reached));
  return blobs + parts + unpacked + origins;
}

}  // namespace berth::image
