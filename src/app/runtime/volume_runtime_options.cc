// SPDX-License-Identifier: Apache-2.0
#include "app/runtime/volume_runtime_options.h"

#include <charconv>
#include <filesystem>

#include "base/strings.h"
#include "cli/failure.h"
#include "cli/files.h"
#include "iri/grpc/endpoint.h"
#include "meta/quantity.h"

namespace berth::app {
namespace {

constexpr double kOvercommitMax = 100;

Result<int64_t> Bytes(const cli::Arguments& arguments, std::string_view flag) {
  const std::string& text = arguments.Text(flag);
  const Result<meta::Quantity> amount = meta::Quantity::Parse(text);
  if (!amount.ok() || amount->Sign() < 0) {
    return BadRequest("--" + std::string(flag) + " " + Quote(text) +
                      ": expected a size such as 500Gi");
  }
  return amount->Value();
}

Result<std::string> Absolute(const std::string& path, std::string_view flag) {
  std::error_code failed;
  const auto absolute = std::filesystem::absolute(path, failed);
  if (failed) {
    return BadRequest("--" + std::string(flag) + " " + Quote(path) + ": " + failed.message());
  }
  std::string text = absolute.lexically_normal().string();
  if (text.size() > 1 && text.ends_with('/')) text.pop_back();
  return text;
}

}  // namespace

Result<double> ParseOvercommit(const std::string& text) {
  double ratio = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), ratio);
  const bool whole = parsed.ec == std::errc() && parsed.ptr == text.data() + text.size();
  if (!whole || !(ratio >= 1 && ratio <= kOvercommitMax)) {
    return BadRequest("--overcommit " + Quote(text) + ": expected a ratio from 1 to 100");
  }
  return ratio;
}

Result<VolumeRuntimeOptions> VolumeOptionsOf(const cli::Arguments& arguments) {
  VolumeRuntimeOptions options;
  if (arguments.Text("dir").empty()) {
    return cli::Advise(BadRequest("no place for the disks"), "name a folder with --dir");
  }
  if (arguments.Text("classes").empty()) {
    return cli::Advise(BadRequest("no volume classes"),
                       "name a file with --classes; `berth runtime volume --help` shows one");
  }
  TRY(options.folder, Absolute(arguments.Text("dir"), "dir"));
  if (!arguments.Text("images").empty()) {
    TRY(options.images, Absolute(arguments.Text("images"), "images"));
  }
  options.qemu_img = arguments.Text("qemu-img");
  TRY(const std::string yaml, cli::ReadFile(arguments.Text("classes")));
  Result<std::vector<runtime::OfferedVolumeClass>> classes = runtime::ParseVolumeClasses(yaml);
  if (!classes.ok()) return classes.status().Wrap("--classes " + arguments.Text("classes"));
  options.host.classes = *std::move(classes);
  if (!arguments.Text("capacity").empty()) {
    TRY(const int64_t capacity, Bytes(arguments, "capacity"));
    options.capacity = capacity;
  }
  TRY(options.reserve, Bytes(arguments, "reserve"));
  TRY(options.overcommit, ParseOvercommit(arguments.Text("overcommit")));
  options.host.promise =
      options.overcommit > 1 ? runtime::Promise::kOvercommit : runtime::Promise::kWhole;
  return options;
}

std::string VolumeSocket(const std::string& socket_or_folder) {
  if (socket_or_folder.ends_with(".sock")) return socket_or_folder;
  return iri::WellKnownSockets(iri::RuntimeKind::kVolume, socket_or_folder).back();
}

}  // namespace berth::app
