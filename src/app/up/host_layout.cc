// SPDX-License-Identifier: Apache-2.0
#include "app/up/host_layout.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "app/process/process_flags.h"
#include "base/folders.h"
#include "base/hash.h"

namespace berth::app {
namespace {

constexpr std::string_view kMachineClasses = R"(# The machine classes of this host; read at start.
classes:
- name: tiny
  capabilities: {cpu: 1, memory: 128Mi}
- name: little  # known to the cluster once examples/class.yaml is applied
  capabilities: {cpu: 1, memory: 160Mi}
- name: small
  capabilities: {cpu: 1, memory: 1Gi}
- name: medium
  capabilities: {cpu: 2, memory: 4Gi}
)";

constexpr std::string_view kVolumeClasses = R"(# The volume classes of this host; read at start.
classes:
- name: plain
  capabilities: {tps: 100Mi, iops: 1k}
- name: fast
  capabilities: {tps: 1Gi, iops: 20k}
)";

constexpr std::string_view kApiClasses = R"(# Classes of this host for the server; applied at start.
apiVersion: compute.ironcore.dev/v1alpha1
kind: MachineClass
metadata: {name: tiny}
capabilities: {cpu: 1, memory: 128Mi}
---
apiVersion: compute.ironcore.dev/v1alpha1
kind: MachineClass
metadata: {name: small}
capabilities: {cpu: 1, memory: 1Gi}
---
apiVersion: compute.ironcore.dev/v1alpha1
kind: MachineClass
metadata: {name: medium}
capabilities: {cpu: 2, memory: 4Gi}
---
apiVersion: storage.ironcore.dev/v1alpha1
kind: VolumeClass
metadata: {name: plain}
capabilities: {tps: 100Mi, iops: 1k}
resizePolicy: ExpandOnly
---
apiVersion: storage.ironcore.dev/v1alpha1
kind: VolumeClass
metadata: {name: fast}
capabilities: {tps: 1Gi, iops: 20k}
resizePolicy: ExpandOnly
)";

// Guests are confined, leave no dumps, and their output is kept by the runtime.
constexpr std::string_view kQemuConf =
    "stdio_handler = \"file\"\nseccomp_sandbox = 1\nmax_core = 0\n";

Status Failed(const std::string& path) {
  return Unavailable(path + ": " + std::string(std::strerror(errno)));
}

}  // namespace

std::string DefaultHostDir(const std::string& data_dir) {
  std::filesystem::path path = std::filesystem::path(data_dir).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();  // "data/"
  return path.string() + "-host";
}

std::string HostDirOf(const std::string& host_dir,
                      const std::string& data_dir,
                      const cli::Environment& environment) {
  std::string folder = host_dir;
  if (folder.empty()) folder = environment.Variable("BERTH_HOST_DIR");
  if (folder.empty()) {
    std::string data = data_dir;
    if (data.empty()) data = environment.Variable("BERTH_DATA_DIR");
    if (data.empty()) data = DefaultDataDir(environment);
    folder = DefaultHostDir(data);
  }
  std::error_code failed;
  const auto absolute = std::filesystem::absolute(folder, failed);
  std::filesystem::path path = (failed ? std::filesystem::path(folder) : absolute);
  path = path.lexically_normal();
  return (path.has_filename() ? path : path.parent_path()).string();
}

std::string ImagesOf(const std::string& host_dir) { return host_dir + "/images"; }

std::string DefaultRunDir(const std::string& host_dir, std::string_view user_folder) {
  const std::string usual = geteuid() == 0 ? "/run" : std::string(user_folder);
  // In containers /run is on a disk.
  if (access(usual.c_str(), W_OK | X_OK) == 0 && IsInMemory(usual))
    return RunDirIn(usual, host_dir);
  return RunDirIn(fmt::format("/dev/shm/berth-{}", geteuid()), host_dir);
}

std::string RunDirIn(const std::string& above, const std::string& host_dir) {
  const std::string hash = fmt::format("{:016x}", Fnv1a(host_dir));
  std::string usual = above + "/berth-" + hash;
  return usual.size() <= kRunFolderBytesMax ? usual : above + "/" + hash;
}

Status HostLayout::Give(const std::string& path) const {
  if (!options_.user.has_value()) return OkStatus();
  if (lchown(path.c_str(), options_.user->uid, options_.user->gid) != 0) return Failed(path);
  return OkStatus();
}

// (1) What is there already is not touched: inside of its own folders the guests' user may have put
// anything in place of it, and we may be root.
Status HostLayout::MakeFolder(const std::string& path) const {
  if (mkdir(path.c_str(), 0700) == 0) return Give(path);
  if (errno == EEXIST) return OkStatus();
  return Failed(path);
}

// (3) Everybody may write to /dev/shm: what is there has to be ours before anything is put into it.
Status HostLayout::MakeRunFolder() const {
  const std::string above = std::filesystem::path(options_.run_folder).parent_path().string();
  if (mkdir(above.c_str(), 0700) == 0) {
    if (options_.user.has_value() && chmod(above.c_str(), 0711) != 0) return Failed(above);
  } else if (errno != EEXIST) {
    return Failed(above);
  }
  struct stat seen{};
  if (lstat(above.c_str(), &seen) != 0) return Failed(above);
  const bool is_ours = S_ISDIR(seen.st_mode) && (seen.st_uid == geteuid() || seen.st_uid == 0) &&
                       (seen.st_mode & (S_IWGRP | S_IWOTH)) == 0;
  if (!is_ours) {
    return Forbidden(above + " is no folder of ours alone, and secrets would be in it: remove it");
  }
  TRY_STATUS(MakeFolder(options_.run_folder));
  // What else may be there is the guests' user's own doing, and only that user goes this way.
  const std::string link = config_link();
  if (symlink(Path("config").c_str(), link.c_str()) != 0 && errno != EEXIST) return Failed(link);
  return OkStatus();
}

Status HostLayout::MakeHome() const {
  TRY_STATUS(MakeOpenFolders(options_.folder));
  // (2) The guests' user passes through and changes nothing here: it cannot put a link in the place
  // of a log or of the classes.
  const mode_t mode = options_.user.has_value() ? 0750 : 0700;
  const gid_t group = options_.user.has_value() ? options_.user->gid : getegid();
  const char* path = options_.folder.c_str();
  if (chown(path, geteuid(), group) != 0 || chmod(path, mode) != 0) return Failed(options_.folder);
  return OkStatus();
}

Status HostLayout::MakeFile(const std::string& name, std::string_view text) const {
  const std::string path = Path(name);
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) return errno == EEXIST ? OkStatus() : Failed(path);
  // Readable for whoever may come so far.
  const bool is_written =
      write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size()) &&
      fchmod(fd, 0644) == 0;
  close(fd);
  return is_written ? OkStatus() : Failed(path);
}

Status HostLayout::Prepare() const {
  TRY_STATUS(MakeHome());
  TRY_STATUS(MakeRunFolder());
  const std::string log = Path("log");
  if (mkdir(log.c_str(), 0700) != 0 && errno != EEXIST) return Failed(log);  // ours: (2)
  const bool is_new = !std::filesystem::exists(Path("config"));
  for (const std::string_view name :
       {"cache", "config", "disk-budget", "disks", "images", "machines", "poollet"}) {
    TRY_STATUS(MakeFolder(Path(std::string(name))));
  }
  if (is_new) {
    TRY_STATUS(MakeFolder(Path("config/libvirt")));
    TRY_STATUS(MakeFile("config/libvirt/qemu.conf", kQemuConf));
  }
  TRY_STATUS(MakeFile("machine-classes.yaml", kMachineClasses));
  TRY_STATUS(MakeFile("volume-classes.yaml", kVolumeClasses));
  return MakeFile("classes.yaml", kApiClasses);
}

Status HostLayout::PrepareImages() const {
  TRY_STATUS(MakeHome());
  return MakeFolder(images());
}

PartCommand HostLayout::Own(std::string name, std::vector<std::string> words) const {
  PartCommand command;
  command.log = Path("log/" + name + ".log");
  command.name = std::move(name);
  command.words = std::move(words);
  command.user = options_.user;
  return command;
}

PartCommand HostLayout::Libvirtd() const {
  PartCommand command = Own("libvirtd",
                            {"",
                             "libvirtd",
                             "--states=" + options_.run_folder + "/libvirt/qemu/run",
                             "--sockets=" + Path("config/libvirt/qemu/lib")});
  command.variables = {"PATH=/usr/sbin:/usr/bin:/sbin:/bin",
                       "HOME=" + Path("config"),
                       "XDG_RUNTIME_DIR=" + options_.run_folder,
                       "XDG_CONFIG_HOME=" + config_link(),
                       "XDG_CACHE_HOME=" + Path("cache")};
  return command;
}

PartCommand HostLayout::Runtime(std::string name,
                                std::vector<std::string> words,
                                const std::vector<std::string>& more) const {
  words.push_back("--libvirt=qemu+unix:///session?socket=" + libvirt_socket());
  words.push_back("--disk-budget=" + Path("disk-budget"));
  words.push_back("--images=" + images());
  words.insert(words.end(), options_.image_words.begin(), options_.image_words.end());
  words.insert(words.end(), more.begin(), more.end());
  return Own(std::move(name), std::move(words));
}

PartCommand HostLayout::MachineRuntime() const {
  PartCommand command = Runtime("machine-runtime",
                                {"",
                                 "runtime",
                                 "machine",
                                 "--socket=" + machine_socket(),
                                 "--libvirt-logs=" + Path("cache/libvirt/qemu/log"),
                                 "--dir=" + Path("machines"),
                                 "--run-dir=" + options_.run_folder + "/guests",
                                 "--classes=" + Path("machine-classes.yaml"),
                                 "--acceleration=" + options_.acceleration},
                                options_.machine_words);
  if (!options_.trace.empty()) {
    command.words.push_back("--trace=" + options_.trace + "/machine-runtime.spans");
  }
  command.rights = options_.rights;
  return command;
}

PartCommand HostLayout::VolumeRuntime() const {
  return Runtime("volume-runtime",
                 {"",
                  "runtime",
                  "volume",
                  "--socket=" + volume_socket(),
                  "--dir=" + Path("disks"),
                  "--classes=" + Path("volume-classes.yaml")},
                 options_.volume_words);
}

PartCommand HostLayout::Poollet() const {
  PartCommand command = Own("poollet",
                            {"",
                             "poollet",
                             "--server=" + options_.gateway,
                             "--token-file=" + token(),
                             "--name=" + options_.name,
                             "--data-dir=" + Path("poollet"),
                             "--machine-pool=" + machine_pool(),
                             "--machine-runtime=unix:" + machine_socket(),
                             "--volume-pool=" + volume_pool(),
                             "--volume-runtime=unix:" + volume_socket()});
  if (!options_.trace.empty())
    command.words.push_back("--trace=" + options_.trace + "/poollet.spans");
  return command;
}

PartCommand HostLayout::DemoImage() const {
  PartCommand command =
      Own("demo-image", {"", "image", "build", "demo", "--progress", "--images=" + images()});
  command.output = demo_progress();
  return command;
}

PartCommand HostLayout::Client(std::string name, std::vector<std::string> words) const {
  words.insert(words.begin(), "");
  words.push_back("--kubeconfig=" + options_.kubeconfig);
  PartCommand command = Own(std::move(name), std::move(words));
  command.user.reset();
  return command;
}

}  // namespace berth::app
