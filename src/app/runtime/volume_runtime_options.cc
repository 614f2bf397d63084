// SPDX-License-Identifier: Apache-2.0
#include "app/runtime/volume_runtime_options.h"

#include "app/runtime/image_flags.h"
#include "app/runtime/runtime_flags.h"
#include "cli/failure.h"
#include "cli/files.h"
#include "iri/grpc/endpoint.h"

namespace berth::app {

Result<VolumeRuntimeOptions> VolumeOptionsOf(const cli::Arguments& arguments) {
  VolumeRuntimeOptions options;
  if (arguments.Text("dir").empty()) {
    return cli::Advise(BadRequest("no place for the disks"), "name a folder with --dir");
  }
  if (arguments.Text("classes").empty()) {
    return cli::Advise(BadRequest("no volume classes"),
                       "name a file with --classes; `berth runtime volume --help` shows one");
  }
  TRY(options.folder, AbsolutePath(arguments.Text("dir"), "dir"));
  TRY(options.images, ImageOptionsOf(arguments));
  options.qemu_img = arguments.Text("qemu-img");
  options.libvirt_uri = arguments.Text("libvirt");
  TRY(const std::string yaml, cli::ReadFile(arguments.Text("classes")));
  Result<std::vector<runtime::OfferedVolumeClass>> classes = runtime::ParseVolumeClasses(yaml);
  if (!classes.ok()) return classes.status().Wrap("--classes " + arguments.Text("classes"));
  options.host.classes = *std::move(classes);
  if (!arguments.Text("capacity").empty()) {
    TRY(const int64_t capacity, ParseAmount(arguments, "capacity", "a size such as 500Gi"));
    options.capacity = capacity;
  }
  TRY(options.reserve, ParseAmount(arguments, "reserve", "a size such as 500Gi"));
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
