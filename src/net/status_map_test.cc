// SPDX-License-Identifier: Apache-2.0
// The table of STYLE.md, both ways.
#include "net/status_map.h"

#include <gtest/gtest.h>

#include <vector>

namespace berth::net {
namespace {

struct Row {
  Reason reason;
  int http;
  GrpcCode grpc;
  Reason from_http;
  Reason from_grpc;
};

TEST(StatusMap, IsTheTable) {
  using enum Reason;
  const std::vector<Row> rows = {
      {kOk, 200, GrpcCode::kOk, kOk, kOk},
      {kBadRequest, 400, GrpcCode::kInvalidArgument, kBadRequest, kBadRequest},
      {kUnauthorized, 401, GrpcCode::kUnauthenticated, kUnauthorized, kUnauthorized},
      {kForbidden, 403, GrpcCode::kPermissionDenied, kForbidden, kForbidden},
      {kNotFound, 404, GrpcCode::kNotFound, kNotFound, kNotFound},
      {kMethodNotSupported,
       405,
       GrpcCode::kUnimplemented,
       kMethodNotSupported,
       kMethodNotSupported},
      {kNotAcceptable, 406, GrpcCode::kInvalidArgument, kNotAcceptable, kBadRequest},
      {kAlreadyExists, 409, GrpcCode::kAlreadyExists, kConflict, kAlreadyExists},
      {kConflict, 409, GrpcCode::kAborted, kConflict, kConflict},
      {kExpired, 410, GrpcCode::kOutOfRange, kExpired, kExpired},
      {kRequestTooLarge, 413, GrpcCode::kResourceExhausted, kRequestTooLarge, kTooManyRequests},
      {kUnsupportedMediaType, 415, GrpcCode::kInvalidArgument, kUnsupportedMediaType, kBadRequest},
      {kInvalid, 422, GrpcCode::kInvalidArgument, kInvalid, kBadRequest},
      {kTooManyRequests, 429, GrpcCode::kResourceExhausted, kTooManyRequests, kTooManyRequests},
      {kTimeout, 504, GrpcCode::kDeadlineExceeded, kTimeout, kTimeout},
      {kCancelled, 499, GrpcCode::kCancelled, kCancelled, kCancelled},
      {kInternal, 500, GrpcCode::kInternal, kInternal, kInternal},
      {kUnavailable, 503, GrpcCode::kUnavailable, kUnavailable, kUnavailable},
  };
  EXPECT_EQ(rows.size(), static_cast<size_t>(kUnavailable) + 1) << "every reason has a row";
  for (const Row& row : rows) {
    SCOPED_TRACE(ReasonName(row.reason));
    EXPECT_EQ(HttpStatusOf(row.reason), row.http);
    EXPECT_EQ(GrpcCodeOf(row.reason), row.grpc);
    EXPECT_EQ(ReasonOfHttpStatus(row.http), row.from_http);
    EXPECT_EQ(ReasonOfGrpcCode(static_cast<int>(row.grpc)), row.from_grpc);
    if (row.http != 499) EXPECT_NE(HttpPhrase(row.http), "");
  }
}

TEST(StatusMap, ReadsCodesThatWeNeverSend) {
  EXPECT_EQ(ReasonOfHttpStatus(201), Reason::kOk);
  EXPECT_EQ(ReasonOfHttpStatus(408), Reason::kTimeout);
  EXPECT_EQ(ReasonOfHttpStatus(412), Reason::kConflict);
  EXPECT_EQ(ReasonOfHttpStatus(418), Reason::kBadRequest);
  EXPECT_EQ(ReasonOfHttpStatus(502), Reason::kUnavailable);
  EXPECT_EQ(ReasonOfHttpStatus(599), Reason::kInternal);
  EXPECT_EQ(ReasonOfHttpStatus(0), Reason::kInternal);
  EXPECT_EQ(ReasonOfGrpcCode(2), Reason::kInternal);
  EXPECT_EQ(ReasonOfGrpcCode(9), Reason::kConflict);
  EXPECT_EQ(ReasonOfGrpcCode(15), Reason::kInternal);
  EXPECT_EQ(ReasonOfGrpcCode(99), Reason::kInternal);
}

}  // namespace
}  // namespace berth::net
