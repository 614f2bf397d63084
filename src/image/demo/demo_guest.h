// SPDX-License-Identifier: Apache-2.0
// A guest that is made of what a Debian machine has: its kernel and busybox. Its init loads the
// drivers of virtual machines, takes its hostname from the seed disk and its addresses from DHCP,
// says hello, and gives a shell on the console. Made without a network. Blocks.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace berth::image {

// What a guest of this kind says on its console when it is up; its hostname follows.
inline constexpr std::string_view kDemoGreeting = "Hello from Berth! This is";

struct DemoSources {
  std::string boot_folder = "/boot";
  std::string modules_folder = "/lib/modules";
  std::string busybox = "/bin/busybox";
};

struct DemoGuest {
  std::string kernel;     // file
  std::string version;    // of the kernel
  std::string initramfs;  // bytes
  std::string command_line;
};

// NotFound says which package is missing.
Result<DemoGuest> MakeDemoGuest(const DemoSources& sources);

// The first 512 bytes of a disk: a PC that starts from it says hello on its first serial line, and
// rests. ext2 and ext4 leave this place to such things.
std::string DemoBootBlock();

}  // namespace berth::image
