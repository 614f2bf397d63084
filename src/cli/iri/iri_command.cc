// SPDX-License-Identifier: Apache-2.0
#include "cli/iri/iri_command.h"

#include <array>

#include "cli/iri/runs.h"
#include "cli/iri/runtime_link.h"

namespace berth::cli {

namespace {

constexpr Flag kOutput = {.name = "output",
                          .letter = 'o',
                          .kind = FlagKind::kText,
                          .value_name = "FORMAT",
                          .help = "json, yaml, wide or jsonpath=TEMPLATE instead of a table."};
constexpr Flag kLabel = {.name = "label",
                         .letter = 'l',
                         .kind = FlagKind::kCommaList,
                         .value_name = "KEY=VALUE",
                         .help = "Only objects with this label; may be repeated."};
constexpr Flag kShowSecrets = {.name = "show-secrets",
                               .help = "Print secrets, ignition and keys as they are (base64)."};

constexpr std::array kListFlags = {
    kEndpointFlag, kRuntimeUserFlag, kCallTimeFlag, kOutput, kLabel, kShowSecrets};
constexpr std::array kLookFlags = {kEndpointFlag, kRuntimeUserFlag, kCallTimeFlag, kOutput};
constexpr std::array kPlainFlags = {kEndpointFlag, kRuntimeUserFlag, kCallTimeFlag};
constexpr std::array kEventFlags = {kEndpointFlag,
                                    kRuntimeUserFlag,
                                    kCallTimeFlag,
                                    kOutput,
                                    kLabel,
                                    kShowSecrets,
                                    Flag{.name = "since",
                                         .kind = FlagKind::kDuration,
                                         .value_name = "TIME",
                                         .help = "Only what is younger than this."}};
constexpr std::array kCreateFlags = {kEndpointFlag,
                                     kRuntimeUserFlag,
                                     kCallTimeFlag,
                                     Flag{.name = "filename",
                                          .letter = 'f',
                                          .kind = FlagKind::kCommaList,
                                          .value_name = "FILE",
                                          .help = "Manifest in YAML or JSON, or - for the input.",
                                          .completion = Completion::kFiles}};
constexpr std::array kWatchFlags = {kEndpointFlag,
                                    kRuntimeUserFlag,
                                    kCallTimeFlag,
                                    kOutput,
                                    Flag{.name = "cursor",
                                         .kind = FlagKind::kText,
                                         .value_name = "CURSOR",
                                         .help = "Go on behind this change instead of from now."},
                                    Flag{.name = "changes",
                                         .kind = FlagKind::kNumber,
                                         .value_name = "N",
                                         .help = "End after so many; 0: never.",
                                         .fallback = "0"}};
constexpr Flag kVolume = {.name = "volume",
                          .kind = FlagKind::kText,
                          .value_name = "NAME",
                          .help = "(volume) The machine's name for it."};
constexpr Flag kNic = {.name = "nic",
                       .kind = FlagKind::kText,
                       .value_name = "NAME",
                       .help = "(interface) The machine's name for it."};
constexpr std::array kDetachFlags = {kEndpointFlag, kRuntimeUserFlag, kCallTimeFlag, kVolume, kNic};
constexpr std::array kAttachFlags = {
    kEndpointFlag,
    kRuntimeUserFlag,
    kCallTimeFlag,
    kVolume,
    Flag{.name = "device",
         .kind = FlagKind::kText,
         .value_name = "NAME",
         .help = "(volume) Device in the guest: oda."},
    Flag{.name = "size",
         .kind = FlagKind::kText,
         .value_name = "SIZE",
         .help = "(volume) Size, as 10Gi."},
    Flag{.name = "image",
         .kind = FlagKind::kText,
         .value_name = "IMAGE",
         .help = "(volume) What a local disk is filled with."},
    Flag{.name = "driver",
         .kind = FlagKind::kText,
         .value_name = "DRIVER",
         .help = "(volume) How it is connected."},
    Flag{.name = "handle",
         .kind = FlagKind::kText,
         .value_name = "HANDLE",
         .help = "(volume) Its volume runtime's name for it."},
    kNic,
    Flag{.name = "network",
         .kind = FlagKind::kText,
         .value_name = "ID",
         .help = "(interface) Id of the network."},
    Flag{.name = "ip",
         .kind = FlagKind::kCommaList,
         .value_name = "ADDRESS",
         .help = "(interface) Address of the guest; may be repeated."}};

constexpr std::array kExpandFlags = {
    kEndpointFlag,
    kRuntimeUserFlag,
    kCallTimeFlag,
    Flag{.name = "size",
         .kind = FlagKind::kText,
         .value_name = "SIZE",
         .help = "The new size, as 20Gi. Nothing shrinks."},
    Flag{.name = "volume",
         .kind = FlagKind::kText,
         .value_name = "NAME",
         .help = "ID is a machine, and this the name of its volume, which is larger by now."}};
constexpr std::array kReserveFlags = {
    kEndpointFlag,
    kRuntimeUserFlag,
    kCallTimeFlag,
    Flag{.name = "machine-uid",
         .kind = FlagKind::kText,
         .value_name = "UID",
         .help = "Only a machine with this UID may take the room. Without it anyone may."}};
constexpr std::array kLeaseFlags = {
    kEndpointFlag,
    kRuntimeUserFlag,
    kCallTimeFlag,
    Flag{.name = "for",
         .kind = FlagKind::kDuration,
         .value_name = "TIME",
         .help = "How long the machines live from now on, unless they are named again."},
    Flag{.name = "release", .help = "Forget their leases, also those that have run out."}};

constexpr std::array kChildren = {
    Command{.name = "version",
            .summary = "Which services the runtime has, and who made it",
            .examples = "berth iri version\n"
                        "berth iri version --endpoint unix:/run/berth/iri-machineprovider.sock",
            .flags = kLookFlags,
            .run = &RunRuntimeVersion},
    Command{.name = "machines",
            .usage = "[ID]",
            .summary = "The machines that the runtime has",
            .examples =
                "berth iri machines\n"
                "berth iri machines -l machinepoollet.ironcore.dev/machine-name=web -o yaml",
            .flags = kListFlags,
            .run = &RunMachines},
    Command{.name = "volumes",
            .usage = "[ID]",
            .summary = "The volumes that the runtime has",
            .examples = "berth iri volumes\nberth iri volumes v-1 -o json --show-secrets",
            .flags = kListFlags,
            .run = &RunVolumes},
    Command{.name = "snapshots",
            .usage = "[ID]",
            .summary = "The snapshots of volumes that the runtime has",
            .examples = "berth iri snapshots",
            .flags = kListFlags,
            .run = &RunSnapshots},
    Command{.name = "buckets",
            .usage = "[ID]",
            .summary = "The buckets that the runtime has",
            .examples = "berth iri buckets",
            .flags = kListFlags,
            .run = &RunBuckets},
    Command{.name = "status",
            .summary = "The classes that the runtime offers, and how many fit",
            .details =
                "The quantity of a class is how many would fit if the host ran nothing else: "
                "classes share one host.",
            .examples = "berth iri status\nberth iri status -o json",
            .flags = kLookFlags,
            .run = &RunRuntimeStatus},
    Command{
        .name = "capacity",
        .summary = "What the host has, what is promised, and what is free",
        .details = "Needs Berth's addition to the interface. -o wide also shows every instance.",
        .examples = "berth iri capacity\nberth iri capacity -o wide",
        .flags = kLookFlags,
        .run = &RunCapacity},
    Command{.name = "events",
            .usage = "[ID]",
            .summary = "What happened to the runtime's objects",
            .examples = "berth iri events --since 10m\nberth iri events m-1",
            .flags = kEventFlags,
            .run = &RunRuntimeEvents},
    Command{.name = "create",
            .usage = "-f FILE",
            .summary = "Create machines, volumes, snapshots and buckets at the runtime",
            .details = "Nobody else learns of what is created here: a poollet leaves it alone, as "
                       "it lacks its labels.",
            .examples = "# kind: Machine, Volume, VolumeSnapshot or Bucket\n"
                        "berth iri create -f machine.yaml\n"
                        "echo '{kind: Machine, spec: {class: small}}' | berth iri create -f -",
            .flags = kCreateFlags,
            .run = &RunCreateObjects},
    Command{.name = "delete",
            .usage = "[KIND] ID...",
            .summary = "Delete objects at the runtime",
            .details = "What a poollet has created it will create again. Deletion takes its time: "
                       "list to see it gone.",
            .examples = "berth iri delete m-1\nberth iri delete volume v-1 v-2",
            .flags = kPlainFlags,
            .run = &RunDeleteObjects},
    Command{.name = "power",
            .usage = "ID on|off",
            .summary = "Switch a machine on or off",
            .examples = "berth iri power m-1 off",
            .flags = kPlainFlags,
            .run = &RunPower},
    Command{.name = "attach",
            .usage = "ID --volume NAME|--nic NAME",
            .summary = "Give a machine a disk or a network interface",
            .examples = "berth iri attach m-1 --volume data --size 10Gi\n"
                        "berth iri attach m-1 --volume data --driver ceph --handle h-1\n"
                        "berth iri attach m-1 --nic primary --network net-1 --ip 10.0.0.1",
            .flags = kAttachFlags,
            .run = &RunAttach},
    Command{.name = "detach",
            .usage = "ID --volume NAME|--nic NAME",
            .summary = "Take a disk or a network interface from a machine",
            .examples = "berth iri detach m-1 --volume data",
            .flags = kDetachFlags,
            .run = &RunDetach},
    Command{.name = "expand",
            .usage = "ID --size SIZE [--volume NAME]",
            .summary = "Make a volume larger, or tell a machine that one of its volumes is",
            .details = "A volume that a machine uses is made larger at its volume runtime first. "
                       "Local disks of machines keep their size.",
            .examples = "berth iri expand v-1 --size 20Gi\n"
                        "berth iri expand m-1 --volume data --size 20Gi",
            .flags = kExpandFlags,
            .run = &RunExpand},
    Command{.name = "annotate",
            .usage = "ID KEY=VALUE|KEY-...",
            .summary = "Set or remove annotations of a machine",
            .details = "A poollet sets its own annotations again, and leaves others as they are.",
            .examples = "berth iri annotate m-1 note=spare\nberth iri annotate m-1 note-",
            .flags = kPlainFlags,
            .run = &RunAnnotate},
    Command{.name = "reservations",
            .summary = "The room that the runtime keeps for machines to come",
            .details = "Needs Berth's addition to the interface.",
            .examples = "berth iri reservations\nberth iri reservations -o json",
            .flags = kLookFlags,
            .run = &RunReservations},
    Command{.name = "reserve",
            .usage = "ID RESOURCE=AMOUNT...",
            .summary = "Keep room for machines to come; the same ID again replaces it",
            .details =
                "Needs Berth's addition to the interface. A poollet sets all reservations of "
                "its host: what it does not know it gives up.",
            .examples = "berth iri reserve r-1 cpu=2 memory=4Gi\n"
                        "berth iri reserve r-2 cpu=500m --machine-uid 0b1d2c3e",
            .flags = kReserveFlags,
            .run = &RunReserve},
    Command{.name = "unreserve",
            .usage = "ID...",
            .summary = "Give up room that is kept",
            .examples = "berth iri unreserve r-1 r-2",
            .flags = kPlainFlags,
            .run = &RunUnreserve},
    Command{.name = "leases",
            .summary = "The leases that machines live under, and who was killed at its end",
            .details = "Needs Berth's addition to the interface, and a runtime that keeps leases "
                       "itself: those of guests that are processes are kept by berth fencer.",
            .examples = "berth iri leases\nberth iri leases -o json",
            .flags = kLookFlags,
            .run = &RunLeases},
    Command{.name = "lease",
            .usage = "UID... --for TIME|--release",
            .summary = "Put machines under a lease, prolong it, or take it from them",
            .details =
                "The runtime kills a machine when its lease runs out, whoever else is alive. "
                "A lease is never shortened, and one that has run out stays so until it is "
                "released.",
            .examples = "berth iri lease 0b1d2c3e --for 30s\nberth iri lease 0b1d2c3e --release",
            .flags = kLeaseFlags,
            .run = &RunLease},
    Command{.name = "exec",
            .usage = "ID",
            .summary = "A URL for the machine's console, for one use",
            .examples = "berth iri exec m-1",
            .flags = kPlainFlags,
            .run = &RunRuntimeExec},
    Command{.name = "watch",
            .summary = "Changes at the runtime as they happen",
            .details = "Needs Berth's addition to the interface.",
            .examples = "berth iri watch\nberth iri watch --changes 10 -o json",
            .flags = kWatchFlags,
            .run = &RunWatchChanges},
};

}  // namespace

Command IriCommand() {
  return {.name = "iri",
          .group = "Hosts",
          .usage = "COMMAND",
          .summary = "Talk to a runtime's socket by hand",
          .details =
              "Asks a machine, volume or bucket runtime of this host directly, without server "
              "and poollet: Berth's runtimes and all others that speak the runtime interface.",
          .examples =
              "berth iri machines\n"
              "berth iri capacity --endpoint unix:/run/berth/iri-machineprovider.sock",
          .children = kChildren};
}

}  // namespace berth::cli
