// SPDX-License-Identifier: Apache-2.0
// What `berth up` is told about the host beside its server.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "app/process/flag_tables.h"
#include "app/runtime/image_flags.h"
#include "app/up/host_layout.h"
#include "base/result.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/environment.h"

namespace berth::app {

inline constexpr std::array<std::string_view, 2> kHosts = {"auto", "none"};
inline constexpr std::array<std::string_view, 3> kHostAccelerations = {"auto", "kvm", "tcg"};

inline constexpr std::array kHostItselfFlags = {
    cli::Flag{.name = "host",
              .kind = cli::FlagKind::kText,
              .value_name = "HOW",
              .help =
                  "(host) auto: this machine is a host, too, if it can run guests; none: a server "
                  "alone.",
              .fallback = "auto",
              .values = kHosts,
              .variable = "BERTH_UP_HOST"},
    cli::Flag{.name = "host-name",
              .kind = cli::FlagKind::kText,
              .value_name = "NAME",
              .help = "(host) Name of the host and of its pool; by default this machine's."},
    cli::Flag{.name = "host-dir",
              .kind = cli::FlagKind::kText,
              .value_name = "DIR",
              .help =
                  "(host) Folder for guests, disks and images; by default beside --data-dir, with "
                  "-host at its end.",
              .variable = "BERTH_HOST_DIR",
              .completion = cli::Completion::kFiles},
    cli::Flag{.name = "acceleration",
              .kind = cli::FlagKind::kText,
              .value_name = "HOW",
              .help = "(host) kvm, tcg, or auto: KVM if a probe guest boots with it.",
              .fallback = "auto",
              .values = kHostAccelerations,
              .variable = "BERTH_ACCELERATION"},
};
// Of its machine runtime, under the same names.
inline constexpr std::array kHostMachineFlags = {
    cli::Flag{.name = "reserve-cpu",
              .kind = cli::FlagKind::kText,
              .value_name = "CORES",
              .help = "(host) Kept for the host.",
              .fallback = "0",
              .variable = "BERTH_RESERVE_CPU"},
    cli::Flag{.name = "reserve-memory",
              .kind = cli::FlagKind::kText,
              .value_name = "SIZE",
              .help = "(host) The same.",
              .fallback = "1Gi",
              .variable = "BERTH_RESERVE_MEMORY"},
    cli::Flag{.name = "overcommit-cpu",
              .kind = cli::FlagKind::kText,
              .value_name = "RATIO",
              .help = "(host) Promise this many times the cores that are left, from 1 to 100.",
              .fallback = "4",
              .variable = "BERTH_OVERCOMMIT_CPU"},
    cli::Flag{.name = "overcommit-memory",
              .kind = cli::FlagKind::kText,
              .value_name = "RATIO",
              .help = "(host) The same of memory.",
              .fallback = "1",
              .variable = "BERTH_OVERCOMMIT_MEMORY"},
    cli::Flag{.name = "local-disk",
              .kind = cli::FlagKind::kText,
              .value_name = "SIZE",
              .help = "(host) Disk that the local disks of machines share.",
              .fallback = "20Gi",
              .variable = "BERTH_LOCAL_DISK"},
};
// And of its volume runtime.
inline constexpr std::array kHostVolumeFlags = {
    cli::Flag{.name = "reserve",
              .kind = cli::FlagKind::kText,
              .value_name = "SIZE",
              .help = "(host) Disk that volumes, snapshots and images leave for others.",
              .fallback = "0",
              .variable = "BERTH_RESERVE"},
};
inline constexpr auto kHostFlags =
    JoinFlags(kHostItselfFlags, kHostMachineFlags, kHostVolumeFlags, kRegistryFlags);

// Why this machine is no host, or what it is as one.
struct HostPlan {
  std::string why_not;
  HostOptions options;
};

// BadRequest names the flag whose value its runtimes would refuse.
Result<HostPlan> PlanHost(const cli::Arguments& arguments,
                          const cli::Environment& environment,
                          const std::string& data_dir);

}  // namespace berth::app
