// SPDX-License-Identifier: Apache-2.0
#include "runtime/machine/guest_folders.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <set>
#include <system_error>
#include <utility>

#include "base/file_status.h"
#include "base/folders.h"
#include "base/strings.h"
#include "image/file_reader.h"
#include "image/file_writer.h"
#include "image/manifest.h"
#include "pki/private_file.h"
#include "runtime/machine/efi_store.h"
#include "runtime/machine/guest_user.h"

namespace berth::runtime {
namespace {

namespace fs = std::filesystem;

// Others may pass through, and see nothing.
constexpr mode_t kPassThrough = 0711;
constexpr std::string_view kSecretsName = "/secrets.json";

Status MakeFolder(const std::string& path) {
  TRY_STATUS(MakeOpenFolders(path));
  // It is ours, whoever made it.
  if (chmod(path.c_str(), kPassThrough) != 0) return FileFailed("set the mode of", path);
  return OkStatus();
}

// QEMU of a root's libvirtd comes to its files by itself, and says no more than that it may not.
Status CheckWay(const GuestFolders::Places& places) {
  if (places.guest_user.empty() || geteuid() != 0) return OkStatus();
  const Result<GuestUser> user = GuestUserNamed(places.guest_user);
  if (!user.ok()) return OkStatus();  // said when something is to be given to it
  const FolderUser guests{.uid = user->uid, .groups = GroupsOf(places.guest_user, *user)};
  for (const std::string& folder : {places.folder, places.run_folder}) {
    const std::string closed = ClosedFolder(folder, guests);
    if (closed.empty()) continue;
    return BadRequest("the guests' user " + places.guest_user + " may not enter " + closed +
                      ", which is on the way to " + folder + ": chmod o+x " + closed +
                      ", name another folder, or say with --guest-user who QEMU is");
  }
  return OkStatus();
}

Status CheckMemory(const GuestFolders::Places& places) {
  if (places.secrets_may_be_on_disk || IsInMemory(places.run_folder)) return OkStatus();
  return BadRequest("folder " + places.run_folder +
                    " is not in memory (tmpfs), and keys and ignition data of guests are kept in "
                    "it: name one below /run or /dev/shm with --run-dir, or accept with "
                    "--secrets-on-disk that they are written to a disk");
}

Result<int> Lock(const std::string& path) {
  constexpr mode_t kOwnerOnly = 0600;
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, kOwnerOnly);
  if (fd < 0) return FileFailed("open", path);
  if (flock(fd, LOCK_EX | LOCK_NB) == 0) return fd;
  close(fd);
  return Conflict(path + " is locked: another machine runtime uses the folder");
}

Status RemoveAll(const std::string& path) {
  std::error_code failed;
  fs::remove_all(path, failed);
  return failed ? Internal("remove " + path + ": " + failed.message()) : OkStatus();
}

Status Unlink(const std::string& path) {
  if (unlink(path.c_str()) == 0 || errno == ENOENT) return OkStatus();
  return FileFailed("remove", path);
}

Status GiveToGuest(const std::string& name, const std::string& path) {
  if (name.empty() || geteuid() != 0) return OkStatus();
  TRY(const GuestUser user, GuestUserNamed(name));
  return GiveTo(user, path);
}

Status PutOrRemove(const std::string& path, const std::string& content) {
  if (content.empty()) return Unlink(path);
  return AsFullDisk(pki::WritePrivateFile(path, content));
}

// Of a firmware's variables; the largest that OVMF has are 528 KiB.
Result<std::string> ReadStore(const std::string& path) {
  constexpr size_t kStoreMax = size_t{4} << 20;
  std::ifstream file(path, std::ios::binary);
  std::string bytes(kStoreMax + 1, '\0');
  file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  bytes.resize(static_cast<size_t>(file.gcount()));
  if (file.bad() || bytes.empty()) return Internal("read " + path + ": nothing is there");
  if (bytes.size() > kStoreMax) return BadRequest(path + " has more than 4 MiB");
  return bytes;
}

bool IsFile(const std::string& path) {
  struct stat status = {};
  return lstat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode);
}

}  // namespace

GuestFolders::GuestFolders(Places places, int lock, rt::BlockingPool& pool, rt::BlockingPool& large)
    : places_(std::move(places)), lock_(lock), pool_(pool), large_(large) {}

GuestFolders::~GuestFolders() { close(lock_); }

Result<std::unique_ptr<GuestFolders>> GuestFolders::Open(Places places,
                                                         rt::BlockingPool& pool,
                                                         rt::BlockingPool& large) {
  TRY_STATUS(MakeFolder(places.folder));
  TRY_STATUS(MakeFolder(places.run_folder));
  TRY_STATUS(CheckWay(places));
  TRY_STATUS(CheckMemory(places));
  TRY(const int lock, Lock(places.folder + "/lock"));
  return std::unique_ptr<GuestFolders>(new GuestFolders(std::move(places), lock, pool, large));
}

DiskFile GuestFolders::LocalDisk(std::string_view id, std::string_view volume) const {
  return {.path = Stay(id) + "/" + SerialOf(volume) + ".qcow2", .format = DiskFormat::kQcow2};
}

rt::Task<Status> GuestFolders::Prepare(std::string id, Content content) {
  const auto job = [this, &id, &content]() -> Status {
    TRY_STATUS(MakeFolder(Stay(id)));
    TRY_STATUS(MakeFolder(Run(id)));
    TRY_STATUS(PutOrRemove(Run(id) + std::string(kSecretsName), content.secrets));
    TRY_STATUS(PutOrRemove(IgnitionFile(id), content.ignition));
    TRY_STATUS(PutOrRemove(SeedFile(id), content.seed));
    for (const std::string& path : {IgnitionFile(id), SeedFile(id)}) {
      if (IsFile(path)) TRY_STATUS(GiveToGuest(places_.guest_user, path));
    }
    return OkStatus();
  };
  co_return co_await pool_.Run("guests.prepare", job);
}

rt::Task<Status> GuestFolders::PutEfiVariables(std::string id,
                                               std::string fresh,
                                               std::vector<iri::EfiVariable> variables) {
  const auto job = [this, &id, &fresh, &variables]() -> Status {
    const std::string path = EfiVariables(id);
    const std::string& from = IsFile(path) ? path : fresh;
    TRY(std::string store, ReadStore(from));
    Result<std::string> with = WithEfiVariables(std::move(store), variables);
    if (!with.ok()) return with.status().Wrap(from);
    TRY_STATUS(AsFullDisk(pki::WritePrivateFile(path, *with)));
    return GiveToGuest(places_.guest_user, path);
  };
  co_return co_await pool_.Run("guests.efi", job);
}

rt::Task<Result<std::optional<std::string>>> GuestFolders::Secrets(std::string id) {
  const auto job = [this, &id]() -> Result<std::optional<std::string>> {
    Result<std::string> text = pki::ReadPrivateFile(Run(id) + std::string(kSecretsName));
    if (text.status().Is(Reason::kNotFound)) return std::optional<std::string>();
    if (!text.ok()) return text.status();
    return std::optional<std::string>(*std::move(text));
  };
  co_return co_await pool_.Run("guests.secrets", job);
}

rt::Task<Result<bool>> GuestFolders::Exists(std::string path) {
  const auto job = [&path]() -> Result<bool> { return IsFile(path); };
  co_return co_await pool_.Run("guests.look", job);
}

rt::Task<Status> GuestFolders::Settle(std::string part, std::string whole) {
  const auto job = [&part, &whole]() -> Status {
    TRY_STATUS(SyncFile(part));
    if (rename(part.c_str(), whole.c_str()) != 0) return FileFailed("rename", part);
    return SyncFolder(fs::path(whole).parent_path().string());
  };
  co_return co_await pool_.Run("guests.settle", job);
}

rt::Task<Status> GuestFolders::RemoveFile(std::string path) {
  const auto job = [&path] { return Unlink(path); };
  co_return co_await pool_.Run("guests.remove_file", job);
}

rt::Task<Result<std::vector<std::string>>> GuestFolders::ListUnused() {
  const auto job = [this]() -> Result<std::vector<std::string>> {
    std::set<std::string> ids;
    for (const std::string& folder : {places_.folder, places_.run_folder}) {
      std::error_code failed;
      for (const auto& entry : fs::directory_iterator(folder, failed)) {
        std::error_code ignored;
        std::string name = entry.path().filename().string();
        if (name.starts_with("m-") && entry.is_directory(ignored)) ids.insert(std::move(name));
      }
      if (failed) return Internal("list " + folder + ": " + failed.message());
    }
    std::vector<std::string> unused;
    for (const std::string& id : ids) {
      std::error_code absent;
      const bool is_empty = fs::is_empty(Stay(id), absent);
      if (is_empty || absent) unused.push_back(id);
    }
    return unused;
  };
  co_return co_await pool_.Run("guests.list", job);
}

rt::Task<Status> GuestFolders::Remove(std::string id) {
  const auto job = [this, &id]() -> Status {
    TRY_STATUS(RemoveAll(Run(id)));
    return RemoveAll(Stay(id));
  };
  co_return co_await pool_.Run("guests.remove", job);
}

rt::Task<Status> GuestFolders::RemoveLibvirtLog(std::string domain) {
  const std::string path = LibvirtLog(domain);
  if (path.empty()) co_return OkStatus();
  co_return co_await RemoveFile(path);
}

rt::Task<Status> GuestFolders::PutKernel(std::string id, image::KernelFiles kernel) {
  const auto job = [this, &id, &kernel]() -> Status {
    const std::string whole = Stay(id) + std::string(kKernelName);
    if (IsFile(whole)) return OkStatus();
    if (!kernel.initramfs.empty()) {
      TRY_STATUS(image::CopyFile(kernel.initramfs, Stay(id) + std::string(kInitramfsName)));
    }
    TRY_STATUS(image::ReplaceFile(Stay(id) + std::string(kCommandLineName), kernel.command_line));
    return image::CopyFile(kernel.kernel, whole);
  };
  co_return co_await large_.Run("guests.put_kernel", job);
}

rt::Task<Result<std::optional<KernelBoot>>> GuestFolders::FindKernel(std::string id) {
  const auto job = [this, &id]() -> Result<std::optional<KernelBoot>> {
    KernelBoot boot;
    boot.kernel = Stay(id) + std::string(kKernelName);
    if (!IsFile(boot.kernel)) return std::optional<KernelBoot>();
    boot.initramfs = Stay(id) + std::string(kInitramfsName);
    if (!IsFile(boot.initramfs)) boot.initramfs.clear();
    TRY(boot.command_line,
        image::ReadText(Stay(id) + std::string(kCommandLineName), image::kCommandLineBytesMax));
    return std::optional(std::move(boot));
  };
  co_return co_await pool_.Run("guests.find_kernel", job);
}

rt::Task<Result<int64_t>> GuestFolders::KernelBytes(std::string id) {
  std::vector<std::string> paths = {Stay(id) + std::string(kKernelName),
                                    Stay(id) + std::string(kInitramfsName)};
  return BytesOf(std::move(paths));
}

rt::Task<Result<int64_t>> GuestFolders::BytesOf(std::vector<std::string> paths) {
  const auto job = [&paths]() -> Result<int64_t> {
    int64_t bytes = 0;
    for (const std::string& path : paths) {
      struct stat status = {};
      if (lstat(path.c_str(), &status) == 0) bytes += int64_t{status.st_size};
    }
    return bytes;
  };
  co_return co_await pool_.Run("guests.measure", job);
}

rt::Task<Status> GuestFolders::PutMedia(std::string id, Media media) {
  const auto job = [this, &id, &media]() -> Status {
    const std::pair<const std::string*, std::string_view> copies[] = {
        {&media.iso, kIsoName}, {&media.squashfs, kSquashfsName}};
    for (const auto& [from, name] : copies) {
      const std::string whole = Stay(id) + std::string(name);
      if (from->empty() || IsFile(whole)) continue;
      TRY_STATUS(AsFullDisk(image::CopyFile(*from, whole)));
    }
    return OkStatus();
  };
  co_return co_await large_.Run("guests.put_media", job);
}

rt::Task<Result<GuestFolders::Media>> GuestFolders::FindMedia(std::string id) {
  const auto job = [this, &id]() -> Result<Media> {
    Media media{.iso = Stay(id) + std::string(kIsoName),
                .squashfs = Stay(id) + std::string(kSquashfsName)};
    if (!IsFile(media.iso)) media.iso.clear();
    if (!IsFile(media.squashfs)) media.squashfs.clear();
    return media;
  };
  co_return co_await pool_.Run("guests.find_media", job);
}

}  // namespace berth::runtime
