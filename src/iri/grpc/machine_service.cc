// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "iri/grpc/serving.h"
#include "machine/v1alpha1/api.grpc.pb.h"

namespace berth::iri {

namespace {

class MachineService final : public machine_pb::MachineRuntime::CallbackService {
 public:
  MachineService(rt::TaskScope& scope, MachineRuntime& runtime)
      : scope_(scope), runtime_(runtime) {}

  grpc::ServerUnaryReactor* Version(grpc::CallbackServerContext*,
                                    const machine_pb::VersionRequest* request,
                                    machine_pb::VersionResponse* response) override {
    return Serve(scope_, request, response, [this](const machine_pb::VersionRequest&) {
      return VersionAnswer<machine_pb::VersionResponse>(runtime_.Version());
    });
  }
  grpc::ServerUnaryReactor* ListEvents(grpc::CallbackServerContext*,
                                       const machine_pb::ListEventsRequest* request,
                                       machine_pb::ListEventsResponse* response) override {
    return Serve(scope_, request, response, [this](const machine_pb::ListEventsRequest& r) {
      return EventsAnswer<machine_pb::ListEventsResponse>(
          runtime_.ListEvents(EventFilterFromProto(r.filter())));
    });
  }
  grpc::ServerUnaryReactor* ListMachines(grpc::CallbackServerContext*,
                                         const machine_pb::ListMachinesRequest* request,
                                         machine_pb::ListMachinesResponse* response) override {
    return Serve(scope_, request, response, [this](const machine_pb::ListMachinesRequest& r) {
      return Filled<machine_pb::ListMachinesResponse, std::vector<Machine>>(
          runtime_.ListMachines(FilterFromProto(r.filter())),
          [](const std::vector<Machine>& all, machine_pb::ListMachinesResponse& answer) {
            for (const Machine& one : all) *answer.add_machines() = ToProto(one);
          });
    });
  }
  grpc::ServerUnaryReactor* CreateMachine(grpc::CallbackServerContext*,
                                          const machine_pb::CreateMachineRequest* request,
                                          machine_pb::CreateMachineResponse* response) override {
    return Serve(scope_, request, response, [this](const machine_pb::CreateMachineRequest& r) {
      return Filled<machine_pb::CreateMachineResponse, Machine>(
          runtime_.CreateMachine(FromProto(r.machine())),
          [](const Machine& made, machine_pb::CreateMachineResponse& answer) {
            *answer.mutable_machine() = ToProto(made);
          });
    });
  }
  grpc::ServerUnaryReactor* DeleteMachine(grpc::CallbackServerContext*,
                                          const machine_pb::DeleteMachineRequest* request,
                                          machine_pb::DeleteMachineResponse* response) override {
    return Serve(scope_, request, response, [this](const machine_pb::DeleteMachineRequest& r) {
      return Done<machine_pb::DeleteMachineResponse>(runtime_.DeleteMachine(r.machine_id()));
    });
  }
  grpc::ServerUnaryReactor* UpdateMachineAnnotations(
      grpc::CallbackServerContext*,
      const machine_pb::UpdateMachineAnnotationsRequest* request,
      machine_pb::UpdateMachineAnnotationsResponse* response) override {
    return Serve(
        scope_, request, response, [this](const machine_pb::UpdateMachineAnnotationsRequest& r) {
          const StringMap annotations(r.annotations().begin(), r.annotations().end());
          return Done<machine_pb::UpdateMachineAnnotationsResponse>(
              runtime_.UpdateMachineAnnotations(r.machine_id(), annotations));
        });
  }
  grpc::ServerUnaryReactor* UpdateMachinePower(
      grpc::CallbackServerContext*,
      const machine_pb::UpdateMachinePowerRequest* request,
      machine_pb::UpdateMachinePowerResponse* response) override {
    return Serve(scope_, request, response, [this](const machine_pb::UpdateMachinePowerRequest& r) {
      return Done<machine_pb::UpdateMachinePowerResponse>(
          runtime_.UpdateMachinePower(r.machine_id(), FromProto(r.power())));
    });
  }
  grpc::ServerUnaryReactor* AttachVolume(grpc::CallbackServerContext*,
                                         const machine_pb::AttachVolumeRequest* request,
                                         machine_pb::AttachVolumeResponse* response) override {
    return Serve(scope_, request, response, [this](const machine_pb::AttachVolumeRequest& r) {
      return Done<machine_pb::AttachVolumeResponse>(
          runtime_.AttachVolume(r.machine_id(), FromProto(r.volume())));
    });
  }
  grpc::ServerUnaryReactor* DetachVolume(grpc::CallbackServerContext*,
                                         const machine_pb::DetachVolumeRequest* request,
                                         machine_pb::DetachVolumeResponse* response) override {
    return Serve(scope_, request, response, [this](const machine_pb::DetachVolumeRequest& r) {
      return Done<machine_pb::DetachVolumeResponse>(
          runtime_.DetachVolume(r.machine_id(), r.name()));
    });
  }
  grpc::ServerUnaryReactor* UpdateVolume(grpc::CallbackServerContext*,
                                         const machine_pb::UpdateVolumeRequest* request,
                                         machine_pb::UpdateVolumeResponse* response) override {
    return Serve(scope_, request, response, [this](const machine_pb::UpdateVolumeRequest& r) {
      return Done<machine_pb::UpdateVolumeResponse>(
          runtime_.UpdateVolume(r.machine_id(), FromProto(r.volume())));
    });
  }
  grpc::ServerUnaryReactor* AttachNetworkInterface(
      grpc::CallbackServerContext*,
      const machine_pb::AttachNetworkInterfaceRequest* request,
      machine_pb::AttachNetworkInterfaceResponse* response) override {
    return Serve(
        scope_, request, response, [this](const machine_pb::AttachNetworkInterfaceRequest& r) {
          return Done<machine_pb::AttachNetworkInterfaceResponse>(
              runtime_.AttachNetworkInterface(r.machine_id(), FromProto(r.network_interface())));
        });
  }
  grpc::ServerUnaryReactor* DetachNetworkInterface(
      grpc::CallbackServerContext*,
      const machine_pb::DetachNetworkInterfaceRequest* request,
      machine_pb::DetachNetworkInterfaceResponse* response) override {
    return Serve(
        scope_, request, response, [this](const machine_pb::DetachNetworkInterfaceRequest& r) {
          return Done<machine_pb::DetachNetworkInterfaceResponse>(
              runtime_.DetachNetworkInterface(r.machine_id(), r.name()));
        });
  }
  grpc::ServerUnaryReactor* Status(grpc::CallbackServerContext*,
                                   const machine_pb::StatusRequest* request,
                                   machine_pb::StatusResponse* response) override {
    return Serve(scope_, request, response, [this](const machine_pb::StatusRequest&) {
      return Filled<machine_pb::StatusResponse, std::vector<MachineClassStatus>>(
          runtime_.ClassStatus(),
          [](const std::vector<MachineClassStatus>& all, machine_pb::StatusResponse& answer) {
            for (const MachineClassStatus& one : all)
              *answer.add_machine_class_status() = ToProto(one);
          });
    });
  }
  grpc::ServerUnaryReactor* Exec(grpc::CallbackServerContext*,
                                 const machine_pb::ExecRequest* request,
                                 machine_pb::ExecResponse* response) override {
    return Serve(scope_, request, response, [this](const machine_pb::ExecRequest& r) {
      return Filled<machine_pb::ExecResponse, std::string>(
          runtime_.Exec(r.machine_id()),
          [](const std::string& url, machine_pb::ExecResponse& answer) { answer.set_url(url); });
    });
  }

 private:
  rt::TaskScope& scope_;
  MachineRuntime& runtime_;
};

}  // namespace

std::unique_ptr<grpc::Service> NewMachineService(rt::TaskScope& scope, MachineRuntime& runtime) {
  return std::make_unique<MachineService>(scope, runtime);
}

}  // namespace berth::iri
