// SPDX-License-Identifier: Apache-2.0
// Flags that several commands share, so that they mean and say the same everywhere.
#pragma once

#include <array>
#include <string_view>

#include "cli/command.h"

namespace berth::cli::flags {

inline constexpr std::array<std::string_view, 6> kObjectFormats = {
    "json", "yaml", "wide", "name", "jsonpath=", "custom-columns="};

inline constexpr Flag kOutput = {
    .name = "output",
    .letter = 'o',
    .kind = FlagKind::kText,
    .value_name = "FORMAT",
    .help = "json, yaml, name, wide, jsonpath=TEMPLATE or custom-columns=HEADER:PATH,..."};
inline constexpr Flag kAllNamespaces = {
    .name = "all-namespaces", .letter = 'A', .help = "Objects of all namespaces."};
inline constexpr Flag kSelector = {.name = "selector",
                                   .letter = 'l',
                                   .kind = FlagKind::kText,
                                   .value_name = "LABELS",
                                   .help = "Only objects with these labels: app=web,tier!=db."};
inline constexpr Flag kFieldSelector = {
    .name = "field-selector",
    .kind = FlagKind::kText,
    .value_name = "FIELDS",
    .help = "Only objects with these field values: metadata.name=web."};
inline constexpr Flag kFilename = {.name = "filename",
                                   .letter = 'f',
                                   .kind = FlagKind::kCommaList,
                                   .value_name = "FILE",
                                   .help = "Manifest, folder of manifests, or - (standard input).",
                                   .completion = Completion::kFiles};
inline constexpr Flag kRecursive = {
    .name = "recursive", .letter = 'R', .help = "Also the folders below those given with -f."};
inline constexpr std::array<std::string_view, 3> kDryRunModes = {"none", "client", "server"};
inline constexpr Flag kDryRun = {
    .name = "dry-run",
    .kind = FlagKind::kText,
    .value_name = "MODE",
    .help = "server: checked by the server and not kept; client: only printed.",
    .fallback = "none",
    .bare = "client",
    .values = kDryRunModes};
// Of commands that have nothing to print without the server.
inline constexpr std::array<std::string_view, 2> kServerDryRunModes = {"none", "server"};
inline constexpr Flag kServerDryRun = {.name = "dry-run",
                                       .kind = FlagKind::kText,
                                       .value_name = "MODE",
                                       .help = "Checked by the server and not kept.",
                                       .fallback = "none",
                                       .bare = "server",
                                       .values = kServerDryRunModes};
inline constexpr Flag kNoHeaders = {.name = "no-headers", .help = "Tables without header line."};
inline constexpr Flag kIgnoreNotFound = {.name = "ignore-not-found",
                                         .help = "What does not exist is no failure."};
inline constexpr Flag kAll = {.name = "all", .help = "Every object of the kind in the namespace."};
inline constexpr Flag kFieldManager = {.name = "field-manager",
                                       .kind = FlagKind::kText,
                                       .value_name = "NAME",
                                       .help = "Who is said to have set the fields.",
                                       .fallback = "berth"};

inline constexpr std::array<std::string_view, 5> kValidations = {
    "strict", "warn", "ignore", "true", "false"};
inline constexpr Flag kValidate = {.name = "validate",
                                   .kind = FlagKind::kText,
                                   .value_name = "MODE",
                                   .help = "What becomes of fields that the server does not know.",
                                   .fallback = "strict",
                                   .bare = "strict",
                                   .values = kValidations};

}  // namespace berth::cli::flags
