// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "iri/grpc/serving.h"
#include "volume/v1alpha1/api.grpc.pb.h"

namespace berth::iri {

namespace {

class VolumeService final : public volume_pb::VolumeRuntime::CallbackService {
 public:
  VolumeService(rt::TaskScope& scope, VolumeRuntime& runtime) : scope_(scope), runtime_(runtime) {}

  grpc::ServerUnaryReactor* Version(grpc::CallbackServerContext*,
                                    const volume_pb::VersionRequest* request,
                                    volume_pb::VersionResponse* response) override {
    return Serve(scope_, request, response, [this](const volume_pb::VersionRequest&) {
      return VersionAnswer<volume_pb::VersionResponse>(runtime_.Version());
    });
  }
  grpc::ServerUnaryReactor* ListEvents(grpc::CallbackServerContext*,
                                       const volume_pb::ListEventsRequest* request,
                                       volume_pb::ListEventsResponse* response) override {
    return Serve(scope_, request, response, [this](const volume_pb::ListEventsRequest& r) {
      return EventsAnswer<volume_pb::ListEventsResponse>(
          runtime_.ListEvents(EventFilterFromProto(r.filter())));
    });
  }
  grpc::ServerUnaryReactor* ListVolumes(grpc::CallbackServerContext*,
                                        const volume_pb::ListVolumesRequest* request,
                                        volume_pb::ListVolumesResponse* response) override {
    return Serve(scope_, request, response, [this](const volume_pb::ListVolumesRequest& r) {
      return Filled<volume_pb::ListVolumesResponse, std::vector<Volume>>(
          runtime_.ListVolumes(FilterFromProto(r.filter())),
          [](const std::vector<Volume>& all, volume_pb::ListVolumesResponse& answer) {
            for (const Volume& one : all) *answer.add_volumes() = ToProto(one);
          });
    });
  }
  grpc::ServerUnaryReactor* CreateVolume(grpc::CallbackServerContext*,
                                         const volume_pb::CreateVolumeRequest* request,
                                         volume_pb::CreateVolumeResponse* response) override {
    return Serve(scope_, request, response, [this](const volume_pb::CreateVolumeRequest& r) {
      return Filled<volume_pb::CreateVolumeResponse, Volume>(
          runtime_.CreateVolume(FromProto(r.volume())),
          [](const Volume& made, volume_pb::CreateVolumeResponse& answer) {
            *answer.mutable_volume() = ToProto(made);
          });
    });
  }
  grpc::ServerUnaryReactor* ExpandVolume(grpc::CallbackServerContext*,
                                         const volume_pb::ExpandVolumeRequest* request,
                                         volume_pb::ExpandVolumeResponse* response) override {
    return Serve(scope_, request, response, [this](const volume_pb::ExpandVolumeRequest& r) {
      return Done<volume_pb::ExpandVolumeResponse>(
          runtime_.ExpandVolume(r.volume_id(), r.resources().storage_bytes()));
    });
  }
  grpc::ServerUnaryReactor* DeleteVolume(grpc::CallbackServerContext*,
                                         const volume_pb::DeleteVolumeRequest* request,
                                         volume_pb::DeleteVolumeResponse* response) override {
    return Serve(scope_, request, response, [this](const volume_pb::DeleteVolumeRequest& r) {
      return Done<volume_pb::DeleteVolumeResponse>(runtime_.DeleteVolume(r.volume_id()));
    });
  }
  grpc::ServerUnaryReactor* CreateVolumeSnapshot(
      grpc::CallbackServerContext*,
      const volume_pb::CreateVolumeSnapshotRequest* request,
      volume_pb::CreateVolumeSnapshotResponse* response) override {
    return Serve(
        scope_, request, response, [this](const volume_pb::CreateVolumeSnapshotRequest& r) {
          return Filled<volume_pb::CreateVolumeSnapshotResponse, VolumeSnapshot>(
              runtime_.CreateVolumeSnapshot(FromProto(r.volume_snapshot())),
              [](const VolumeSnapshot& made, volume_pb::CreateVolumeSnapshotResponse& answer) {
                *answer.mutable_volume_snapshot() = ToProto(made);
              });
        });
  }
  grpc::ServerUnaryReactor* DeleteVolumeSnapshot(
      grpc::CallbackServerContext*,
      const volume_pb::DeleteVolumeSnapshotRequest* request,
      volume_pb::DeleteVolumeSnapshotResponse* response) override {
    return Serve(
        scope_, request, response, [this](const volume_pb::DeleteVolumeSnapshotRequest& r) {
          return Done<volume_pb::DeleteVolumeSnapshotResponse>(
              runtime_.DeleteVolumeSnapshot(r.volume_snapshot_id()));
        });
  }
  grpc::ServerUnaryReactor* ListVolumeSnapshots(
      grpc::CallbackServerContext*,
      const volume_pb::ListVolumeSnapshotsRequest* request,
      volume_pb::ListVolumeSnapshotsResponse* response) override {
    return Serve(scope_, request, response, [this](const volume_pb::ListVolumeSnapshotsRequest& r) {
      return Filled<volume_pb::ListVolumeSnapshotsResponse, std::vector<VolumeSnapshot>>(
          runtime_.ListVolumeSnapshots(FilterFromProto(r.filter())),
          [](const std::vector<VolumeSnapshot>& all,
             volume_pb::ListVolumeSnapshotsResponse& answer) {
            for (const VolumeSnapshot& one : all) *answer.add_volume_snapshots() = ToProto(one);
          });
    });
  }
  grpc::ServerUnaryReactor* Status(grpc::CallbackServerContext*,
                                   const volume_pb::StatusRequest* request,
                                   volume_pb::StatusResponse* response) override {
    return Serve(scope_, request, response, [this](const volume_pb::StatusRequest&) {
      return Filled<volume_pb::StatusResponse, std::vector<VolumeClassStatus>>(
          runtime_.ClassStatus(),
          [](const std::vector<VolumeClassStatus>& all, volume_pb::StatusResponse& answer) {
            for (const VolumeClassStatus& one : all)
              *answer.add_volume_class_status() = ToProto(one);
          });
    });
  }

 private:
  rt::TaskScope& scope_;
  VolumeRuntime& runtime_;
};

}  // namespace

std::unique_ptr<grpc::Service> NewVolumeService(rt::TaskScope& scope, VolumeRuntime& runtime) {
  return std::make_unique<VolumeService>(scope, runtime);
}

}  // namespace berth::iri
