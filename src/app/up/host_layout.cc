// SPDX-License-Identifier: Apache-2.0
#include "app/up/host_layout.h"

#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <utility>

namespace berth::app {
namespace {

// Four guests on each core: a machine at home runs many that mostly rest.
constexpr std::string_view kOvercommitCpu = "4";
constexpr std::string_view kLocalDisk = "20Gi";

constexpr std::string_view kMachineClasses = R"(# The machine classes of this host; read at start.
classes:
- name: tiny
  capabilities: {cpu: 1, memory: 128Mi}
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

constexpr std::string_view kApiClasses = R"(# The same classes for the server; applied at start.
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

Status HostLayout::Give(const std::string& path) const {
  if (!options_.user.has_value()) return OkStatus();
  if (lchown(path.c_str(), options_.user->uid, options_.user->gid) != 0) return Failed(path);
  return OkStatus();
}

Status HostLayout::MakeFolder(const std::string& path) const {
  std::error_code failed;
  // Those above belong to us; only the last one is the host's.
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), failed);
  if (!failed && mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return Failed(path);
  if (failed) return Unavailable(path + ": " + failed.message());
  return Give(path);
}

Status HostLayout::MakeFile(const std::string& name, std::string_view text) const {
  const std::string path = Path(name);
  if (!std::filesystem::exists(path)) {
    std::ofstream file(path);
    file << text;
    file.close();
    if (!file) return Failed(path);
  }
  return Give(path);
}

Status HostLayout::Prepare() const {
  TRY_STATUS(MakeFolder(options_.folder));
  TRY_STATUS(MakeFolder(options_.run_folder));
  for (const std::string_view name : {"log", "config", "config/libvirt", "cache", "images"}) {
    TRY_STATUS(MakeFolder(Path(std::string(name))));
  }
  TRY_STATUS(MakeFile("config/libvirt/qemu.conf", kQemuConf));
  TRY_STATUS(MakeFile("machine-classes.yaml", kMachineClasses));
  TRY_STATUS(MakeFile("volume-classes.yaml", kVolumeClasses));
  return MakeFile("classes.yaml", kApiClasses);
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
  PartCommand command = Own("libvirtd", {"/usr/sbin/libvirtd"});
  command.variables = {"PATH=/usr/sbin:/usr/bin:/sbin:/bin",
                       "HOME=" + options_.folder,
                       "XDG_RUNTIME_DIR=" + options_.run_folder,
                       "XDG_CONFIG_HOME=" + Path("config"),
                       "XDG_CACHE_HOME=" + Path("cache")};
  return command;
}

PartCommand HostLayout::MachineRuntime() const {
  PartCommand command = Own("machine-runtime",
                            {"",
                             "runtime",
                             "machine",
                             "--socket=" + machine_socket(),
                             "--libvirt=qemu+unix:///session?socket=" + libvirt_socket(),
                             "--dir=" + Path("machines"),
                             "--run-dir=" + options_.run_folder + "/guests",
                             "--classes=" + Path("machine-classes.yaml"),
                             "--images=" + images(),
                             "--local-disk=" + std::string(kLocalDisk),
                             "--overcommit-cpu=" + std::string(kOvercommitCpu),
                             "--acceleration=" + options_.acceleration});
  command.rights = options_.rights;
  return command;
}

PartCommand HostLayout::VolumeRuntime() const {
  return Own("volume-runtime",
             {"",
              "runtime",
              "volume",
              "--socket=" + volume_socket(),
              "--dir=" + Path("disks"),
              "--classes=" + Path("volume-classes.yaml"),
              "--images=" + images()});
}

PartCommand HostLayout::Poollet() const {
  return Own("poollet",
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
}

PartCommand HostLayout::Client(std::string name, std::vector<std::string> words) const {
  words.insert(words.begin(), "");
  words.push_back("--kubeconfig=" + options_.kubeconfig);
  PartCommand command = Own(std::move(name), std::move(words));
  command.user.reset();
  return command;
}

}  // namespace berth::app
