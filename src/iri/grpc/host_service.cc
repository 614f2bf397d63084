// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "berth/iri/v1/host.grpc.pb.h"
#include "iri/grpc/boot_clock.h"
#include "iri/grpc/serving.h"
#include "net/grpc_server_writer.h"

namespace berth::iri {

namespace {

using ChangeWriter = net::GrpcServerWriter<host_pb::Change>;

class HostService final : public host_pb::HostRuntime::CallbackService {
 public:
  HostService(rt::TaskScope& scope, rt::TaskScope& watches, HostRuntime& runtime)
      : scope_(scope), watches_(watches), runtime_(runtime) {}

  grpc::ServerWriteReactor<host_pb::Change>* Watch(grpc::CallbackServerContext*,
                                                   const host_pb::WatchRequest* request) override {
    return net::ServeWriter<host_pb::Change>(
        watches_, [this, request](ChangeWriter& writer) { return RunWatch(request, &writer); });
  }
  grpc::ServerUnaryReactor* Capacity(grpc::CallbackServerContext*,
                                     const host_pb::CapacityRequest* request,
                                     host_pb::CapacityResponse* response) override {
    return Serve(scope_, request, response, [this](const host_pb::CapacityRequest&) {
      return Filled<host_pb::CapacityResponse, HostCapacity>(
          runtime_.Capacity(), [](const HostCapacity& capacity, host_pb::CapacityResponse& answer) {
            answer = ToProto(capacity);
          });
    });
  }

  grpc::ServerUnaryReactor* RenewLease(grpc::CallbackServerContext*,
                                       const host_pb::RenewLeaseRequest* request,
                                       host_pb::RenewLeaseResponse* response) override {
    return Serve(scope_, request, response, [this](const host_pb::RenewLeaseRequest& r) {
      rt::Loop& loop = scope_.loop();
      LeaseRenewal renewal;
      renewal.deadline = FromBootNanos(r.deadline_boottime_nanos(), loop.Now());
      renewal.machine_uids.assign(r.machine_uids().begin(), r.machine_uids().end());
      renewal.released_uids.assign(r.released_uids().begin(), r.released_uids().end());
      return Filled<host_pb::RenewLeaseResponse, std::vector<LeaseState>>(
          runtime_.RenewLease(std::move(renewal)),
          [&loop](const std::vector<LeaseState>& leases, host_pb::RenewLeaseResponse& answer) {
            for (const LeaseState& lease : leases) {
              host_pb::LeaseState& added = *answer.add_leases();
              added.set_machine_uid(lease.machine_uid);
              added.set_deadline_boottime_nanos(ToBootNanos(lease.deadline, loop.Now()));
              added.set_fenced(lease.fenced);
            }
          });
    });
  }

  grpc::ServerUnaryReactor* SetReservations(grpc::CallbackServerContext*,
                                            const host_pb::SetReservationsRequest* request,
                                            host_pb::SetReservationsResponse* response) override {
    return Serve(scope_, request, response, [this](const host_pb::SetReservationsRequest& r) {
      std::vector<Reservation> reservations;
      for (const auto& reservation : r.reservations()) {
        reservations.push_back(FromProto(reservation));
      }
      return Done<host_pb::SetReservationsResponse>(
          runtime_.SetReservations(std::move(reservations)));
    });
  }

  grpc::ServerUnaryReactor* ListReservations(grpc::CallbackServerContext*,
                                             const host_pb::ListReservationsRequest* request,
                                             host_pb::ListReservationsResponse* response) override {
    return Serve(scope_, request, response, [this](const host_pb::ListReservationsRequest&) {
      return Filled<host_pb::ListReservationsResponse, std::vector<Reservation>>(
          runtime_.ListReservations(),
          [](const std::vector<Reservation>& all, host_pb::ListReservationsResponse& answer) {
            for (const Reservation& one : all) *answer.add_reservations() = ToProto(one);
          });
    });
  }

 private:
  rt::Task<Status> RunWatch(const host_pb::WatchRequest* request, ChangeWriter* writer) {
    CO_TRY_STATUS(CheckMessage(*request));
    CO_TRY(const std::unique_ptr<ChangeStream> stream, co_await runtime_.Watch(request->cursor()));
    Status ended;
    while (ended.ok()) {
      const Result<Change> change = co_await stream->Next();
      if (change.ok()) {
        ended = co_await writer->Write(ToProto(*change));
      } else {
        ended = change.status();
      }
    }
    CO_TRY_STATUS(co_await stream->Close());
    co_return ended;
  }

  rt::TaskScope& scope_;
  rt::TaskScope& watches_;
  HostRuntime& runtime_;
};

}  // namespace

std::unique_ptr<grpc::Service> NewHostService(rt::TaskScope& scope,
                                              rt::TaskScope& watches,
                                              HostRuntime& runtime) {
  return std::make_unique<HostService>(scope, watches, runtime);
}

}  // namespace berth::iri
