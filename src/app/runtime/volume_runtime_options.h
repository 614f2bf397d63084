// SPDX-License-Identifier: Apache-2.0
// How the flags of `berth runtime volume` become a volume host.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "cli/arguments.h"
#include "runtime/images/host_images.h"
#include "runtime/volume/volume_host.h"

namespace berth::app {

struct VolumeRuntimeOptions {
  std::string folder;
  runtime::HostImages::Options images;
  std::string qemu_img;             // path of the program
  std::string libvirt_uri;          // "": disks that guests use are not copied
  std::optional<int64_t> capacity;  // nullopt: the size of the file system
  int64_t reserve = 0;
  double overcommit = 1;
  runtime::VolumeHost::Options host;  // but for its budget, its boot and its facts
};

// Reads the file of classes. Errors name the flag, the value and what is possible.
Result<VolumeRuntimeOptions> VolumeOptionsOf(const cli::Arguments& arguments);

// The one socket for `--socket DIR|PATH.sock`: in a folder, the name that others look for.
std::string VolumeSocket(const std::string& socket_or_folder);

}  // namespace berth::app
