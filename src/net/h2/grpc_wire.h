// SPDX-License-Identifier: Apache-2.0
// gRPC's words on HTTP/2, apart from any connection: header fields of calls and answers, time
// limits, statuses, and messages behind their length. What comes in is judged here and nowhere
// else.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"
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

// The head of a call that came in.
struct GrpcRequest {
  std::string method;
  std::map<std::string, std::string, std::less<>> metadata;  // values of -bin fields decoded
  std::optional<Duration> timeout;
};
Result<GrpcRequest> ParseGrpcRequest(const H2Fields& fields);
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

// What in front of a message says how long it is.
inline constexpr size_t kMessagePrefixBytes = 5;
std::string MessagePrefix(size_t bytes);

// Cuts incoming bytes into messages.
class MessageAssembler {
 public:
  explicit MessageAssembler(size_t message_bytes_max) : message_bytes_max_(message_bytes_max) {}

  // Appends the messages that `bytes` complete. An error is final: RequestTooLarge, or
  // MethodNotSupported for a compressed message.
  Status Feed(std::string_view bytes, std::list<std::string>* messages);
  // Also judges the message in progress.
  Status SetLimit(size_t message_bytes_max);
  // Of the message in progress.
  size_t held_bytes() const { return prefix_.size() + message_.size(); }
  bool is_between_messages() const { return held_bytes() == 0; }

 private:
  Status ReadPrefix();
  Status CheckSize(size_t bytes) const;

  size_t message_bytes_max_;
  std::string prefix_;  // shorter than kMessagePrefixBytes until the message's length is known
  std::string message_;
  size_t missing_ = 0;
};

}  // namespace berth::net
