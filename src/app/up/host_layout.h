// SPDX-License-Identifier: Apache-2.0
// A HostLayout says what a host of `berth up` consists of: its folders, its files, and the command
// line of each of its processes.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app/up/part.h"
#include "base/result.h"
#include "cli/environment.h"

namespace berth::app {

struct HostOptions {
  std::string folder;        // absolute; everything that is kept
  std::string run_folder;    // absolute; sockets and secrets, in memory
  std::string name;          // of the host and its machine pool
  std::string acceleration;  // auto, kvm, tcg
  std::optional<ProcessUser> user;
  std::string rights;   // capabilities for networks, or ""
  std::string gateway;  // "127.0.0.1:7444"
  // More words for its runtimes, as they know them: of both, of machines and of volumes. A machine
  // at home runs many guests that mostly rest.
  std::vector<std::string> image_words = {};
  std::vector<std::string> machine_words = {"--local-disk=20Gi", "--overcommit-cpu=4"};
  std::vector<std::string> volume_words = {};
  std::string trace;       // folder for spans (machine-runtime, poollet), or ""
  std::string kubeconfig;  // of somebody who may make join tokens and classes
};

// A socket's path has 107: /c/libvirt/qemu/lib/domain-NNNN-berth-m-<12 characters>/monitor.sock is
// libvirt's own (HostLayout::config_link).
inline constexpr size_t kRunFolderBytesMax = 107 - 65;

// Where a host is if nobody says otherwise: beside the data folder, which is nobody else's.
std::string DefaultHostDir(const std::string& data_dir);
// The host that these flags and the environment come to; "" is a flag that is not given.
std::string HostDirOf(const std::string& host_dir,
                      const std::string& data_dir,
                      const cli::Environment& environment);
// The images of a host.
std::string ImagesOf(const std::string& host_dir);
// Its place for sockets and secrets, for this host alone: below /run as root, else below
// `user_folder` (XDG_RUNTIME_DIR, or ""), if that is in memory; else below /dev/shm. Its name is
// short where a user's number has ten digits.
std::string DefaultRunDir(const std::string& host_dir, std::string_view user_folder);
std::string RunDirIn(const std::string& above, const std::string& host_dir);

class HostLayout {
 public:
  explicit HostLayout(HostOptions options) : options_(std::move(options)) {}

  const HostOptions& options() const { return options_; }
  std::string machine_pool() const { return options_.name; }
  std::string volume_pool() const { return options_.name + "-disks"; }
  std::string images() const { return ImagesOf(options_.folder); }
  std::string demo_image() const { return Path("images/demo"); }
  // How far that is while it is made.
  std::string demo_progress() const { return Path("log/demo-image.progress"); }
  // What the server last said of a pool that is not ready.
  std::string pool_words() const { return Path("log/pool.words"); }
  std::string token() const { return Path("token"); }
  // There once the host has joined.
  std::string identity() const { return Path("poollet/identity"); }
  // A way to the folder that libvirt makes sockets of guests below, short wherever that is: a
  // socket's path has 107 bytes, and a home of "administrator" would be too long.
  std::string config_link() const { return options_.run_folder + "/c"; }
  std::string libvirt_socket() const { return options_.run_folder + "/libvirt/libvirt-sock"; }
  std::string machine_socket() const { return options_.run_folder + "/machine.sock"; }
  std::string volume_socket() const { return options_.run_folder + "/volume.sock"; }

  // Makes what is missing; what is there stays as it is. Folders of guests are their user's alone,
  // everything else is ours.
  Status Prepare() const;
  // The same of the folder of images alone.
  Status PrepareImages() const;
  // For the poollet, which is the guests' user.
  Status GiveToken() const { return Give(token()); }

  PartCommand Libvirtd() const;
  PartCommand MachineRuntime() const;
  PartCommand VolumeRuntime() const;
  PartCommand Poollet() const;
  // Makes the image `demo` from this machine's kernel and busybox.
  PartCommand DemoImage() const;
  // A command of this program against the server, as us.
  PartCommand Client(std::string name, std::vector<std::string> words) const;
  // The classes of the files, for the server.
  std::string api_classes() const { return Path("classes.yaml"); }

 private:
  std::string Path(const std::string& name) const { return options_.folder + "/" + name; }
  PartCommand Own(std::string name, std::vector<std::string> words) const;
  PartCommand Runtime(std::string name,
                      std::vector<std::string> words,
                      const std::vector<std::string>& more) const;
  Status Give(const std::string& path) const;
  Status MakeHome() const;
  Status MakeRunFolder() const;
  Status MakeFolder(const std::string& path) const;
  Status MakeFile(const std::string& name, std::string_view text) const;

  const HostOptions options_;
};

}  // namespace berth::app
