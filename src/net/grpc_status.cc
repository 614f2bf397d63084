// SPDX-License-Identifier: Apache-2.0
#include "net/grpc_status.h"

#include <absl/synchronization/mutex.h>
#include <grpc/support/time.h>

#include "net/status_map.h"

namespace berth::net {

void InitGrpcProcess() { absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore); }

grpc::ChannelArguments GrpcChannelArguments() {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 50);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 2'000);  // also the limit of one attempt
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 5'000);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return arguments;
}

grpc::Status ToGrpc(const Status& status) {
  if (status.ok()) return grpc::Status::OK;
  return {static_cast<grpc::StatusCode>(GrpcCodeOf(status.reason())),
          std::string(status.message())};
}

Status FromGrpc(const grpc::Status& status) {
  if (status.ok()) return OkStatus();
  return {ReasonOfGrpcCode(static_cast<int>(status.error_code())), status.error_message()};
}

gpr_timespec GrpcDeadline(Duration from_now) {
  return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                      gpr_time_from_nanos(from_now.nanos(), GPR_TIMESPAN));
}

}  // namespace berth::net
