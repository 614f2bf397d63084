// SPDX-License-Identifier: Apache-2.0
#include "app/runtime/volume_runtime_command.h"

#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <memory>
#include <ostream>
#include <string>
#include <utility>

#include "app/process/flag_tables.h"
#include "app/process/private_memory.h"
#include "app/runtime/image_flags.h"
#include "app/runtime/libvirt_copies.h"
#include "app/runtime/runtime_process.h"
#include "app/runtime/volume_runtime_options.h"
#include "base/folders.h"
#include "base/log.h"
#include "cli/arguments.h"
#include "cli/session/session.h"
#include "iri/grpc/server.h"
#include "net/grpc_status.h"
#include "rt/asio/asio_loop.h"
#include "rt/event.h"
#include "runtime/images/host_images.h"
#include "runtime/machine/guest_user.h"
#include "runtime/volume/folder_shelf.h"
#include "runtime/volume/qemu_disks.h"
#include "runtime/volume/volume_host.h"

namespace berth::app {
namespace {

using cli::Arguments;
using cli::Flag;
using cli::FlagKind;
using cli::Session;

constexpr std::array kStorageFlags = {
    Flag{.name = "socket",
         .kind = FlagKind::kText,
         .value_name = "DIR|PATH",
         .help = "(sockets) Folder for the socket, or PATH.sock. As root /run/berth.",
         .completion = cli::Completion::kFiles},
    kAllowUserFlag,
    Flag{.name = "dir",
         .kind = FlagKind::kText,
         .value_name = "DIR",
         .help = "(storage) Folder for volumes and snapshots; one runtime per folder.",
         .completion = cli::Completion::kFiles},
    Flag{.name = "classes",
         .kind = FlagKind::kText,
         .value_name = "FILE",
         .help = "(storage) YAML file with the volume classes: name, capabilities tps and iops, "
                 "format.",
         .completion = cli::Completion::kFiles},
    Flag{.name = "capacity",
         .kind = FlagKind::kText,
         .value_name = "SIZE",
         .help = "(storage) Disk that volumes, snapshots and images share; default: the size of "
                 "the file system."},
    Flag{.name = "reserve",
         .kind = FlagKind::kText,
         .value_name = "SIZE",
         .help = "(storage) Of the capacity, kept for others on this host.",
         .fallback = "0"},
    Flag{.name = "overcommit",
         .kind = FlagKind::kText,
         .value_name = "RATIO",
         .help = "(storage) Promise this many times the capacity, from 1 to 100.",
         .fallback = "1"},
};
constexpr std::array kToolFlags = {
    Flag{.name = "qemu-img",
         .kind = FlagKind::kText,
         .value_name = "PATH",
         .help = "(storage) The program that makes disks.",
         .fallback = "/usr/bin/qemu-img",
         .completion = cli::Completion::kFiles},
    Flag{.name = "libvirt",
         .kind = FlagKind::kText,
         .value_name = "URI",
         .help = "(storage) The libvirt of this host's guests: it copies disks that they use, for "
                 "snapshots. Default: none."},
};
constexpr auto kVolumeFlags = JoinFlags(kStorageFlags, kImageFlags, kToolFlags);

// In the order in which they need each other.
struct VolumeProcess : RuntimeThreads {
  std::unique_ptr<runtime::FolderShelf> shelf;
  std::unique_ptr<runtime::QemuDisks> disks;
  std::unique_ptr<LibvirtCopies> copies;  // or none
  std::unique_ptr<runtime::HostImages> images;
  std::unique_ptr<runtime::SharedBudget> budget;  // or none
  std::unique_ptr<runtime::VolumeHost> host;
  RuntimeServers servers;
  bool hangs = false;  // a thread of it
};

rt::Task<Status> StartHost(VolumeProcess* process, rt::Loop* loop, VolumeRuntimeOptions options) {
  CO_TRY(const std::string version, co_await process->disks->Version());
  CO_TRY(const runtime::ShelfRoom room, co_await process->shelf->Room());
  const int64_t capacity = options.capacity.value_or(room.total);
  if (options.capacity.has_value() && capacity > room.total && options.overcommit == 1) {
    LOG_WARNING("--capacity {} is more than the {} bytes of the file system", capacity, room.total);
  }
  options.host.total_bytes = runtime::TotalBytes(capacity, options.reserve, options.overcommit);
  options.host.boot_id = HostBoot();
  options.host.facts = {{"volume-disks", version}};
  const runtime::VolumeHost::Deps deps = {
      .loop = *loop,
      .shelf = *process->shelf,
      .disks = *process->disks,
      .images = *process->images,
      .live = process->copies == nullptr ? nullptr : &process->copies->disks(),
      .budget = process->budget.get()};
  CO_TRY(process->host, co_await runtime::VolumeHost::Start(deps, std::move(options.host)));
  co_return OkStatus();
}

rt::Task<Status> StopHost(VolumeProcess* process) {
  CO_TRY_STATUS(co_await process->host->Stop());
  if (process->copies == nullptr) co_return OkStatus();
  const Status stopped = co_await process->copies->Stop();
  process->hangs = stopped.Is(Reason::kTimeout);
  if (process->hangs) LOG_WARNING("{}", stopped.message());
  co_return process->hangs ? OkStatus() : stopped;
}

rt::Task<Status> ServeAndStop(rt::Event* stop, VolumeProcess* process) {
  const Status served = co_await ServeUntil(stop, &process->servers);
  CO_TRY_STATUS(co_await StopHost(process));
  co_return served;
}

// REQUIRES: the host is there. Takes apart what was put together.
Status Serve(Session& session,
             rt::AsioLoop& loop,
             rt::Event& stop,
             VolumeProcess& process,
             Result<std::unique_ptr<iri::RuntimeServer>> server) {
  if (!server.ok()) {
    TRY_STATUS(rt::RunTask(loop, StopHost(&process)));
    return server.status();
  }
  session.out() << "serving unix:" << (*server)->path() << '\n'
                << "next    berth iri volumes --endpoint unix:" << (*server)->path() << std::endl;
  process.servers.push_back(*std::move(server));
  return rt::RunTask(loop, ServeAndStop(&stop, &process));
}

// A root's disks are given to QEMU, which comes to them by itself. Whether there are such guests is
// not known here.
void WarnOfClosedWay(const std::string& folder) {
  constexpr const char* kUsualGuestUser = "libvirt-qemu";
  if (geteuid() != 0) return;
  const Result<runtime::GuestUser> user = runtime::GuestUserNamed(kUsualGuestUser);
  if (!user.ok()) return;
  const std::string closed =
      ClosedFolder(folder, {.uid = user->uid, .groups = runtime::GroupsOf(kUsualGuestUser, *user)});
  if (closed.empty()) return;
  LOG_WARNING(
      "guests that run as {} do not reach the volumes: it may not enter {}; chmod o+x it, or name "
      "another folder with --dir",
      kUsualGuestUser,
      closed);
}

Status RunVolume(Session& session, const Arguments& arguments) {
  KeepMemoryPrivate();
  net::InitGrpcProcess();
  umask(0077);  // sockets, records and disks are for their owner only
  TRY(const std::string socket, RuntimeSocketPath(arguments.Text("socket"), session.environment()));
  TRY(std::vector<uid_t> allowed, AllowedUsers(arguments));
  TRY(VolumeRuntimeOptions options, VolumeOptionsOf(arguments));
  rt::AsioLoop loop("main");
  rt::Event stop;
  loop.OnSignal({SIGTERM, SIGINT}, [&stop](int) { stop.Set(); });
  VolumeProcess process;
  TRY(process.shelf, runtime::FolderShelf::Open(options.folder, process.files));
  WarnOfClosedWay(options.folder);
  runtime::QemuDisks::Options qemu;
  qemu.qemu_img = options.qemu_img;
  process.disks =
      std::make_unique<runtime::QemuDisks>(process.processes, process.files, std::move(qemu));
  if (!options.libvirt_uri.empty()) {
    runtime::LibvirtHypervisor::Options libvirt;
    libvirt.uri = options.libvirt_uri;
    process.copies =
        std::make_unique<LibvirtCopies>(loop, *process.disks, std::move(libvirt), options.folder);
  }
  TRY(process.budget,
      BudgetOf(arguments, Promises::kDisks, "volumes", options.folder, process.files));
  options.host.images_folder = options.images.folder;
  process.images = std::make_unique<runtime::HostImages>(
      loop, process.files, process.large, std::move(options.images));
  TRY_STATUS(rt::RunTask(loop, StartHost(&process, &loop, std::move(options))));
  iri::Runtimes runtimes;
  runtimes.volume = process.host.get();
  runtimes.host = process.host.get();
  auto server = iri::RuntimeServer::Start(loop, VolumeSocket(socket), runtimes, std::move(allowed));
  const Status ended = Serve(session, loop, stop, process, std::move(server));
  if (process.hangs) EndWithoutThreads(session, ended);
  return ended;
}

}  // namespace

cli::Command VolumeRuntimeCommand() {
  return {
      .name = "volume",
      .summary = "Volumes that are files of this host",
      .details =
          "Volumes and snapshots as qcow2 or raw files in a folder: empty, from an image, from a "
          "snapshot, as a clone, encrypted, grown. One budget of disk for all of them. Runs until "
          "it is told to stop, and goes on where it was after kill -9. Needs qemu-img, and no "
          "privileges.",
      .examples =
          "# 500 GiB for volumes; one class\n"
          "printf 'classes:\\n- name: fast\\n  capabilities: {tps: 100Mi, iops: 5k}\\n' "
          ">classes.yaml\n"
          "berth runtime volume --socket /run/berth --dir /var/lib/berth/disks --classes "
          "classes.yaml --capacity 500Gi\n"
          "# with images, and 20 GiB left for the rest of the host\n"
          "berth runtime volume --dir /srv/disks --classes classes.yaml --images /srv/images "
          "--reserve 20Gi\n"
          "# what it has\n"
          "berth iri volumes --endpoint unix:/run/berth/iri-volumeprovider.sock",
      .flags = kVolumeFlags,
      .run = &RunVolume};
}

}  // namespace berth::app
