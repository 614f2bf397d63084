// SPDX-License-Identifier: Apache-2.0
// gRPC's words on HTTP/2, apart from any connection: header fields of calls and answers, time
// limits and statuses. What comes in is judged here and nowhere else.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "net/call/call_service.h"
#include "net/rpc.h"

namespace berth::net {

struct H2Field {
  std::string name;  // lower case
  std::string value;
};
using H2Fields = std::vector<H2Field>;

// How much a field counts towards the limit of a header list (RFC 9113 §6.5.2).
constexpr size_t FieldCost(std::string_view name, std::string_view value) {
  return name.size() + value.size() + 32;
}

// The head of a call that came in; values of -bin fields are decoded.
Result<CallHead> ParseGrpcRequest(const H2Fields& fields);
// BadRequest for a name or value that cannot be a header field.
Result<H2Fields> FormatGrpcRequest(const std::string& authority,
                                   const std::string& method,
                                   const RpcOptions& options);

H2Fields GrpcResponseHead();
// Ends a call. After GrpcResponseHead(), or with it if nothing was answered.
H2Fields GrpcTrailers(const Status& status);

// Whether the head of an answer begins one. An answer that ends with its head has trailers instead.
Status CheckGrpcResponse(const H2Fields& fields);
// What the trailers say. Unavailable if they do not; a reason is never Cancelled, which means our
// own doing.
Status StatusOfTrailers(const H2Fields& fields);

// "250m": at most eight digits and a unit. Rounded up, never 0.
std::string FormatGrpcTimeout(Duration timeout);
std::optional<Duration> ParseGrpcTimeout(std::string_view text);

// RFC 3986's way to carry UTF-8 in a header field, as gRPC wants it for grpc-message.
std::string EncodeGrpcMessage(std::string_view text);
std::string DecodeGrpcMessage(std::string_view text);

}  // namespace berth::net
