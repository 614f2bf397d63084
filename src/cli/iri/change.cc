// SPDX-License-Identifier: Apache-2.0
// Commands that change something at a runtime.
#include <fmt/core.h>

#include <algorithm>
#include <istream>
#include <iterator>
#include <ostream>
#include <utility>

#include "base/strings.h"
#include "cli/failure.h"
#include "cli/files.h"
#include "cli/iri/print.h"
#include "cli/iri/runs.h"
#include "cli/iri/runtime_link.h"
#include "iri/wire/json.h"
#include "meta/json.h"
#include "meta/quantity.h"
#include "meta/yaml.h"

namespace berth::cli {

using iri::RuntimeKind;
using meta::Value;

namespace {

constexpr std::string_view kManifestAdvice =
    "a manifest is what `berth iri machines -o yaml` shows, with kind: Machine, Volume, "
    "VolumeSnapshot or Bucket";

Result<std::vector<Value>> ReadManifests(Session& session, const Arguments& arguments) {
  if (arguments.List("filename").empty()) {
    return Advise(BadRequest("nothing to create"), "name a manifest with -f, or - for the input");
  }
  std::vector<Value> all;
  for (const std::string& name : arguments.List("filename")) {
    std::string text;
    if (name == "-") {
      text.assign(std::istreambuf_iterator<char>(*session.environment().in), {});
    } else {
      TRY(text, ReadFile(name));
    }
    Result<std::vector<Value>> documents = meta::ParseYamlDocuments(text);
    if (!documents.ok()) return documents.status().Wrap(name);
    for (Value& document : *documents) {
      if (!document.is_null()) all.push_back(std::move(document));
    }
  }
  return all;
}

// Creates what one document describes; its id.
Result<std::string> CreateOne(RuntimeLink& link, Value document) {
  const std::string kind(document.GetString({"kind"}));
  if (kind.empty()) return Advise(BadRequest("a manifest without kind"), kManifestAdvice);
  document.Remove("kind");
  document.Remove("apiVersion");
  const std::string json = meta::WriteJson(document);
  if (kind == "Machine") {
    TRY(iri::Machine machine, iri::MachineFromJson(json));
    TRY(const auto made, link.Await(link.client().machine().CreateMachine(std::move(machine))));
    return made.metadata.id;
  }
  if (kind == "Volume") {
    TRY(iri::Volume volume, iri::VolumeFromJson(json));
    TRY(const auto made, link.Await(link.client().volume().CreateVolume(std::move(volume))));
    return made.metadata.id;
  }
  if (kind == "VolumeSnapshot") {
    TRY(iri::VolumeSnapshot snapshot, iri::VolumeSnapshotFromJson(json));
    TRY(const auto made,
        link.Await(link.client().volume().CreateVolumeSnapshot(std::move(snapshot))));
    return made.metadata.id;
  }
  if (kind == "Bucket") {
    TRY(iri::Bucket bucket, iri::BucketFromJson(json));
    TRY(const auto made, link.Await(link.client().bucket().CreateBucket(std::move(bucket))));
    return made.metadata.id;
  }
  return Advise(BadRequest("kind " + Quote(kind) + " is not one of a runtime"), kManifestAdvice);
}

// The kind that a word means; kUnknown if it is none.
iri::ObjectKind KindOf(std::string_view word) {
  const std::string name = ToLower(word);
  if (name == "machine" || name == "machines") return iri::ObjectKind::kMachine;
  if (name == "volume" || name == "volumes") return iri::ObjectKind::kVolume;
  if (name == "bucket" || name == "buckets") return iri::ObjectKind::kBucket;
  if (name == "snapshot" || name == "snapshots") return iri::ObjectKind::kVolumeSnapshot;
  return iri::ObjectKind::kUnknown;
}

template <class T>
bool HasOne(const Result<std::vector<T>>& listed) {
  return listed.ok() && !listed->empty();
}

// Which kind has this id.
Result<iri::ObjectKind> FindKind(RuntimeLink& link, const std::string& id) {
  TRY(const iri::Runtimes served, link.Await(link.client().Discover()));
  iri::ObjectFilter filter;
  filter.id = id;
  if (served.machine != nullptr && HasOne(link.Await(served.machine->ListMachines(filter)))) {
    return iri::ObjectKind::kMachine;
  }
  if (served.volume != nullptr && HasOne(link.Await(served.volume->ListVolumes(filter)))) {
    return iri::ObjectKind::kVolume;
  }
  if (served.volume != nullptr && HasOne(link.Await(served.volume->ListVolumeSnapshots(filter)))) {
    return iri::ObjectKind::kVolumeSnapshot;
  }
  if (served.bucket != nullptr && HasOne(link.Await(served.bucket->ListBuckets(filter)))) {
    return iri::ObjectKind::kBucket;
  }
  return NotFound("the runtime has nothing with id " + Quote(id));
}

Status DeleteOne(RuntimeLink& link, iri::ObjectKind kind, const std::string& id) {
  iri::RuntimeClient& client = link.client();
  switch (kind) {
    case iri::ObjectKind::kMachine: return link.Await(client.machine().DeleteMachine(id));
    case iri::ObjectKind::kVolume: return link.Await(client.volume().DeleteVolume(id));
    case iri::ObjectKind::kVolumeSnapshot:
      return link.Await(client.volume().DeleteVolumeSnapshot(id));
    case iri::ObjectKind::kBucket: return link.Await(client.bucket().DeleteBucket(id));
    case iri::ObjectKind::kUnknown: break;
  }
  return BadRequest("unknown kind");
}

Result<int64_t> BytesOf(const Arguments& arguments, std::string_view flag) {
  if (arguments.Text(flag).empty()) return 0;
  Result<meta::Quantity> size = meta::Quantity::Parse(arguments.Text(flag));
  if (!size.ok() || size->Sign() <= 0) {
    return BadRequest(
        fmt::format("--{} {}: expected a size such as 10Gi", flag, Quote(arguments.Text(flag))));
  }
  return size->Value();
}

Result<iri::MachineVolume> VolumeOf(const Arguments& arguments) {
  iri::MachineVolume volume;
  volume.name = arguments.Text("volume");
  volume.device = arguments.Text("device");
  TRY(const int64_t bytes, BytesOf(arguments, "size"));
  if (!arguments.Text("handle").empty()) {
    volume.connection.emplace();
    volume.connection->driver = arguments.Text("driver");
    volume.connection->handle = arguments.Text("handle");
    volume.connection->effective_storage_bytes = bytes;
    return volume;
  }
  if (bytes == 0) {
    return Advise(BadRequest("volume " + Quote(volume.name) + " is neither local nor connected"),
                  "give --size for a local disk, or --driver and --handle for a volume");
  }
  volume.local_disk = iri::LocalDisk{.size_bytes = bytes, .image = arguments.Text("image")};
  return volume;
}

Status WantOneMachine(const Arguments& arguments) {
  if (arguments.words().size() == 1) return OkStatus();
  return Advise(BadRequest("expected one ID of a machine"), "berth iri machines lists them");
}
Status WantOnePart(const Arguments& arguments) {
  if (arguments.Given("volume") != arguments.Given("nic")) return OkStatus();
  return BadRequest("give either --volume NAME or --nic NAME");
}

}  // namespace

Status RunCreateObjects(Session& session, const Arguments& arguments) {
  TRY(std::vector<Value> documents, ReadManifests(session, arguments));
  TRY(const auto link, RuntimeLink::Make(session.environment(), arguments, RuntimeKind::kMachine));
  for (Value& document : documents) {
    const std::string kind = ToLower(document.GetString({"kind"}));
    TRY(const std::string id, CreateOne(*link, std::move(document)));
    session.out() << fmt::format("{} {} created\n", kind, Printable(id));
  }
  return OkStatus();
}

Status RunDeleteObjects(Session& session, const Arguments& arguments) {
  std::vector<std::string> ids = arguments.words();
  iri::ObjectKind kind = ids.size() > 1 ? KindOf(ids.front()) : iri::ObjectKind::kUnknown;
  if (kind != iri::ObjectKind::kUnknown) ids.erase(ids.begin());
  if (ids.empty()) return BadRequest("expected the ID of what shall be deleted");
  TRY(const auto link, RuntimeLink::Make(session.environment(), arguments, RuntimeKind::kMachine));
  for (const std::string& id : ids) {
    iri::ObjectKind its_kind = kind;
    if (kind == iri::ObjectKind::kUnknown) {
      TRY(its_kind, FindKind(*link, id));
    }
    TRY_STATUS(DeleteOne(*link, its_kind, id));
    session.out() << fmt::format(
        "{} {} deletion begun\n", ToLower(ObjectKindName(its_kind)), Printable(id));
  }
  return OkStatus();
}

Status RunPower(Session& session, const Arguments& arguments) {
  const std::vector<std::string>& words = arguments.words();
  const bool valid = words.size() == 2 && (words[1] == "on" || words[1] == "off");
  if (!valid) return Advise(BadRequest("expected ID and on or off"), "berth iri power m-1 off");
  TRY(const auto link, RuntimeLink::Make(session.environment(), arguments, RuntimeKind::kMachine));
  const iri::Power power = words[1] == "on" ? iri::Power::kOn : iri::Power::kOff;
  TRY_STATUS(link->Await(link->client().machine().UpdateMachinePower(words[0], power)));
  session.out() << fmt::format("machine {} switched {}\n", Printable(words[0]), words[1]);
  return OkStatus();
}

Status RunAttach(Session& session, const Arguments& arguments) {
  TRY_STATUS(WantOneMachine(arguments));
  TRY_STATUS(WantOnePart(arguments));
  const std::string& id = arguments.words().front();
  if (arguments.Given("volume")) {
    TRY(iri::MachineVolume volume, VolumeOf(arguments));
    TRY(const auto link,
        RuntimeLink::Make(session.environment(), arguments, RuntimeKind::kMachine));
    TRY_STATUS(link->Await(link->client().machine().AttachVolume(id, std::move(volume))));
  } else {
    iri::MachineNic nic;
    nic.name = arguments.Text("nic");
    nic.network_id = arguments.Text("network");
    nic.ips = arguments.List("ip");
    TRY(const auto link,
        RuntimeLink::Make(session.environment(), arguments, RuntimeKind::kMachine));
    TRY_STATUS(link->Await(link->client().machine().AttachNetworkInterface(id, std::move(nic))));
  }
  session.out() << fmt::format("attached to machine {}\n", Printable(id));
  return OkStatus();
}

Status RunDetach(Session& session, const Arguments& arguments) {
  TRY_STATUS(WantOneMachine(arguments));
  TRY_STATUS(WantOnePart(arguments));
  TRY(const auto link, RuntimeLink::Make(session.environment(), arguments, RuntimeKind::kMachine));
  const std::string& id = arguments.words().front();
  iri::MachineRuntime& machines = link->client().machine();
  if (arguments.Given("volume")) {
    TRY_STATUS(link->Await(machines.DetachVolume(id, arguments.Text("volume"))));
  } else {
    TRY_STATUS(link->Await(machines.DetachNetworkInterface(id, arguments.Text("nic"))));
  }
  session.out() << fmt::format("detached from machine {}\n", Printable(id));
  return OkStatus();
}

namespace {

Result<iri::Machine> ReadMachine(RuntimeLink& link, const std::string& id) {
  iri::ObjectFilter filter;
  filter.id = id;
  TRY(std::vector<iri::Machine> found, link.Await(link.client().machine().ListMachines(filter)));
  if (!found.empty()) return std::move(found.front());
  return NotFound("the runtime has no machine with id " + Quote(id));
}

// What the machine has under that name, but of the new size.
Status ExpandAttached(RuntimeLink& link,
                      const std::string& id,
                      const std::string& name,
                      int64_t bytes) {
  TRY(iri::Machine machine, ReadMachine(link, id));
  std::vector<iri::MachineVolume>& volumes = machine.spec.volumes;
  const auto volume = std::ranges::find(volumes, name, &iri::MachineVolume::name);
  if (volume == volumes.end()) {
    return NotFound("machine " + Quote(id) + " has no volume " + Quote(name));
  }
  if (!volume->connection) {
    return BadRequest("volume " + Quote(name) + " of machine " + Quote(id) +
                      " is a local disk: those keep their size");
  }
  volume->connection->effective_storage_bytes = bytes;
  return link.Await(link.client().machine().UpdateVolume(id, std::move(*volume)));
}

// KEY=VALUE sets, KEY- removes.
Status ApplyAnnotation(const std::string& word, iri::StringMap& annotations) {
  const size_t equals = word.find('=');
  if (equals != std::string::npos && equals > 0) {
    annotations[word.substr(0, equals)] = word.substr(equals + 1);
    return OkStatus();
  }
  if (equals == std::string::npos && word.size() > 1 && word.ends_with('-')) {
    annotations.erase(word.substr(0, word.size() - 1));
    return OkStatus();
  }
  return BadRequest(Quote(word) + ": expected KEY=VALUE, or KEY- to remove it");
}

}  // namespace

Status RunExpand(Session& session, const Arguments& arguments) {
  if (arguments.words().size() != 1) {
    return Advise(BadRequest("expected one ID of a volume, or of a machine with --volume NAME"),
                  "berth iri volumes and berth iri machines list them");
  }
  if (arguments.Text("size").empty()) {
    return BadRequest("--size is missing: expected a size such as 20Gi");
  }
  TRY(const int64_t bytes, BytesOf(arguments, "size"));
  const std::string& id = arguments.words().front();
  const bool is_attached = arguments.Given("volume");
  TRY(const auto link,
      RuntimeLink::Make(session.environment(),
                        arguments,
                        is_attached ? RuntimeKind::kMachine : RuntimeKind::kVolume));
  const std::string size = AmountText(iri::kStorage, bytes);
  if (is_attached) {
    const std::string& name = arguments.Text("volume");
    TRY_STATUS(ExpandAttached(*link, id, name, bytes));
    session.out() << fmt::format(
        "machine {} sees volume {} with {}\n", Printable(id), Printable(name), size);
    return OkStatus();
  }
  TRY_STATUS(link->Await(link->client().volume().ExpandVolume(id, bytes)));
  session.out() << fmt::format("volume {} expands to {}\n", Printable(id), size);
  return OkStatus();
}

Status RunAnnotate(Session& session, const Arguments& arguments) {
  const std::vector<std::string>& words = arguments.words();
  if (words.size() < 2) {
    return Advise(BadRequest("expected the ID of a machine and at least one KEY=VALUE or KEY-"),
                  "berth iri annotate m-1 note=spare");
  }
  const std::string& id = words.front();
  TRY(const auto link, RuntimeLink::Make(session.environment(), arguments, RuntimeKind::kMachine));
  // The call replaces the whole map.
  TRY(iri::Machine machine, ReadMachine(*link, id));
  iri::StringMap annotations = std::move(machine.metadata.annotations);
  for (size_t i = 1; i < words.size(); ++i) TRY_STATUS(ApplyAnnotation(words[i], annotations));
  TRY_STATUS(
      link->Await(link->client().machine().UpdateMachineAnnotations(id, std::move(annotations))));
  session.out() << fmt::format("machine {} annotated\n", Printable(id));
  return OkStatus();
}

}  // namespace berth::cli
