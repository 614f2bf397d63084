// SPDX-License-Identifier: Apache-2.0
// The frames of RFC 6455, without any I/O.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace berth::net {

enum class WsRole : uint8_t { kServer, kClient };

enum class WsOpcode : uint8_t {
  kContinuation = 0,
  kText = 1,
  kBinary = 2,
  kClose = 8,
  kPing = 9,
  kPong = 10,
};

inline constexpr uint16_t kWsNormal = 1000;
inline constexpr uint16_t kWsGoingAway = 1001;
inline constexpr uint16_t kWsProtocolError = 1002;
inline constexpr uint16_t kWsNoCode = 1005;  // never sent: the close frame was empty
inline constexpr uint16_t kWsInvalidData = 1007;
inline constexpr uint16_t kWsTooBig = 1009;
inline constexpr uint16_t kWsInternalError = 1011;

// A whole message, or a control frame.
struct WsEvent {
  WsOpcode opcode = WsOpcode::kBinary;  // never kContinuation
  std::string payload;                  // of a close: its reason
  uint16_t close_code = 0;              // of a close
};

// Takes bytes as they arrive and gives messages, put together from their fragments, and control
// frames in between. What the peer must not send is an error, after which nothing more is given.
class WsDecoder {
 public:
  // `role` is ours: a server wants masked frames, a client unmasked ones.
  WsDecoder(WsRole role, size_t message_max) : role_(role), message_max_(message_max) {}

  void Feed(std::string_view bytes) { buffer_.append(bytes); }
  // The next event, or nullopt if more bytes are needed.
  Result<std::optional<WsEvent>> Next();
  // After an error: the code to close with.
  uint16_t error_code() const { return error_code_; }

 private:
  struct Head;
  Status Fail(uint16_t code, std::string message);
  Result<std::optional<Head>> ReadHead();
  Status CheckHead(const Head& head);
  Result<std::optional<WsEvent>> Control(WsOpcode opcode, std::string payload);

  const WsRole role_;
  const size_t message_max_;
  std::string buffer_;
  std::optional<WsOpcode> fragmented_;  // what the fragments so far belong to
  std::string message_;
  uint16_t error_code_ = 0;
};

// The head of a final frame with `size` bytes of payload; `mask` for clients.
std::string WsFrameHead(WsOpcode opcode, uint64_t size, std::optional<uint32_t> mask);
// Masks or unmasks in place; the key as it stands in the frame, first byte first.
void WsMask(char* data, size_t size, uint32_t key);
// The payload of a close frame. The reason is cut to what fits.
std::string WsClosePayload(uint16_t code, std::string_view reason);
// Sec-WebSocket-Accept for a Sec-WebSocket-Key.
std::string WsAccept(std::string_view key);
// A key is 16 bytes in base64.
bool IsWsKey(std::string_view key);

}  // namespace berth::net
