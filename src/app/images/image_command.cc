// SPDX-License-Identifier: Apache-2.0
#include "app/images/image_command.h"

#include <fmt/core.h>

#include <array>
#include <filesystem>
#include <ostream>
#include <utility>
#include <vector>

#include "app/images/folder_owner.h"
#include "app/images/image_build.h"
#include "app/images/image_pull.h"
#include "app/images/size_text.h"
#include "app/up/host_layout.h"
#include "app/up/local_host.h"
#include "base/strings.h"
#include "cli/arguments.h"
#include "cli/failure.h"
#include "cli/render/output.h"
#include "cli/render/progress_bar.h"
#include "cli/render/text_table.h"
#include "cli/session/session.h"
#include "image/image_folder.h"
#include "image/layout_writer.h"

namespace berth::app {
namespace {

using cli::Arguments;
using cli::Flag;
using cli::FlagKind;
using cli::Session;
using meta::Value;

constexpr Flag kImages = {.name = "images",
                          .kind = FlagKind::kText,
                          .value_name = "DIR",
                          .help =
                              "Folder of images; default: that of the host of `berth up`, with "
                              "BERTH_HOST_DIR and BERTH_DATA_DIR as there. Root acts as the owner "
                              "of the folder.",
                          .variable = "BERTH_IMAGES",
                          .completion = cli::Completion::kFiles};
constexpr Flag kOutput = {.name = "output",
                          .letter = 'o',
                          .kind = FlagKind::kText,
                          .value_name = "FORMAT",
                          .help = "json, yaml, wide or jsonpath=TEMPLATE instead of a table."};

constexpr std::array kBuildFlags = {
    kImages,
    Flag{.name = "kernel",
         .kind = FlagKind::kText,
         .value_name = "FILE",
         .help = "(parts) Kernel that machines boot.",
         .completion = cli::Completion::kFiles},
    Flag{.name = "initramfs",
         .kind = FlagKind::kText,
         .value_name = "FILE",
         .help = "(parts) Memory disk of the kernel.",
         .completion = cli::Completion::kFiles},
    Flag{.name = "cmdline",
         .kind = FlagKind::kText,
         .value_name = "TEXT",
         .help = "(parts) Command line of the kernel."},
    Flag{.name = "disk",
         .kind = FlagKind::kText,
         .value_name = "FILE",
         .help = "(parts) Raw disk that volumes and local disks begin with.",
         .completion = cli::Completion::kFiles},
    Flag{.name = "uki",
         .kind = FlagKind::kText,
         .value_name = "FILE",
         .help = "(parts) Unified kernel image that machines with EFI firmware boot.",
         .completion = cli::Completion::kFiles},
    Flag{.name = "iso",
         .kind = FlagKind::kText,
         .value_name = "FILE",
         .help = "(parts) CD that machines boot while their disk does not.",
         .completion = cli::Completion::kFiles},
    Flag{.name = "squashfs",
         .kind = FlagKind::kText,
         .value_name = "FILE",
         .help = "(parts) File system that the kernel gets as a read-only disk.",
         .completion = cli::Completion::kFiles},
    Flag{.name = "architecture",
         .kind = FlagKind::kText,
         .value_name = "NAME",
         .help = "What it runs on.",
         .fallback = image::kHostArchitecture},
    Flag{.name = "progress", .help = "Say how far it is, also where there is no terminal."},
    Flag{.name = "boot-folder",
         .kind = FlagKind::kText,
         .value_name = "DIR",
         .help = "(demo) Where kernels are.",
         .fallback = "/boot",
         .completion = cli::Completion::kFiles},
    Flag{.name = "modules-folder",
         .kind = FlagKind::kText,
         .value_name = "DIR",
         .help = "(demo) Where modules of kernels are.",
         .fallback = "/lib/modules",
         .completion = cli::Completion::kFiles},
    Flag{.name = "busybox",
         .kind = FlagKind::kText,
         .value_name = "FILE",
         .help = "(demo) A busybox without libraries.",
         .fallback = "/bin/busybox",
         .completion = cli::Completion::kFiles},
};
constexpr std::array kPullFlags = {
    kImages,
    Flag{.name = "credentials",
         .kind = FlagKind::kText,
         .value_name = "FILE",
         .help = "(registry) Who you are there, as `docker login` writes it (config.json).",
         .variable = "BERTH_REGISTRY_CREDENTIALS",
         .completion = cli::Completion::kFiles},
    Flag{.name = "registry-ca",
         .kind = FlagKind::kText,
         .value_name = "FILE",
         .help = "(registry) Authorities that it is verified against; default: the system's.",
         .variable = "BERTH_REGISTRY_CA",
         .completion = cli::Completion::kFiles},
    Flag{.name = "registry",
         .kind = FlagKind::kCommaList,
         .value_name = "HOST",
         .help = "(registry) Another host with an address of a private network that it may "
                 "redirect to; may be repeated.",
         .variable = "BERTH_REGISTRY"},
    Flag{.name = "architecture",
         .kind = FlagKind::kText,
         .value_name = "NAME",
         .help = "For which the image is.",
         .fallback = image::kHostArchitecture},
};
constexpr std::array kListFlags = {kImages, kOutput};
constexpr std::array kRemoveFlags = {kImages};

enum class Use : uint8_t { kRead, kWrite };

Result<std::string> FolderOf(Session& session, const Arguments& arguments, Use use) {
  const std::string& given = arguments.Text("images");
  if (!given.empty()) return std::filesystem::absolute(given).lexically_normal();
  const std::string host_dir = HostDirOf({}, {}, session.environment());
  if (use == Use::kWrite) {
    const Status prepared = PrepareImages(host_dir);
    if (!prepared.ok()) return cli::Advise(prepared, "name another folder with --images");
  }
  return ImagesOf(host_dir);
}

Result<image::ImageFolder> OpenFolder(Session& session, const Arguments& arguments) {
  TRY(std::string folder, FolderOf(session, arguments, Use::kRead));
  TRY_STATUS(BecomeOwnerOf(folder));
  return image::ImageFolder(std::move(folder));
}

// On a terminal, or for whoever asks; for each percent once.
BuildProgress ProgressOn(Session& session, const Arguments& arguments, cli::ProgressBar& bar) {
  const bool shows = session.environment().terminal.out_is_terminal || arguments.Switch("progress");
  if (!shows) return {};
  return [&bar, next = int64_t{0}](int64_t bytes, int64_t of) mutable {
    constexpr int64_t kPercents = 100;
    if (bytes < next && bytes < of) return;
    next = bytes + of / kPercents;
    bar.Show(static_cast<size_t>(bytes),
             static_cast<size_t>(of),
             fmt::format("{} of {} written", SizeText(bytes), SizeText(of)));
  };
}

Status RunBuild(Session& session, const Arguments& arguments) {
  if (arguments.words().size() > 1) {
    return cli::Advise(BadRequest("one name of an image is enough"), "berth image build demo");
  }
  const std::string name = arguments.words().empty() ? "demo" : arguments.words().front();
  TRY(image::Reference reference, image::ParseReference(name));
  if (!reference.registry.empty() || !reference.digest.empty()) {
    return cli::Advise(
        BadRequest(Quote(name) + ": an image is built under a name of this host, with or without a "
                                 "tag"),
        "berth image build demo:latest");
  }
  if (reference.tag.empty()) reference.tag = "latest";
  const ImageRecipe recipe = {.kernel = arguments.Text("kernel"),
                              .initramfs = arguments.Text("initramfs"),
                              .command_line = arguments.Text("cmdline"),
                              .disk = arguments.Text("disk"),
                              .uki = arguments.Text("uki"),
                              .iso = arguments.Text("iso"),
                              .squashfs = arguments.Text("squashfs"),
                              .architecture = arguments.Text("architecture")};
  const image::DemoSources demo = {.boot_folder = arguments.Text("boot-folder"),
                                   .modules_folder = arguments.Text("modules-folder"),
                                   .busybox = arguments.Text("busybox")};
  TRY(OpenedParts parts, OpenParts(recipe));
  TRY(const std::string folder, FolderOf(session, arguments, Use::kWrite));
  TRY_STATUS(BecomeOwnerOf(folder));
  const image::Layout layout = image::ImageFolder(folder).LayoutOf(reference);
  cli::ProgressBar bar(session.environment(), "image");
  const auto built = BuildImage(layout.folder(),
                                reference.tag,
                                recipe,
                                std::move(parts),
                                demo,
                                session.environment().run_program,
                                ProgressOn(session, arguments, bar));
  bar.Wipe();
  // What an older image of this name had, or what failed has left. Somebody may be using it: the
  // next build or rm takes it then.
  const auto swept = image::Sweep(layout, session.environment().wall_now());
  if (!built.ok()) return built.status();
  if (!swept.ok() && !swept.status().Is(Reason::kConflict)) return swept.status();
  int64_t bytes = 0;
  for (const image::Descriptor& part : built->manifest.parts()) bytes += part.size;
  session.out() << fmt::format("built   {} ({}, {})\n",
                               image::ToText(reference),
                               built->manifest.PartsText(),
                               SizeText(bytes));
  session.out() << fmt::format("digest  sha256:{}\n", built->entry.digest);
  const bool is_default = arguments.Text("images").empty();
  session.out() << (is_default
                        ? "next    berth up\n"
                        : fmt::format("next    berth runtime machine --images {} ...\n", folder));
  return OkStatus();
}

Status RunPull(Session& session, const Arguments& arguments) {
  TRY(const std::string folder, FolderOf(session, arguments, Use::kWrite));
  return PullImage(session, arguments, folder);
}

Value ValueOf(const image::ListedImage& listed) {
  Value value = Value::Object();
  value.Set("image", listed.reference);
  if (!listed.digest.empty()) value.Set("digest", "sha256:" + listed.digest);
  value.Set("bytes", listed.bytes);
  value.Set("kernel", listed.has_kernel);
  value.Set("disk", listed.has_disk);
  value.Set("parts", listed.parts);
  if (!listed.error.empty()) value.Set("error", listed.error);
  return value;
}

Status RunList(Session& session, const Arguments& arguments) {
  TRY(const cli::OutputFormat format, cli::ParseOutputFormat(arguments.Text("output")));
  TRY(const image::ImageFolder folder, OpenFolder(session, arguments));
  TRY(const std::vector<image::ListedImage> images, folder.List());
  if (!format.is_table()) {
    std::vector<Value> items;
    for (const image::ListedImage& listed : images) items.push_back(ValueOf(listed));
    return cli::PrintValue(session.environment(), format, cli::ListOf(std::move(items)));
  }
  constexpr size_t kShortDigest = 12;
  const bool wide = format.kind == cli::OutputKind::kWide;
  cli::TextTable table({"Image", "Parts", "Size", "Digest", "Problem"});
  for (const image::ListedImage& listed : images) {
    table.AddRow({listed.reference,
                  listed.parts,
                  SizeText(listed.bytes),
                  wide ? listed.digest : listed.digest.substr(0, kShortDigest),
                  listed.error});
  }
  if (table.empty()) session.err() << "No images in " << Printable(folder.path()) << "\n";
  session.out() << table.Flush();
  return OkStatus();
}

Status RunRemove(Session& session, const Arguments& arguments) {
  if (arguments.words().empty()) {
    return cli::Advise(BadRequest("no image is named"), "berth image ls shows them");
  }
  TRY(const image::ImageFolder folder, OpenFolder(session, arguments));
  for (const std::string& word : arguments.words()) {
    TRY(const image::Reference reference, image::ParseReference(word));
    const Status removed = folder.Remove(reference, session.environment().wall_now());
    if (removed.Is(Reason::kConflict)) {
      session.err() << "Note: " << Printable(word)
                    << " is being used; its bytes go with the next image that is removed or built "
                       "there\n";
    } else if (!removed.ok()) {
      return cli::Advise(removed, "berth image ls shows what is there");
    }
    session.out() << fmt::format("image {} removed\n", Printable(word));
  }
  return OkStatus();
}

constexpr std::array kChildren = {
    cli::Command{.name = "build",
                 .usage = "[NAME[:TAG]]",
                 .summary = "Make an image from files of this host",
                 .details =
                     "From a kernel, a raw disk, or both; from a unified kernel image; from a CD. "
                     "Without any of these it is the demo image: the "
                     "newest kernel of this host with busybox and a small disk, made without a "
                     "network. A machine whose local disk has the demo image says hello on its "
                     "console and gives a shell there; a volume of it has a file system with one "
                     "file. Debian: linux-image-cloud-amd64, busybox-static, e2fsprogs.",
                 .examples = "# the demo image\n"
                             "berth image build\n"
                             "# a disk that boots by itself\n"
                             "berth image build os/debian:12 --disk debian-12-generic-amd64.raw\n"
                             "# a kernel with its memory disk\n"
                             "berth image build rescue --kernel /boot/vmlinuz --initramfs "
                             "/boot/initrd.img --cmdline 'console=ttyS0 single'\n"
                             "# a CD that installs to the machine's disk\n"
                             "berth image build os/installer --iso installer.iso",
                 .flags = kBuildFlags,
                 .run = &RunBuild},
    cli::Command{.name = "ls",
                 .summary = "List the images of this host",
                 .details = "Built here, put into the folder by hand, or fetched from registries.",
                 .examples = "berth image ls\n"
                             "berth image ls --images /srv/images -o json",
                 .flags = kListFlags,
                 .run = &RunList},
    cli::Command{.name = "pull",
                 .usage = "REGISTRY/NAME[:TAG][@sha256:DIGEST]",
                 .summary = "Fetch an image of a registry",
                 .details = "Over TLS, verified, and behind what came already if it was cut. "
                            "Runtimes fetch what they need by themselves; this is for having it "
                            "before, and for trying names and credentials.",
                 .examples = "berth image pull registry.example/os/debian:12\n"
                             "berth image pull registry.example:5000/os/debian:12 --registry-ca "
                             "ca.pem --credentials ~/.docker/config.json",
                 .flags = kPullFlags,
                 .run = &RunPull},
    cli::Command{.name = "rm",
                 .usage = "NAME[:TAG]...",
                 .summary = "Remove images from this host",
                 .details = "What no other image has in common with them goes, too. Disks and "
                            "machines that were made from them stay as they are.",
                 .examples = "berth image rm demo\n"
                             "berth image rm os/debian:11 os/debian:12",
                 .flags = kRemoveFlags,
                 .run = &RunRemove},
};

}  // namespace

cli::Command ImageCommand() {
  return {.name = "image",
          .group = "Hosts",
          .usage = "COMMAND",
          .summary = "Build, fetch, list and remove the images of this host",
          .details =
              "Images are what machines boot and what volumes begin with: OCI images with a "
              "kernel, a disk, or both. The runtimes of this host find them in the folder "
              "of --images, those of `berth up` in its folder.",
          .examples =
              "berth image build\n"
              "berth image ls",
          .children = kChildren};
}

}  // namespace berth::app
