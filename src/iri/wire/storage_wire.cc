// SPDX-License-Identifier: Apache-2.0
#include "iri/wire/common_wire.h"
#include "iri/wire/wire.h"

namespace berth::iri {

volume_pb::Volume ToProto(const Volume& volume) {
  volume_pb::Volume message;
  *message.mutable_metadata() = ToProto(volume.metadata);
  volume_pb::VolumeSpec& spec = *message.mutable_spec();
  spec.set_class_(volume.spec.class_name);
  spec.mutable_resources()->set_storage_bytes(volume.spec.storage_bytes);
  if (!volume.spec.encryption.empty()) {
    CopyTo(volume.spec.encryption, spec.mutable_encryption()->mutable_secret_data());
  }
  if (!volume.spec.image.empty()) {
    auto& source = *spec.mutable_volume_data_source()->mutable_image_data_source();
    source.set_image(volume.spec.image);
    source.set_architecture(volume.spec.image_architecture);
  }
  if (!volume.spec.snapshot_id.empty()) {
    spec.mutable_volume_data_source()->mutable_snapshot_data_source()->set_snapshot_id(
        volume.spec.snapshot_id);
  }
  volume_pb::VolumeStatus& status = *message.mutable_status();
  status.set_state(EnumToProto<volume_pb::VolumeState>(volume.status.state));
  if (volume.status.access != VolumeAccess{}) {
    volume_pb::VolumeAccess& access = *status.mutable_access();
    access.set_driver(volume.status.access.driver);
    access.set_handle(volume.status.access.handle);
    CopyTo(volume.status.access.attributes, access.mutable_attributes());
    CopyTo(volume.status.access.secret_data, access.mutable_secret_data());
  }
  if (volume.status.storage_bytes != 0) {
    status.mutable_resources()->set_storage_bytes(volume.status.storage_bytes);
  }
  return message;
}

Volume FromProto(const volume_pb::Volume& message) {
  Volume volume;
  volume.metadata = FromProto(message.metadata());
  const volume_pb::VolumeSpec& spec = message.spec();
  volume.spec.class_name = spec.class_();
  volume.spec.storage_bytes = spec.resources().storage_bytes();
  CopyFrom(spec.encryption().secret_data(), volume.spec.encryption);
  volume.spec.image = spec.volume_data_source().image_data_source().image();
  volume.spec.image_architecture = spec.volume_data_source().image_data_source().architecture();
  volume.spec.snapshot_id = spec.volume_data_source().snapshot_data_source().snapshot_id();
  const volume_pb::VolumeStatus& status = message.status();
  volume.status.state = EnumFromNumber(status.state(), VolumeState::kError);
  volume.status.access.driver = status.access().driver();
  volume.status.access.handle = status.access().handle();
  CopyFrom(status.access().attributes(), volume.status.access.attributes);
  CopyFrom(status.access().secret_data(), volume.status.access.secret_data);
  volume.status.storage_bytes = status.resources().storage_bytes();
  return volume;
}

volume_pb::VolumeSnapshot ToProto(const VolumeSnapshot& snapshot) {
  volume_pb::VolumeSnapshot message;
  *message.mutable_metadata() = ToProto(snapshot.metadata);
  message.mutable_spec()->set_volume_id(snapshot.volume_id);
  message.mutable_status()->set_state(EnumToProto<volume_pb::VolumeSnapshotState>(snapshot.state));
  message.mutable_status()->set_size(snapshot.size_bytes);
  return message;
}
VolumeSnapshot FromProto(const volume_pb::VolumeSnapshot& message) {
  VolumeSnapshot snapshot;
  snapshot.metadata = FromProto(message.metadata());
  snapshot.volume_id = message.spec().volume_id();
  snapshot.state = EnumFromNumber(message.status().state(), SnapshotState::kFailed);
  snapshot.size_bytes = message.status().size();
  return snapshot;
}

volume_pb::VolumeClassStatus ToProto(const VolumeClassStatus& status) {
  volume_pb::VolumeClassStatus message;
  message.mutable_volume_class()->set_name(status.volume_class.name);
  message.mutable_volume_class()->mutable_capabilities()->set_tps(status.volume_class.tps);
  message.mutable_volume_class()->mutable_capabilities()->set_iops(status.volume_class.iops);
  message.set_quantity(status.quantity);
  return message;
}
VolumeClassStatus FromProto(const volume_pb::VolumeClassStatus& message) {
  VolumeClassStatus status;
  status.volume_class.name = message.volume_class().name();
  status.volume_class.tps = message.volume_class().capabilities().tps();
  status.volume_class.iops = message.volume_class().capabilities().iops();
  status.quantity = message.quantity();
  return status;
}

bucket_pb::Bucket ToProto(const Bucket& bucket) {
  bucket_pb::Bucket message;
  *message.mutable_metadata() = ToProto(bucket.metadata);
  message.mutable_spec()->set_class_(bucket.class_name);
  message.mutable_status()->set_state(EnumToProto<bucket_pb::BucketState>(bucket.state));
  if (bucket.access != BucketAccess{}) {
    bucket_pb::BucketAccess& access = *message.mutable_status()->mutable_access();
    access.set_endpoint(bucket.access.endpoint);
    CopyTo(bucket.access.secret_data, access.mutable_secret_data());
  }
  return message;
}
Bucket FromProto(const bucket_pb::Bucket& message) {
  Bucket bucket;
  bucket.metadata = FromProto(message.metadata());
  bucket.class_name = message.spec().class_();
  bucket.state = EnumFromNumber(message.status().state(), BucketState::kError);
  bucket.access.endpoint = message.status().access().endpoint();
  CopyFrom(message.status().access().secret_data(), bucket.access.secret_data);
  return bucket;
}

bucket_pb::BucketClass ToProto(const BucketClass& bucket_class) {
  bucket_pb::BucketClass message;
  message.set_name(bucket_class.name);
  message.mutable_capabilities()->set_tps(bucket_class.tps);
  message.mutable_capabilities()->set_iops(bucket_class.iops);
  return message;
}
BucketClass FromProto(const bucket_pb::BucketClass& message) {
  BucketClass bucket_class;
  bucket_class.name = message.name();
  bucket_class.tps = message.capabilities().tps();
  bucket_class.iops = message.capabilities().iops();
  return bucket_class;
}

}  // namespace berth::iri
