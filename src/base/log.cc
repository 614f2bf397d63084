// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <array>
#include <cstdio>
#include <memory>

#include "base/strings.h"

namespace berth::log {
namespace {

spdlog::level::level_enum ToSpdlog(Level level) {
  switch (level) {
    case Level::kDebug: return spdlog::level::debug;
    case Level::kInfo: return spdlog::level::info;
    case Level::kWarning: return spdlog::level::warn;
    case Level::kError: return spdlog::level::err;
  }
  return spdlog::level::err;
}

struct Sink {
  std::shared_ptr<spdlog::logger> logger = spdlog::stderr_logger_mt("berth");
  Format format = Format::kText;
  Sink() {
    logger->set_level(spdlog::level::warn);
    logger->set_pattern("%Y-%m-%dT%H:%M:%S.%eZ %-7l %v", spdlog::pattern_time_type::utc);
    logger->flush_on(spdlog::level::debug);
  }
};

Sink& GetSink() {
  static auto* sink = new Sink;  // never destroyed: the last line of a dying process still needs it
  return *sink;
}

// A JSON string body: Printable() leaves only backslashes and quotes to escape.
std::string JsonText(std::string_view message) {
  std::string out;
  for (const char c : Printable(message)) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

}  // namespace

void Configure(const Options& options) {
  Sink& sink = GetSink();
  sink.format = options.format;
  sink.logger->set_level(ToSpdlog(options.level));
  if (options.format == Format::kJson) {
    sink.logger->set_pattern(R"({"time":"%Y-%m-%dT%H:%M:%S.%eZ","level":"%l","message":"%v"})",
                             spdlog::pattern_time_type::utc);
  }
}

bool Enabled(Level level) { return GetSink().logger->should_log(ToSpdlog(level)); }

void Write(Level level, std::string_view message) {
  Sink& sink = GetSink();
  const std::string text = sink.format == Format::kJson ? JsonText(message) : Printable(message);
  sink.logger->log(ToSpdlog(level), spdlog::string_view_t(text.data(), text.size()));
}

}  // namespace berth::log
