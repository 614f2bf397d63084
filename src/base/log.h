// SPDX-License-Identifier: Apache-2.0
// The log facade. LOG_INFO("stored {} objects", n) writes one line, as text or as JSON. Secrets are
// never arguments.
#pragma once

#include <fmt/core.h>

#include <string>
#include <string_view>
#include <utility>

namespace berth::log {

enum class Level { kDebug, kInfo, kWarning, kError };
enum class Format { kText, kJson };

struct Options {
  Level level = Level::kInfo;
  Format format = Format::kText;
};

// Call once, first thing in main; without it warnings and errors go to standard error as text.
void Configure(const Options& options);
bool Enabled(Level level);
// Message text is made printable: nothing from outside reaches a terminal as a control sequence.
void Write(Level level, std::string_view message);

}  // namespace berth::log

#define BERTH_LOG_(level, ...)                                                              \
  do {                                                                                      \
    if (::berth::log::Enabled(level)) ::berth::log::Write(level, fmt::format(__VA_ARGS__)); \
  } while (false)
#define LOG_DEBUG(...) BERTH_LOG_(::berth::log::Level::kDebug, __VA_ARGS__)
#define LOG_INFO(...) BERTH_LOG_(::berth::log::Level::kInfo, __VA_ARGS__)
#define LOG_WARNING(...) BERTH_LOG_(::berth::log::Level::kWarning, __VA_ARGS__)
#define LOG_ERROR(...) BERTH_LOG_(::berth::log::Level::kError, __VA_ARGS__)
