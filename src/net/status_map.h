// SPDX-License-Identifier: Apache-2.0
// How a Reason is said in HTTP and in gRPC, and back: one table.
#pragma once

#include "base/status.h"

namespace berth::net {

// grpc::StatusCode as a number, so that no gRPC header is needed to read the table.
enum class GrpcCode : int {
  kOk = 0,
  kCancelled = 1,
  kUnknown = 2,
  kInvalidArgument = 3,
  kDeadlineExceeded = 4,
  kNotFound = 5,
  kAlreadyExists = 6,
  kPermissionDenied = 7,
  kResourceExhausted = 8,
  kFailedPrecondition = 9,
  kAborted = 10,
  kOutOfRange = 11,
  kUnimplemented = 12,
  kInternal = 13,
  kUnavailable = 14,
  kDataLoss = 15,
  kUnauthenticated = 16,
};

int HttpStatusOf(Reason reason);
GrpcCode GrpcCodeOf(Reason reason);

// The reason that an answer without a body of its own stands for. Codes that several reasons share
// give the general one: 409 is Conflict, INVALID_ARGUMENT is BadRequest. 2xx is kOk; an unknown
// code is kInternal, an unknown 4xx kBadRequest.
Reason ReasonOfHttpStatus(int status);
Reason ReasonOfGrpcCode(int code);

// "Not Found" for 404; "" for a code that we never send.
std::string_view HttpPhrase(int status);

}  // namespace berth::net
