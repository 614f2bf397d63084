// SPDX-License-Identifier: Apache-2.0
// gRPC's process-wide settings, channel arguments and statuses, in our words.
#pragma once

#include <grpcpp/support/channel_arguments.h>
#include <grpcpp/support/status.h>

#include <string>

#include "base/status.h"
#include "base/time.h"

namespace berth::net {

// First thing in main of every process that uses gRPC: Abseil's deadlock detector costs gRPC half
// of its speed and reports cycles that are none.
void InitGrpcProcess();

// What every channel of ours is made with: reconnects after 50 ms, growing to 5 s (gRPC's own
// second is too long for recovery).
grpc::ChannelArguments GrpcChannelArguments();

// The cause texts of a Status do not cross; its reason and message do.
grpc::Status ToGrpc(const Status& status);
Status FromGrpc(const grpc::Status& status);

// A deadline for a ClientContext, that far from now.
gpr_timespec GrpcDeadline(Duration from_now);

}  // namespace berth::net
