// SPDX-License-Identifier: Apache-2.0
#include "app/runtime/runtime_flags.h"

#include <charconv>
#include <filesystem>

#include "base/strings.h"
#include "meta/quantity.h"

namespace berth::app {
namespace {

constexpr double kOvercommitMax = 100;

}  // namespace

Result<int64_t> ParseAmount(const cli::Arguments& arguments,
                            std::string_view flag,
                            std::string_view expected) {
  const std::string& text = arguments.Text(flag);
  const Result<meta::Quantity> amount = meta::Quantity::Parse(text);
  if (!amount.ok() || amount->Sign() < 0) {
    return BadRequest("--" + std::string(flag) + " " + Quote(text) + ": expected " +
                      std::string(expected));
  }
  return amount->Value();
}

Result<double> ParseOvercommit(const std::string& text, std::string_view flag) {
  double ratio = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), ratio);
  const bool whole = parsed.ec == std::errc() && parsed.ptr == text.data() + text.size();
  if (!whole || !(ratio >= 1 && ratio <= kOvercommitMax)) {
    return BadRequest("--" + std::string(flag) + " " + Quote(text) +
                      ": expected a ratio from 1 to 100");
  }
  return ratio;
}

Result<std::string> AbsolutePath(const std::string& path, std::string_view flag) {
  std::error_code failed;
  const auto absolute = std::filesystem::absolute(path, failed);
  if (failed) {
    return BadRequest("--" + std::string(flag) + " " + Quote(path) + ": " + failed.message());
  }
  std::string text = absolute.lexically_normal().string();
  if (text.size() > 1 && text.ends_with('/')) text.pop_back();
  return text;
}

}  // namespace berth::app
