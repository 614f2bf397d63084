// SPDX-License-Identifier: Apache-2.0
#include "app/runtime/machine_runtime_options.h"

#include <fmt/core.h>
#include <unistd.h>

#include <optional>

#include "app/runtime/image_flags.h"
#include "app/runtime/runtime_flags.h"
#include "base/strings.h"
#include "cli/failure.h"
#include "cli/files.h"
#include "iri/grpc/endpoint.h"

namespace berth::app {
namespace {

constexpr int64_t kThousandths = 1000;
constexpr uint64_t kResourceMax = 1'000'000'000'000;

Result<AccelerationChoice> AccelerationOf(const std::string& text) {
  if (text == "auto") return AccelerationChoice::kAuto;
  if (text == "kvm") return AccelerationChoice::kKvm;
  if (text == "tcg") return AccelerationChoice::kTcg;
  return BadRequest("--acceleration " + Quote(text) + ": expected auto, kvm or tcg");
}

Result<NetworksChoice> NetworksOf(const std::string& text) {
  if (text == "auto") return NetworksChoice::kAuto;
  if (text == "bridge") return NetworksChoice::kBridge;
  if (text == "none") return NetworksChoice::kNone;
  return BadRequest("--networks " + Quote(text) + ": expected auto, bridge or none");
}

Status ReadTotals(const cli::Arguments& arguments,
                  const HostSize& size,
                  iri::ResourceVector& total) {
  TRY(const int64_t reserve_cores, ParseAmount(arguments, "reserve-cpu", "an amount such as 1"));
  TRY(const int64_t reserve_memory,
      ParseAmount(arguments, "reserve-memory", "an amount such as 2Gi"));
  TRY(const double cpu_ratio, ParseOvercommit(arguments.Text("overcommit-cpu"), "overcommit-cpu"));
  TRY(const double memory_ratio,
      ParseOvercommit(arguments.Text("overcommit-memory"), "overcommit-memory"));
  TRY(const int64_t disk, ParseAmount(arguments, "local-disk", "an amount such as 100Gi"));
  total[std::string(iri::kCpu)] =
      runtime::PromisedAmount(size.cores * kThousandths, reserve_cores * kThousandths, cpu_ratio);
  total[std::string(iri::kMemory)] =
      runtime::PromisedAmount(size.memory_bytes, reserve_memory, memory_ratio);
  total[std::string(iri::kStorage)] = disk;
  for (const std::string& resource : arguments.List("resource")) {
    TRY_STATUS(AddResource(resource, total));
  }
  return OkStatus();
}

}  // namespace

Result<HostSize> HostSizeOf() {
  HostSize size;
  size.cores = sysconf(_SC_NPROCESSORS_ONLN);
  size.memory_bytes = static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  if (size.cores <= 0 || size.memory_bytes <= 0) {
    return Internal("this host does not tell its cores and its memory");
  }
  return size;
}

Result<MachineRuntimeOptions> MachineOptionsOf(const cli::Arguments& arguments,
                                               const HostSize& size) {
  MachineRuntimeOptions options;
  if (arguments.Text("dir").empty()) {
    return cli::Advise(BadRequest("no place for the guests' files"), "name a folder with --dir");
  }
  if (arguments.Text("classes").empty()) {
    return cli::Advise(BadRequest("no machine classes"),
                       "name a file with --classes; `berth runtime machine --help` shows one");
  }
  TRY(options.places.folder, AbsolutePath(arguments.Text("dir"), "dir"));
  TRY(options.places.run_folder, AbsolutePath(arguments.Text("run-dir"), "run-dir"));
  options.places.secrets_may_be_on_disk = arguments.Switch("secrets-on-disk");
  options.places.guest_user = arguments.Text("guest-user");
  TRY(options.images, ImageOptionsOf(arguments));
  options.libvirt_uri = arguments.Text("libvirt");
  if (const std::string logs = arguments.Text("libvirt-logs"); !logs.empty()) {
    TRY(options.places.libvirt_logs, AbsolutePath(logs, "libvirt-logs"));
  }
  options.qemu_img = arguments.Text("qemu-img");
  options.qemu = arguments.Text("qemu");
  TRY(options.acceleration, AccelerationOf(arguments.Text("acceleration")));
  TRY(options.networks, NetworksOf(arguments.Text("networks")));
  options.nft = arguments.Text("nft");
  TRY(const std::string yaml, cli::ReadFile(arguments.Text("classes")));
  Result<std::vector<runtime::OfferedMachineClass>> classes = runtime::ParseMachineClasses(yaml);
  if (!classes.ok()) return classes.status().Wrap("--classes " + arguments.Text("classes"));
  options.host.classes = *std::move(classes);
  TRY_STATUS(ReadTotals(arguments, size, options.host.total));
  options.host.shutdown_grace = arguments.Span("shutdown-grace");
  TRY(options.host.console_log_max,
      ParseAmount(arguments, "console-log-max", "a size such as 4Mi"));
  TRY_STATUS(CheckConsoleLogMax(options.host.console_log_max));
  return options;
}

Status CheckConsoleLogMax(int64_t bytes) {
  if (bytes >= runtime::kConsoleLogMaxLeast && bytes <= runtime::kConsoleLogMaxMost) {
    return OkStatus();
  }
  return BadRequest(fmt::format("--console-log-max {}: expected {} to {} bytes",
                                bytes,
                                runtime::kConsoleLogMaxLeast,
                                runtime::kConsoleLogMaxMost));
}

Status AddResource(const std::string& text, iri::ResourceVector& total) {
  const size_t equals = text.find('=');
  const std::string name = text.substr(0, equals);
  const auto amount =
      equals == std::string::npos ? std::nullopt : ParseUint(text.substr(equals + 1));
  if (!amount || name.empty() || *amount > kResourceMax) {
    return BadRequest(fmt::format(
        "--resource {}: expected NAME=AMOUNT with a whole amount of at most {}, as in gpu=2",
        Quote(text),
        kResourceMax));
  }
  if (!total.try_emplace(name, static_cast<int64_t>(*amount)).second) {
    return BadRequest("--resource " + Quote(text) + ": " + name + " is given already");
  }
  return OkStatus();
}

std::string MachineSocket(const std::string& socket_or_folder) {
  if (socket_or_folder.ends_with(".sock")) return socket_or_folder;
  return iri::WellKnownSockets(iri::RuntimeKind::kMachine, socket_or_folder).back();
}

}  // namespace berth::app
