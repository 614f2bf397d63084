// SPDX-License-Identifier: Apache-2.0
#include "net/status_map.h"

#include <array>

#include "base/check.h"

namespace berth::net {
namespace {

struct Row {
  Reason reason;
  int http;
  GrpcCode grpc;
};

// In the order of Reason. Where several rows share a code, the first row with it answers the way
// back, except for the overrides below.
constexpr std::array kRows = {
    Row{Reason::kOk, 200, GrpcCode::kOk},
    Row{Reason::kBadRequest, 400, GrpcCode::kInvalidArgument},
    Row{Reason::kUnauthorized, 401, GrpcCode::kUnauthenticated},
    Row{Reason::kForbidden, 403, GrpcCode::kPermissionDenied},
    Row{Reason::kNotFound, 404, GrpcCode::kNotFound},
    Row{Reason::kMethodNotSupported, 405, GrpcCode::kUnimplemented},
    Row{Reason::kNotAcceptable, 406, GrpcCode::kInvalidArgument},
    Row{Reason::kAlreadyExists, 409, GrpcCode::kAlreadyExists},
    Row{Reason::kConflict, 409, GrpcCode::kAborted},
    Row{Reason::kExpired, 410, GrpcCode::kOutOfRange},
    Row{Reason::kRequestTooLarge, 413, GrpcCode::kResourceExhausted},
    Row{Reason::kUnsupportedMediaType, 415, GrpcCode::kInvalidArgument},
    Row{Reason::kInvalid, 422, GrpcCode::kInvalidArgument},
    Row{Reason::kTooManyRequests, 429, GrpcCode::kResourceExhausted},
    Row{Reason::kTimeout, 504, GrpcCode::kDeadlineExceeded},
    Row{Reason::kCancelled, 499, GrpcCode::kCancelled},
    Row{Reason::kInternal, 500, GrpcCode::kInternal},
    Row{Reason::kUnavailable, 503, GrpcCode::kUnavailable},
};

const Row& RowOf(Reason reason) {
  const Row& row = kRows[static_cast<size_t>(reason)];
  DCHECK(row.reason == reason);
  return row;
}

struct Phrase {
  int status;
  std::string_view text;
};
constexpr std::array kPhrases = {
    Phrase{100, "Continue"},
    Phrase{101, "Switching Protocols"},
    Phrase{200, "OK"},
    Phrase{201, "Created"},
    Phrase{202, "Accepted"},
    Phrase{204, "No Content"},
    Phrase{206, "Partial Content"},
    Phrase{301, "Moved Permanently"},
    Phrase{302, "Found"},
    Phrase{304, "Not Modified"},
    Phrase{307, "Temporary Redirect"},
    Phrase{308, "Permanent Redirect"},
    Phrase{400, "Bad Request"},
    Phrase{401, "Unauthorized"},
    Phrase{403, "Forbidden"},
    Phrase{404, "Not Found"},
    Phrase{405, "Method Not Allowed"},
    Phrase{406, "Not Acceptable"},
    Phrase{408, "Request Timeout"},
    Phrase{409, "Conflict"},
    Phrase{410, "Gone"},
    Phrase{411, "Length Required"},
    Phrase{412, "Precondition Failed"},
    Phrase{413, "Content Too Large"},
    Phrase{414, "URI Too Long"},
    Phrase{415, "Unsupported Media Type"},
    Phrase{417, "Expectation Failed"},
    Phrase{421, "Misdirected Request"},
    Phrase{422, "Unprocessable Content"},
    Phrase{426, "Upgrade Required"},
    Phrase{429, "Too Many Requests"},
    Phrase{431, "Request Header Fields Too Large"},
    Phrase{500, "Internal Server Error"},
    Phrase{501, "Not Implemented"},
    Phrase{502, "Bad Gateway"},
    Phrase{503, "Service Unavailable"},
    Phrase{504, "Gateway Timeout"},
    Phrase{505, "HTTP Version Not Supported"},
};

}  // namespace

int HttpStatusOf(Reason reason) { return RowOf(reason).http; }
GrpcCode GrpcCodeOf(Reason reason) { return RowOf(reason).grpc; }

Reason ReasonOfHttpStatus(int status) {
  if (status >= 100 && status < 300) return Reason::kOk;
  switch (status) {
    case 408: return Reason::kTimeout;
    case 409: return Reason::kConflict;
    case 412: return Reason::kConflict;
    case 502: return Reason::kUnavailable;
    default: break;
  }
  for (const Row& row : kRows) {
    if (row.http == status) return row.reason;
  }
  return status >= 400 && status < 500 ? Reason::kBadRequest : Reason::kInternal;
}

Reason ReasonOfGrpcCode(int code) {
  switch (static_cast<GrpcCode>(code)) {
    case GrpcCode::kResourceExhausted: return Reason::kTooManyRequests;
    case GrpcCode::kFailedPrecondition: return Reason::kConflict;
    default: break;
  }
  for (const Row& row : kRows) {
    if (static_cast<int>(row.grpc) == code) return row.reason;
  }
  return Reason::kInternal;
}

std::string_view HttpPhrase(int status) {
  for (const Phrase& phrase : kPhrases) {
    if (phrase.status == status) return phrase.text;
  }
  return {};
}

}  // namespace berth::net
