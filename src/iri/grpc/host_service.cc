// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "berth/iri/v1/host.grpc.pb.h"
#include "iri/grpc/boot_clock.h"
#include "iri/grpc/serving.h"
#include "net/grpc_server_stream.h"
#include "net/grpc_server_writer.h"

namespace berth::iri {

namespace {

using ChangeWriter = net::GrpcServerWriter<host_pb::Change>;
using AttachFrames = net::GrpcServerStream<host_pb::AttachFrame, host_pb::AttachFrame>;

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

  grpc::ServerUnaryReactor* ListGuests(grpc::CallbackServerContext*,
                                       const host_pb::ListGuestsRequest* request,
                                       host_pb::ListGuestsResponse* response) override {
    return Serve(scope_, request, response, [this](const host_pb::ListGuestsRequest&) {
      return Filled<host_pb::ListGuestsResponse, std::vector<GuestProcess>>(
          runtime_.ListGuests(),
          [](const std::vector<GuestProcess>& all, host_pb::ListGuestsResponse& answer) {
            for (const GuestProcess& one : all) {
              host_pb::GuestProcess& added = *answer.add_guests();
              added.set_machine_uid(one.machine_uid);
              added.set_pid(one.pid);
              added.set_start_ticks(one.start_ticks);
              added.set_held(one.held);
            }
          });
    });
  }

  grpc::ServerUnaryReactor* ResumeGuest(grpc::CallbackServerContext*,
                                        const host_pb::ResumeGuestRequest* request,
                                        host_pb::ResumeGuestResponse* response) override {
    return Serve(scope_, request, response, [this](const host_pb::ResumeGuestRequest& r) {
      return Done<host_pb::ResumeGuestResponse>(runtime_.ResumeGuest(r.machine_uid()));
    });
  }

  grpc::ServerUnaryReactor* SetPullSecret(grpc::CallbackServerContext*,
                                          const host_pb::SetPullSecretRequest* request,
                                          host_pb::SetPullSecretResponse* response) override {
    return Serve(scope_, request, response, [this](const host_pb::SetPullSecretRequest& r) {
      return Done<host_pb::SetPullSecretResponse>(TakePullSecret(r.uid(), r.docker_config()));
    });
  }

  grpc::ServerUnaryReactor* SetIgnition(grpc::CallbackServerContext*,
                                        const host_pb::SetIgnitionRequest* request,
                                        host_pb::SetIgnitionResponse* response) override {
    return Serve(scope_, request, response, [this](const host_pb::SetIgnitionRequest& r) {
      Ignition ignition{.machine_uid = r.machine_uid(), .data = r.data()};
      return Done<host_pb::SetIgnitionResponse>(runtime_.SetIgnition(std::move(ignition)));
    });
  }

  grpc::ServerBidiReactor<host_pb::AttachFrame, host_pb::AttachFrame>* Attach(
      grpc::CallbackServerContext*) override {
    return net::ServeBidi<host_pb::AttachFrame, host_pb::AttachFrame>(
        watches_, [this](AttachFrames& frames) { return RunAttach(&frames); });
  }

 private:
  rt::Task<Status> TakePullSecret(std::string uid, std::string docker_config) {
    if (uid.empty()) co_return BadRequest("pull secret: no uid");
    if (docker_config.size() > kPullSecretBytesMax) {
      co_return BadRequest("pull secret: " + std::to_string(docker_config.size()) +
                           " bytes, the limit is " + std::to_string(kPullSecretBytesMax));
    }
    PullSecret secret{.uid = std::move(uid), .docker_config = std::move(docker_config)};
    co_return co_await runtime_.SetPullSecret(std::move(secret));
  }

  rt::Task<Status> RunAttach(AttachFrames* frames) {
    CO_TRY(const std::optional<host_pb::AttachFrame> first, co_await frames->Read());
    if (!first.has_value() || !first->has_request()) {
      co_return BadRequest("attach: the first frame has no request");
    }
    CO_TRY_STATUS(CheckMessage(*first));
    AttachRequest request;
    request.machine_uid = first->request().machine_uid();
    request.what = first->request().what();
    for (const auto& [name, value] : first->request().options()) request.options[name] = value;
    CO_TRY(const std::unique_ptr<AttachStream> stream,
           co_await runtime_.Attach(std::move(request)));
    Status ended = co_await frames->Write(host_pb::AttachFrame());
    rt::TaskScope scope(scope_.loop());
    scope.Spawn("iri.attach_in", CarryIn(frames, stream.get()));
    if (ended.ok()) ended = co_await CarryOut(frames, stream.get());
    const Status closed = co_await stream->Close();
    CHECK(closed.ok());
    const Status joined = co_await scope.Close();
    CHECK(joined.ok());
    co_return ended;
  }

  // Until the guest has said its last.
  static rt::Task<Status> CarryOut(AttachFrames* frames, AttachStream* stream) {
    while (true) {
      CO_TRY(auto frame, co_await stream->Read());
      if (!frame.has_value()) co_return OkStatus();
      host_pb::AttachFrame message;
      message.set_channel(static_cast<uint32_t>(frame->channel));
      message.set_data(std::move(frame->data));
      CO_TRY_STATUS(co_await frames->Write(std::move(message)));
    }
  }
  static rt::Task<Status> CarryIn(AttachFrames* frames, AttachStream* stream) {
    while (true) {
      CO_TRY(auto message, co_await frames->Read());
      AttachFrame frame;
      frame.channel = AttachFrame::Channel::kIn;  // a caller who is done has no more input
      if (message.has_value()) {
        if (message->channel() > kAttachChannelMax ||
            message->data().size() > kAttachFrameBytesMax) {
          co_return BadRequest("attach: a frame that is none");
        }
        frame.channel = static_cast<AttachFrame::Channel>(message->channel());
        frame.data = std::move(*message->mutable_data());
      }
      const Status written = co_await stream->Write(std::move(frame));
      if (!written.ok() || !message.has_value()) co_return OkStatus();
    }
  }

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
