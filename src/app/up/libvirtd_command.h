// SPDX-License-Identifier: Apache-2.0
// `berth libvirtd`, as which `berth up` starts a libvirtd of its own: it first removes what one
// that was killed has left and the next would stumble over.
#pragma once

#include <string>
#include <vector>

#include "cli/command.h"

namespace berth::app {

// Where a libvirtd keeps what there is of guests that run.
struct LibvirtdFolders {
  std::string states;   // their states: berth-ID.xml
  std::string sockets;  // a folder of sockets of each: domain-1-berth-ID
};

// The words of a process that cleans up there and then becomes the program, the last of them.
// REQUIRES: no libvirtd of these folders runs.
std::vector<std::string> LibvirtdLine(const LibvirtdFolders& folders);

cli::Command LibvirtdCommand();

}  // namespace berth::app
