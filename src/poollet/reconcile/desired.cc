// SPDX-License-Identifier: Apache-2.0
#include "poollet/reconcile/desired.h"

#include <algorithm>
#include <utility>

#include "berth/agent/v1/agent.pb.h"
#include "iri/efi_variables.h"
#include "iri/labels.h"
#include "poollet/reconcile/desired_labels.h"

namespace berth::poollet {
namespace {

namespace pb = ::berth::agent::v1;
using fleet::ObjectKind;

template <class Map>
iri::StringMap ToMap(const Map& map) {
  return iri::StringMap(map.begin(), map.end());
}

struct LabelKeys {
  std::string_view uid;
  std::string_view namespace_;
  std::string_view name;
};

iri::StringMap Labels(const pb::Assign& assign,
                      const iri::StringMap& extra,
                      const LabelKeys& keys,
                      std::string_view cluster_id) {
  iri::StringMap labels = extra;
  labels[std::string(keys.uid)] = assign.uid();
  labels[std::string(keys.namespace_)] = assign.namespace_();
  labels[std::string(keys.name)] = assign.name();
  labels[std::string(iri::kClusterIdLabel)] = cluster_id;
  labels[std::string(iri::kIncarnationLabel)] = std::to_string(assign.incarnation());
  labels[std::string(iri::kPlacementLabel)] = std::to_string(assign.placement());
  return labels;
}

iri::MachineVolume ToVolume(const pb::MachineVolume& volume, const pb::Assign& assign) {
  iri::MachineVolume out;
  out.name = volume.name();
  out.device = volume.device();
  if (volume.local_disk()) {
    out.local_disk =
        iri::LocalDisk{.size_bytes = volume.local_disk_bytes(), .image = volume.local_disk_image()};
    return out;
  }
  iri::VolumeConnection connection;
  connection.driver = volume.access().driver();
  connection.handle = volume.access().handle();
  connection.attributes = ToMap(volume.access().attributes());
  // The assignment of an earlier server does not say which it is.
  connection.attributes.erase(std::string(iri::kRawVolumeLabelsAttribute));
  if (!volume.volume_name().empty()) {
    connection.attributes[std::string(iri::kRawVolumeLabelsAttribute)] =
        RawVolumeLabels({.uid = volume.volume_uid(),
                         .namespace_ = assign.namespace_(),
                         .name = volume.volume_name()});
  }
  // A storage that can fence by placement, will.
  connection.attributes[std::string(iri::kIncarnationLabel)] = std::to_string(assign.incarnation());
  connection.attributes[std::string(iri::kPlacementLabel)] = std::to_string(assign.placement());
  connection.secret_data = ToMap(volume.access().secret_data());
  connection.encryption_data = ToMap(volume.encryption());
  connection.effective_storage_bytes = volume.storage_bytes();
  out.connection = std::move(connection);
  return out;
}

// Nobody but the server says which Network and which NetworkInterface it is, whatever attributes a
// user gave the interface; an earlier server does not say it.
void SayWhich(const pb::MachineNic& nic, const std::string& where, iri::StringMap& attributes) {
  for (const std::string_view key : iri::kServersNicAttributes) attributes.erase(std::string(key));
  if (!nic.nic_uid().empty()) {
    attributes[std::string(iri::kRawNicLabelsAttribute)] =
        RawNicLabels({.uid = nic.nic_uid(), .namespace_ = where, .name = nic.nic_name()});
  }
  if (!nic.network_uid().empty()) {
    attributes[std::string(iri::kNetworkUidAttribute)] = nic.network_uid();
    attributes[std::string(iri::kRawNetworkLabelsAttribute)] = RawNetworkLabels(
        {.uid = nic.network_uid(), .namespace_ = where, .name = nic.network_name()});
  }
}

iri::MachineNic ToNic(const pb::MachineNic& nic, const pb::Assign& assign) {
  iri::MachineNic out;
  out.name = nic.name();
  out.network_id = nic.network_id();
  out.ips.assign(nic.ips().begin(), nic.ips().end());
  out.attributes = ToMap(nic.attributes());
  SayWhich(nic, assign.namespace_(), out.attributes);
  return out;
}

RestartPolicy ToRestartPolicy(std::string_view word) {
  if (word == "Always") return RestartPolicy::kAlways;
  if (word == "Never") return RestartPolicy::kNever;
  return RestartPolicy::kOnFailure;
}

void AddParts(const pb::MachineBody& body, const pb::Assign& assign, DesiredMachine& machine) {
  for (const auto& volume : body.volumes()) {
    const bool has_access = volume.local_disk() || !volume.access().driver().empty();
    if (!volume.waits_for().empty()) {
      machine.volume_waits[volume.name()] = volume.waits_for();
    } else if (!has_access) {
      machine.volume_waits[volume.name()] = "the volume has no access data yet";
    } else {
      machine.object.spec.volumes.push_back(ToVolume(volume, assign));
    }
  }
  for (const auto& nic : body.network_interfaces()) {
    if (!nic.waits_for().empty()) {
      machine.nic_waits[nic.name()] = nic.waits_for();
    } else {
      machine.object.spec.nics.push_back(ToNic(nic, assign));
    }
  }
}

// Those that wait are in it: they may be attached since before.
void AnnotateNics(const pb::MachineBody& body, iri::StringMap& annotations) {
  std::map<std::string, ObjectName, std::less<>> nics;
  for (const pb::MachineNic& nic : body.network_interfaces()) {
    if (nic.nic_uid().empty()) continue;
    nics[nic.name()] = {.uid = nic.nic_uid(), .namespace_ = {}, .name = nic.nic_name()};
  }
  annotations[std::string(iri::kNicMappingAnnotation)] = NicMapping(nics);
}

// Nobody but the spec says which variables there are.
void AnnotateEfiVariables(const pb::MachineBody& body, iri::StringMap& annotations) {
  annotations.erase(std::string(iri::kEfiVariablesAnnotation));
  if (body.efi_variables().empty()) return;
  std::vector<iri::EfiVariable> variables;
  for (const pb::EfiVariable& one : body.efi_variables()) {
    variables.push_back({.name = one.name(), .uuid = one.uuid(), .value = one.value()});
  }
  annotations[std::string(iri::kEfiVariablesAnnotation)] = iri::EfiVariablesText(variables);
}

// Nor says anybody else that it may be moved: such a guest starts held, and nobody would resume it.
void AnnotateOnPoolLoss(bool moves, iri::StringMap& annotations) {
  annotations.erase(std::string(iri::kOnPoolLossAnnotation));
  if (moves) annotations[std::string(iri::kOnPoolLossAnnotation)] = iri::kOnPoolLossMove;
}

void ReadMachine(const pb::Assign& assign, std::string_view cluster_id, Desired& desired) {
  const pb::MachineBody& body = assign.machine();
  desired.kind = ObjectKind::kMachine;
  desired.class_name = body.class_name();
  desired.generation = body.generation();
  desired.missing.assign(body.missing().begin(), body.missing().end());
  DesiredMachine machine;
  machine.moves = body.on_pool_loss() == iri::kOnPoolLossMove;
  machine.restart = ToRestartPolicy(body.restart_policy());
  constexpr LabelKeys kKeys = {.uid = iri::kMachineUidLabel,
                               .namespace_ = iri::kMachineNamespaceLabel,
                               .name = iri::kMachineNameLabel};
  iri::Machine& object = machine.object;
  object.metadata.labels = Labels(assign, ToMap(body.labels()), kKeys, cluster_id);
  object.metadata.annotations = ToMap(body.annotations());
  object.metadata.annotations[std::string(iri::kMachineGenerationAnnotation)] =
      std::to_string(body.generation());
  object.metadata.annotations.erase(std::string(iri::kIriMachineGenerationAnnotation));
  AnnotateNics(body, object.metadata.annotations);
  AnnotateEfiVariables(body, object.metadata.annotations);
  AnnotateOnPoolLoss(machine.moves, object.metadata.annotations);
  object.spec.power = body.power_on() ? iri::Power::kOn : iri::Power::kOff;
  object.spec.class_name = body.class_name();
  object.spec.ignition_data = body.ignition();
  object.spec.hostname = body.hostname();
  machine.pull_secret = body.image_pull_secret();
  AddParts(body, assign, machine);
  int64_t disks = 0;
  for (const auto& volume : body.volumes()) {
    if (volume.local_disk()) disks += std::max<int64_t>(volume.local_disk_bytes(), 0);
  }
  if (disks > AmountOf(desired.amounts, kStorage)) desired.amounts[std::string(kStorage)] = disks;
  desired.body = std::move(machine);
}

// The runtime's own name of what others know as TYPE://ID.
std::string IdOf(std::string_view handle) {
  const size_t at = handle.find("://");
  return std::string(at == std::string_view::npos ? handle : handle.substr(at + 3));
}

void ReadVolume(const pb::Assign& assign, std::string_view cluster_id, Desired& desired) {
  const pb::VolumeBody& body = assign.volume();
  desired.kind = ObjectKind::kVolume;
  desired.class_name = body.class_name();
  desired.generation = body.generation();
  desired.missing.assign(body.missing().begin(), body.missing().end());
  DesiredVolume volume;
  constexpr LabelKeys kKeys = {.uid = iri::kVolumeUidLabel,
                               .namespace_ = iri::kVolumeNamespaceLabel,
                               .name = iri::kVolumeNameLabel};
  volume.object.metadata.labels = Labels(assign, ToMap(body.labels()), kKeys, cluster_id);
  iri::VolumeSpec& spec = volume.object.spec;
  spec.class_name = body.class_name();
  spec.storage_bytes = body.storage_bytes();
  spec.encryption = ToMap(body.encryption());
  spec.image = body.image();
  spec.image_architecture = body.architecture();
  spec.snapshot_id = IdOf(body.snapshot_handle());
  volume.pull_secret = body.image_pull_secret();
  // PROTOCOL 6.6: at its full size, whatever the request said.
  if (body.storage_bytes() > AmountOf(desired.amounts, kStorage)) {
    desired.amounts[std::string(kStorage)] = body.storage_bytes();
  }
  desired.body = std::move(volume);
}

void ReadSnapshot(const pb::Assign& assign, std::string_view cluster_id, Desired& desired) {
  const pb::SnapshotBody& body = assign.snapshot();
  desired.kind = ObjectKind::kVolumeSnapshot;
  desired.generation = body.generation();
  desired.missing.assign(body.missing().begin(), body.missing().end());
  constexpr LabelKeys kKeys = {.uid = iri::kSnapshotUidLabel,
                               .namespace_ = iri::kSnapshotNamespaceLabel,
                               .name = iri::kSnapshotNameLabel};
  DesiredSnapshot snapshot;
  snapshot.object.metadata.labels = Labels(assign, ToMap(body.labels()), kKeys, cluster_id);
  snapshot.object.volume_id = IdOf(body.volume_handle());
  if (snapshot.object.volume_id.empty() && desired.missing.empty()) {
    desired.missing.emplace_back("its volume is not known");
  }
  desired.body = std::move(snapshot);
}

void ReadBucket(const pb::Assign& assign, std::string_view cluster_id, Desired& desired) {
  const pb::BucketBody& body = assign.bucket();
  desired.kind = ObjectKind::kBucket;
  desired.class_name = body.class_name();
  desired.generation = body.generation();
  DesiredBucket bucket;
  constexpr LabelKeys kKeys = {.uid = iri::kBucketUidLabel,
                               .namespace_ = iri::kBucketNamespaceLabel,
                               .name = iri::kBucketNameLabel};
  bucket.object.metadata.labels = Labels(assign, ToMap(body.labels()), kKeys, cluster_id);
  bucket.object.class_name = body.class_name();
  desired.body = std::move(bucket);
}

// Takes every secret out; true if there was one.
bool Strip(pb::Assign& assign) {
  bool had = false;
  if (assign.has_machine()) {
    pb::MachineBody& body = *assign.mutable_machine();
    had = !body.ignition().empty() || !body.image_pull_secret().empty();
    body.clear_ignition();
    body.clear_image_pull_secret();
    for (auto& volume : *body.mutable_volumes()) {
      had = had || volume.access().secret_data_size() > 0 || volume.encryption_size() > 0;
      if (volume.has_access()) volume.mutable_access()->clear_secret_data();
      volume.clear_encryption();
    }
  }
  if (assign.has_volume()) {
    pb::VolumeBody& body = *assign.mutable_volume();
    had = had || body.encryption_size() > 0 || !body.image_pull_secret().empty();
    body.clear_encryption();
    body.clear_image_pull_secret();
  }
  return had;
}

Result<pb::Assign> Parse(std::string_view bytes) {
  pb::Assign assign;
  if (!assign.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return BadRequest("not an assignment");
  }
  return assign;
}

}  // namespace

Result<Desired> ParseAssign(std::string_view assign, std::string_view cluster_id) {
  TRY(pb::Assign message, Parse(assign));
  Desired desired;
  desired.uid = message.uid();
  desired.namespace_ = message.namespace_();
  desired.name = message.name();
  desired.pool_uid = message.pool_uid();
  desired.reservation_uid = message.reservation_uid();
  desired.hash = message.hash();
  desired.proof = message.proof();
  desired.revision = message.revision();
  desired.placement = {.incarnation = message.incarnation(), .number = message.placement()};
  desired.amounts = Amounts(message.resources().begin(), message.resources().end());
  switch (message.body_case()) {
    case pb::Assign::kMachine: ReadMachine(message, cluster_id, desired); break;
    case pb::Assign::kVolume: ReadVolume(message, cluster_id, desired); break;
    case pb::Assign::kSnapshot: ReadSnapshot(message, cluster_id, desired); break;
    case pb::Assign::kBucket: ReadBucket(message, cluster_id, desired); break;
    case pb::Assign::kReservation:
      desired.kind = ObjectKind::kReservation;
      desired.body = DesiredReservation{.consumers = {message.reservation().consumers().begin(),
                                                      message.reservation().consumers().end()}};
      break;
    case pb::Assign::BODY_NOT_SET: return BadRequest("assignment of " + desired.uid + ": no body");
  }
  if (desired.uid.empty()) return BadRequest("an assignment without a uid");
  desired.had_secrets = Strip(message);
  return desired;
}

bool Moves(const Desired& desired) {
  const auto* machine = std::get_if<DesiredMachine>(&desired.body);
  return machine != nullptr && machine->moves;
}

std::set<std::string> ConsumersOf(const Desired& desired) {
  const auto* reservation = std::get_if<DesiredReservation>(&desired.body);
  return reservation == nullptr ? std::set<std::string>() : reservation->consumers;
}

Result<std::string> WithoutSecrets(std::string_view assign) {
  TRY(pb::Assign message, Parse(assign));
  Strip(message);
  return message.SerializeAsString();
}

}  // namespace berth::poollet
