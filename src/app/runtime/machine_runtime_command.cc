// SPDX-License-Identifier: Apache-2.0
#include "app/runtime/machine_runtime_command.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <memory>
#include <ostream>
#include <thread>
#include <utility>

#include "app/process/flag_tables.h"
#include "app/process/private_memory.h"
#include "app/process/span_log.h"
#include "app/runtime/exec_server.h"
#include "app/runtime/image_flags.h"
#include "app/runtime/machine_runtime_options.h"
#include "app/runtime/runtime_process.h"
#include "app/runtime/traced.h"
#include "app/runtime/unix_serial_lines.h"
#include "base/log.h"
#include "cli/arguments.h"
#include "cli/failure.h"
#include "cli/session/session.h"
#include "iri/grpc/client.h"
#include "iri/grpc/server.h"
#include "net/grpc_status.h"
#include "rt/asio/asio_loop.h"
#include "rt/event.h"
#include "runtime/images/host_images.h"
#include "runtime/machine/kvm_probe.h"
#include "runtime/machine/libvirt_hypervisor.h"
#include "runtime/machine/machine_host.h"
#include "runtime/network/bridge_networks.h"
#include "runtime/volume/qemu_disks.h"

namespace berth::app {
namespace {

using cli::Arguments;
using cli::Flag;
using cli::FlagKind;
using cli::Session;
using runtime::Acceleration;

constexpr std::array<std::string_view, 3> kAccelerations = {"auto", "kvm", "tcg"};
constexpr std::array<std::string_view, 3> kNetworks = {"auto", "bridge", "none"};

constexpr std::array kHostFlags = {
    Flag{.name = "socket",
         .kind = FlagKind::kText,
         .value_name = "DIR|PATH",
         .help = "(sockets) Folder for the socket, or PATH.sock. As root /run/berth.",
         .completion = cli::Completion::kFiles},
    kAllowUserFlag,
    Flag{.name = "dir",
         .kind = FlagKind::kText,
         .value_name = "DIR",
         .help = "(storage) Folder for local disks and console logs; one runtime per folder.",
         .completion = cli::Completion::kFiles},
    Flag{.name = "run-dir",
         .kind = FlagKind::kText,
         .value_name = "DIR",
         .help = "(storage) Folder for consoles and secrets, in memory: a reboot empties it.",
         .fallback = "/run/berth/machines",
         .completion = cli::Completion::kFiles},
    Flag{.name = "secrets-on-disk",
         .help = "(storage) Take a --run-dir that is not in memory: keys and ignition data of "
                 "guests are written to a disk."},
    Flag{.name = "classes",
         .kind = FlagKind::kText,
         .value_name = "FILE",
         .help = "(host) YAML file with the machine classes: name, capabilities cpu and memory, "
                 "firmware.",
         .completion = cli::Completion::kFiles},
    Flag{.name = "reserve-cpu",
         .kind = FlagKind::kText,
         .value_name = "CORES",
         .help = "(host) Kept for the host.",
         .fallback = "0"},
    Flag{.name = "reserve-memory",
         .kind = FlagKind::kText,
         .value_name = "SIZE",
         .help = "(host) The same.",
         .fallback = "1Gi"},
    Flag{.name = "overcommit-cpu",
         .kind = FlagKind::kText,
         .value_name = "RATIO",
         .help = "(host) Promise this many times the cores that are left, from 1 to 100.",
         .fallback = "1"},
    Flag{.name = "overcommit-memory",
         .kind = FlagKind::kText,
         .value_name = "RATIO",
         .help = "(host) The same of memory.",
         .fallback = "1"},
    Flag{.name = "resource",
         .kind = FlagKind::kList,
         .value_name = "NAME=AMOUNT",
         .help = "(host) Anything else that classes count, such as gpu=2. May be repeated."},
    Flag{.name = "local-disk",
         .kind = FlagKind::kText,
         .value_name = "SIZE",
         .help = "(storage) Disk that the local disks of machines share.",
         .fallback = "0"},
    Flag{.name = "console-log-max",
         .kind = FlagKind::kText,
         .value_name = "SIZE",
         .help = "(storage) What is kept of what one machine says on its console, from 256Ki to "
                 "1Gi: the newest.",
         .fallback = "4Mi"},
};
constexpr std::array kGuestFlags = {
    Flag{.name = "libvirt",
         .kind = FlagKind::kText,
         .value_name = "URI",
         .help = "(guests) The libvirt that runs them.",
         .fallback = "qemu:///system"},
    Flag{.name = "libvirt-logs",
         .kind = FlagKind::kText,
         .value_name = "DIR",
         .help = "(guests) Where that libvirt keeps a log of each guest, if it is this runtime's "
                 "alone: they go with their machines.",
         .completion = cli::Completion::kFiles},
    Flag{.name = "acceleration",
         .kind = FlagKind::kText,
         .value_name = "HOW",
         .help = "(guests) kvm, tcg, or auto: KVM if a probe guest boots with it.",
         .fallback = "auto",
         .values = kAccelerations},
    Flag{.name = "networks",
         .kind = FlagKind::kText,
         .value_name = "HOW",
         .help =
             "(guests) bridge: a bridge per Network; none: interfaces are refused; auto: bridge "
             "if this host and our rights allow it.",
         .fallback = "auto",
         .values = kNetworks},
    Flag{.name = "nft",
         .kind = FlagKind::kText,
         .value_name = "PATH",
         .help = "(guests) The program that writes the rules of networks.",
         .fallback = "/usr/sbin/nft",
         .completion = cli::Completion::kFiles},
    Flag{.name = "guest-user",
         .kind = FlagKind::kText,
         .value_name = "USER",
         .help = "(guests) Who QEMU is: owns what only the guest reads.",
         .fallback = "libvirt-qemu"},
    Flag{.name = "shutdown-grace",
         .kind = FlagKind::kDuration,
         .value_name = "TIME",
         .help = "(guests) From the power button to the plug.",
         .fallback = "30s"},
    Flag{.name = "qemu",
         .kind = FlagKind::kText,
         .value_name = "PATH",
         .help = "(guests) The program of the probe guest.",
         .fallback = "/usr/bin/qemu-system-x86_64",
         .completion = cli::Completion::kFiles},
    Flag{.name = "qemu-img",
         .kind = FlagKind::kText,
         .value_name = "PATH",
         .help = "(storage) The program that makes disks.",
         .fallback = "/usr/bin/qemu-img",
         .completion = cli::Completion::kFiles},
    Flag{.name = "trace",
         .kind = FlagKind::kText,
         .value_name = "FILE",
         .help = "(host) Append a line of JSON for each call of libvirt and qemu-img, each image "
                 "and each "
                 "wait for a turn to start: how long it took.",
         .completion = cli::Completion::kFiles},
};
constexpr auto kMachineFlags = JoinFlags(kHostFlags, kImageFlags, kGuestFlags);

// In the order in which they need each other.
struct MachineProcess : RuntimeThreads {
  std::unique_ptr<runtime::GuestFolders> folders;
  std::unique_ptr<SpanLog> spans;  // or none, and then nothing is traced
  std::unique_ptr<runtime::QemuDisks> disks;
  std::unique_ptr<TracedDisks> traced_disks;
  std::unique_ptr<runtime::HostImages> images;
  std::unique_ptr<TracedImages> traced_images;
  std::unique_ptr<runtime::SharedBudget> budget;  // or none
  rt::ThreadPool links{Pool(1, "links")};
  rt::ThreadPool answers{Pool(1, "answers")};
  runtime::NoNetworks no_networks;
  std::unique_ptr<runtime::BridgeNetworks> bridges;  // or none
  std::unique_ptr<UnixSerialLines> lines;
  std::unique_ptr<ExecServer> doors;
  std::unique_ptr<runtime::LibvirtHypervisor> hypervisor;
  std::unique_ptr<TracedHypervisor> traced_hypervisor;
  std::unique_ptr<runtime::MachineHost> host;
  RuntimeServers servers;
  bool hangs = false;  // a thread of it
};

// Whoever asks over a socket hears why it is refused before it gives up.
static_assert(runtime::kLibvirtCallLimit < iri::kChangeLimit);
static_assert(runtime::kDetachLimit + runtime::kDetachPause < iri::kChangeLimit);

struct Accelerated {
  Acceleration acceleration = Acceleration::kTcg;
  std::string why;
};

rt::Task<Result<Accelerated>> ChooseAcceleration(MachineProcess* process,
                                                 const MachineRuntimeOptions* options) {
  Accelerated chosen;
  if (options->acceleration == AccelerationChoice::kTcg) {
    chosen.why = "tcg was asked for";
    co_return chosen;
  }
  runtime::Probe probe;
  probe.qemu = options->qemu;
  probe.floppy = options->places.run_folder + "/probe.img";
  if (geteuid() == 0) probe.user = options->places.guest_user;
  const Status probed = co_await runtime::RunProbe(&process->processes, std::move(probe));
  if (probed.ok()) {
    chosen.acceleration = Acceleration::kKvm;
    chosen.why = "a probe guest ran";
    co_return chosen;
  }
  if (options->acceleration == AccelerationChoice::kKvm)
    co_return probed.Wrap("--acceleration kvm");
  chosen.why = probed.message();
  co_return chosen;
}

// Why there are none, or "".
rt::Task<Result<std::string>> StartNetworks(MachineProcess* process,
                                            rt::Loop* loop,
                                            const MachineRuntimeOptions* options) {
  if (options->networks == NetworksChoice::kNone) co_return "none were asked for";
  const runtime::BridgeNetworks::Deps deps = {.loop = *loop,
                                              .processes = process->processes,
                                              .links = process->links,
                                              .answers = process->answers};
  runtime::BridgeNetworks::Options bridge;
  bridge.owner = process->folders->folder();
  bridge.nft = options->nft;
  const Status possible = co_await runtime::BridgeNetworks::Check(deps, bridge);
  if (possible.ok()) {
    CO_TRY(process->bridges, runtime::BridgeNetworks::Start(deps, std::move(bridge)));
    co_return std::string();
  }
  if (options->networks == NetworksChoice::kBridge) {
    co_return cli::Advise(possible.Wrap("--networks bridge"),
                          "install nftables and run with CAP_NET_ADMIN and CAP_NET_RAW");
  }
  LOG_WARNING("network interfaces are refused: {}", possible.message());
  co_return std::string(possible.message());
}

rt::Task<Status> StopHost(MachineProcess* process) {
  CO_TRY_STATUS(co_await process->doors->Stop());
  if (process->host != nullptr) CO_TRY_STATUS(co_await process->host->Stop());
  if (process->bridges != nullptr) CO_TRY_STATUS(co_await process->bridges->Stop());
  if (process->hypervisor == nullptr) co_return OkStatus();
  const Status stopped = co_await process->hypervisor->Stop();
  process->hangs = stopped.Is(Reason::kTimeout);
  if (process->hangs) LOG_WARNING("{}", stopped.message());
  co_return process->hangs ? OkStatus() : stopped;
}

rt::Task<Status> StartHost(MachineProcess* process, rt::Loop* loop, MachineRuntimeOptions options) {
  CO_TRY(const Accelerated chosen, co_await ChooseAcceleration(process, &options));
  LOG_INFO("guests run with {}: {}", runtime::AccelerationName(chosen.acceleration), chosen.why);
  runtime::LibvirtHypervisor::Options libvirt;
  libvirt.uri = options.libvirt_uri;
  auto connected = co_await runtime::LibvirtHypervisor::Start(*loop, std::move(libvirt));
  if (!connected.ok()) {
    co_return cli::Advise(connected.status(),
                          "start libvirtd (without systemd: `virtlogd -d; libvirtd -d`)");
  }
  process->hypervisor = *std::move(connected);
  CO_TRY(const std::string no_networks, co_await StartNetworks(process, loop, &options));
  options.host.acceleration = chosen.acceleration;
  options.host.boot_id = HostBoot();
  // As many as there are processors, and so many more each second.
  const size_t processors = std::max(2U, std::thread::hardware_concurrency());
  options.host.start_pace = {.at_once = processors,
                             .interval = Duration::Seconds(1) / static_cast<int64_t>(processors)};
  options.host.facts = {
      {"machine-acceleration-reason", chosen.why},
      {"machine-networks", process->bridges != nullptr ? "bridge" : "none: " + no_networks}};
  runtime::HostNetworks* networks = &process->no_networks;
  if (process->bridges != nullptr) networks = process->bridges.get();
  runtime::Hypervisor* hypervisor = process->hypervisor.get();
  runtime::Disks* disks = process->disks.get();
  runtime::ImageSource* images = process->images.get();
  if (process->spans != nullptr) {
    process->traced_hypervisor = std::make_unique<TracedHypervisor>(*hypervisor, *process->spans);
    process->traced_disks = std::make_unique<TracedDisks>(*disks, *process->spans);
    hypervisor = process->traced_hypervisor.get();
    disks = process->traced_disks.get();
    process->traced_images = std::make_unique<TracedImages>(*images, *process->spans);
    images = process->traced_images.get();
    options.host.paced = [spans = process->spans.get()](const std::string& id, WallTime since) {
      spans->Add("pace.start", id, since, spans->Now());
    };
  }
  const runtime::MachineHost::Deps deps = {.loop = *loop,
                                           .hypervisor = *hypervisor,
                                           .folders = *process->folders,
                                           .disks = *disks,
                                           .images = *images,
                                           .networks = *networks,
                                           .lines = *process->lines,
                                           .doors = *process->doors,
                                           .files = process->files,
                                           .budget = process->budget.get()};
  CO_TRY(process->host, co_await runtime::MachineHost::Start(deps, std::move(options.host)));
  co_return OkStatus();
}

rt::Task<Status> ServeAndStop(rt::Event* stop, MachineProcess* process) {
  const Status served = co_await ServeUntil(stop, &process->servers);
  CO_TRY_STATUS(co_await StopHost(process));
  co_return served;
}

struct Access {
  std::string socket;
  std::vector<uid_t> allowed;
};

// Takes apart what it puts together.
Status StartAndServe(Session& session,
                     rt::AsioLoop& loop,
                     rt::Event& stop,
                     MachineProcess& process,
                     MachineRuntimeOptions options,
                     Access access) {
  const Status started = rt::RunTask(loop, StartHost(&process, &loop, std::move(options)));
  if (!started.ok()) {
    TRY_STATUS(rt::RunTask(loop, StopHost(&process)));
    return started;
  }
  iri::Runtimes runtimes;
  runtimes.machine = process.host.get();
  runtimes.host = process.host.get();
  auto server = iri::RuntimeServer::Start(
      loop, MachineSocket(access.socket), runtimes, std::move(access.allowed));
  if (!server.ok()) {
    TRY_STATUS(rt::RunTask(loop, StopHost(&process)));
    return server.status();
  }
  session.out() << "serving unix:" << (*server)->path() << '\n'
                << "next    berth iri machines --endpoint unix:" << (*server)->path() << std::endl;
  process.servers.push_back(*std::move(server));
  return rt::RunTask(loop, ServeAndStop(&stop, &process));
}

Status RunMachine(Session& session, const Arguments& arguments) {
  KeepMemoryPrivate();
  net::InitGrpcProcess();
  umask(0077);  // sockets, secrets and disks are for their owner only
  Access access;
  TRY(access.socket, RuntimeSocketPath(arguments.Text("socket"), session.environment()));
  TRY(access.allowed, AllowedUsers(arguments));
  TRY(const HostSize size, HostSizeOf());
  TRY(MachineRuntimeOptions options, MachineOptionsOf(arguments, size));
  rt::AsioLoop loop("main");
  rt::Event stop;
  loop.OnSignal({SIGTERM, SIGINT}, [&stop](int) { stop.Set(); });
  MachineProcess process;
  TRY(process.folders, runtime::GuestFolders::Open(options.places, process.files, process.large));
  runtime::QemuDisks::Options qemu;
  qemu.qemu_img = options.qemu_img;
  process.disks =
      std::make_unique<runtime::QemuDisks>(process.processes, process.files, std::move(qemu));
  const bool has_local_disks = options.host.total[std::string(iri::kStorage)] > 0;
  const Promises promises = has_local_disks ? Promises::kDisks : Promises::kImages;
  TRY(process.budget,
      BudgetOf(arguments, promises, "machines", options.places.folder, process.files));
  options.host.images_folder = options.images.folder;
  process.images = std::make_unique<runtime::HostImages>(
      loop, process.files, process.large, std::move(options.images));
  process.lines = std::make_unique<UnixSerialLines>(loop);
  ExecServer::Options doors;
  doors.allowed = access.allowed;
  process.doors = std::make_unique<ExecServer>(loop, process.files, std::move(doors));
  if (const std::string trace = arguments.Text("trace"); !trace.empty()) {
    TRY(process.spans, SpanLog::Open(loop, trace));
  }
  const Status ended =
      StartAndServe(session, loop, stop, process, std::move(options), std::move(access));
  if (process.hangs) EndWithoutThreads(session, ended);
  return ended;
}

}  // namespace

cli::Command MachineRuntimeCommand() {
  return {
      .name = "machine",
      .summary = "Guests of libvirt on this host",
      .details =
          "Machines as guests of libvirt and QEMU: with KVM if a probe guest boots with it, else "
          "without. Disks are volumes of `berth runtime volume` on the same host, or local ones. "
          "Runs until it is told to stop; guests run on, and everything is found again in libvirt.",
      .examples =
          "# one class; what is left of the host when 2 GiB are kept\n"
          "printf 'classes:\\n- name: small\\n  capabilities: {cpu: 1, memory: 1Gi}\\n' "
          ">classes.yaml\n"
          "berth runtime machine --socket /run/berth --dir /var/lib/berth/machines --classes "
          "classes.yaml --reserve-memory 2Gi\n"
          "# with images, room for local disks, and two guests' cores on each core\n"
          "berth runtime machine --dir /srv/machines --classes classes.yaml --images /srv/images "
          "--local-disk 100Gi --overcommit-cpu 2\n"
          "# what it runs\n"
          "berth iri machines --endpoint unix:/run/berth/iri-machineprovider.sock",
      .flags = kMachineFlags,
      .run = &RunMachine};
}

}  // namespace berth::app
