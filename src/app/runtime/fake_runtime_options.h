// SPDX-License-Identifier: Apache-2.0
// How the flags of `berth runtime fake` become a fake host.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "cli/arguments.h"
#include "runtime/fake/fake_options.h"

namespace berth::app {

// Everything but where it serves and what it keeps. Errors name the flag, the value and what is
// possible.
Result<runtime::FakeHostOptions> FakeHostOf(const cli::Arguments& arguments);

// "small:1:1Gi": a class by name, cores and memory.
Result<iri::MachineClass> ParseMachineClass(const std::string& text);
// "create=0.1", "crash=2": what goes wrong, and how likely.
Status ParseFault(const std::string& text, runtime::FakeFaults& faults);
// "duplicates", "capacity=2": what is said that is not so.
Status ParseLie(const std::string& text, runtime::FakeLies& lies);

// "DIR" stands for three sockets in it, one per kind, named as others look for them; a path that
// ends in ".sock" for one that serves everything.
struct FakeSocket {
  std::string path;
  enum class Serves : uint8_t { kAll, kMachines, kVolumes, kBuckets } serves = Serves::kAll;
};
std::vector<FakeSocket> FakeSockets(const std::string& socket_or_folder);

}  // namespace berth::app
