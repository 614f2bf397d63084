// SPDX-License-Identifier: Apache-2.0
// How the flags of `berth runtime machine` become a machine host.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "cli/arguments.h"
#include "runtime/images/host_images.h"
#include "runtime/machine/machine_host.h"

namespace berth::app {

struct HostSize {
  int64_t cores = 0;
  int64_t memory_bytes = 0;
};

enum class AccelerationChoice : uint8_t { kAuto, kKvm, kTcg };
enum class NetworksChoice : uint8_t { kAuto, kBridge, kNone };

struct MachineRuntimeOptions {
  runtime::GuestFolders::Places places;
  std::string libvirt_uri;
  runtime::HostImages::Options images;
  std::string qemu_img;  // path of the program
  std::string qemu;      // path of the program that runs guests
  AccelerationChoice acceleration = AccelerationChoice::kAuto;
  NetworksChoice networks = NetworksChoice::kAuto;
  std::string nft;                     // path of the program
  runtime::MachineHost::Options host;  // but for its boot, its acceleration and its facts
};

// Reads the file of classes. Errors name the flag, the value and what is possible.
Result<MachineRuntimeOptions> MachineOptionsOf(const cli::Arguments& arguments,
                                               const HostSize& size);

// Cores and memory of this host.
Result<HostSize> HostSizeOf();

// BadRequest if that is no bound for the log of a console.
Status CheckConsoleLogMax(int64_t bytes);

// What a host has beside cores, memory and disk: "gpu=2". BadRequest if it is there already.
Status AddResource(const std::string& text, iri::ResourceVector& total);

// The one socket for `--socket DIR|PATH.sock`: in a folder, the name that others look for.
std::string MachineSocket(const std::string& socket_or_folder);

}  // namespace berth::app
