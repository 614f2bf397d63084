// SPDX-License-Identifier: Apache-2.0
// Where the images of a runtime come from: flags that runtimes of machines and of volumes share.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <string_view>

#include "app/process/flag_tables.h"
#include "base/result.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "rt/asio/asio_loop.h"
#include "rt/blocking_pool.h"
#include "runtime/images/host_images.h"
#include "runtime/volume/shared_budget.h"

namespace berth::app {

// Which registries, and how much of them is kept.
inline constexpr std::array kRegistryFlags = {
    cli::Flag{
        .name = "registry",
        .kind = cli::FlagKind::kCommaList,
        .value_name = "HOST",
        .help =
            "(images) A registry that may have an address of a private network: HOST[:PORT]; may "
            "be repeated.",
        .variable = "BERTH_REGISTRY"},
    cli::Flag{
        .name = "registry-ca",
        .kind = cli::FlagKind::kText,
        .value_name = "FILE",
        .help = "(images) Authorities that registries are verified against; default: the system's.",
        .variable = "BERTH_REGISTRY_CA",
        .completion = cli::Completion::kFiles},
    cli::Flag{.name = "registry-credentials",
              .kind = cli::FlagKind::kText,
              .value_name = "DIR",
              .help =
                  "(images) Folder with NAMESPACE.json: what that namespace is at registries, in "
                  "Docker's format.",
              .variable = "BERTH_REGISTRY_CREDENTIALS_DIR",
              .completion = cli::Completion::kFiles},
    cli::Flag{.name = "image-size-max",
              .kind = cli::FlagKind::kText,
              .value_name = "SIZE",
              .help = "(images) What one image of a registry may have.",
              .fallback = "64Gi",
              .variable = "BERTH_IMAGE_SIZE_MAX"},
    cli::Flag{.name = "image-cache",
              .kind = cli::FlagKind::kText,
              .value_name = "SIZE",
              .help =
                  "(images) What is kept of registries' images; what was fetched the longest ago "
                  "goes first.",
              .fallback = "64Gi",
              .variable = "BERTH_IMAGE_CACHE"},
};
inline constexpr std::array kImageFolderFlags = {
    cli::Flag{
        .name = "images",
        .kind = cli::FlagKind::kText,
        .value_name = "DIR",
        .help =
            "(images) Folder with images (berth image) and with the cache of registries' images.",
        .completion = cli::Completion::kFiles},
    cli::Flag{
        .name = "disk-budget",
        .kind = cli::FlagKind::kText,
        .value_name = "DIR",
        .help =
            "(storage) Folder, the same for the runtimes of machines and of volumes, by which they "
            "share the disk: neither promises what the other has.",
        .completion = cli::Completion::kFiles},
};
inline constexpr auto kImageFlags = JoinFlags(kImageFolderFlags, kRegistryFlags);

// Errors name the flag. The folder of images is none.
Result<runtime::HostImages::Options> RegistryOptionsOf(const cli::Arguments& arguments);
// Errors name the flag.
Result<runtime::HostImages::Options> ImageOptionsOf(const cli::Arguments& arguments);

// What a runtime promises of its host's disk whatever else it is told: disks, or images if it has
// any.
enum class Promises : uint8_t { kImages, kDisks };

// What is to be said at the start of a runtime that promises disk and asks nobody; "" if it asks,
// or has nothing to promise.
std::string LonePromiseWarning(const cli::Arguments& arguments, Promises promises);

// As --disk-budget says; null if it does not, which is logged. `role` and the runtime's folder are
// its name there.
Result<std::unique_ptr<runtime::SharedBudget>> BudgetOf(const cli::Arguments& arguments,
                                                        Promises promises,
                                                        std::string_view role,
                                                        const std::string& folder,
                                                        rt::BlockingPool& files);

}  // namespace berth::app
