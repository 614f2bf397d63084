// SPDX-License-Identifier: Apache-2.0
#include "net/websocket.h"

#include <fmt/core.h>
#include <openssl/rand.h>

#include <array>
#include <utility>

#include "base/check.h"

namespace berth::net {
namespace {

// How long Close() waits for the peer's goodbye.
constexpr Duration kCloseTimeMax = Duration::Seconds(2);

// Shared by all connections of a thread: see Stream::Read.
thread_local std::array<char, 16 * 1024> scratch;

uint32_t NewMask() {
  uint32_t mask = 0;
  CHECK(RAND_bytes(reinterpret_cast<unsigned char*>(&mask), sizeof(mask)) == 1);
  return mask;
}

}  // namespace

StreamWebSocket::StreamWebSocket(Stream& stream,
                                 WsRole role,
                                 size_t message_max,
                                 std::string leftover)
    : stream_(stream), role_(role), decoder_(role, message_max) {
  decoder_.Feed(leftover);
}

rt::Task<Result<WsEvent>> StreamWebSocket::NextEvent() {
  for (;;) {
    Result<std::optional<WsEvent>> event = decoder_.Next();
    if (!event.ok()) {
      const Status told =
          co_await SendClose(decoder_.error_code(), std::string(event.status().message()));
      if (told.Is(Reason::kCancelled)) co_return told;
      close_received_ = true;
      co_return event.status();
    }
    if (event->has_value()) co_return *std::move(*event);
    CO_TRY(const size_t n, co_await stream_.Read(scratch));
    if (n == 0) {
      close_received_ = true;
      co_return Unavailable("websocket: the connection ended without a close");
    }
    decoder_.Feed({scratch.data(), n});
  }
}

rt::Task<Result<WebSocket::Message>> StreamWebSocket::Receive() {
  if (close_received_) co_return Unavailable("websocket: closed");
  CHECK(!receiving_) << "one receiver at a time";
  for (;;) {
    receiving_ = true;
    Result<WsEvent> event = co_await NextEvent();
    receiving_ = false;
    if (!event.ok()) co_return event.status();
    switch (event->opcode) {
      case WsOpcode::kText:
        co_return Message{.kind = Kind::kText, .data = std::move(event->payload)};
      case WsOpcode::kBinary:
        co_return Message{.kind = Kind::kBinary, .data = std::move(event->payload)};
      case WsOpcode::kPing:
        if (!close_sent_) {
          CO_TRY_STATUS(co_await SendFrame(WsOpcode::kPong, std::move(event->payload)));
        }
        break;
      case WsOpcode::kPong:
      case WsOpcode::kContinuation: break;
      case WsOpcode::kClose: {
        close_received_ = true;
        const uint16_t code = event->close_code;
        const Status answered = co_await SendClose(code == kWsNoCode ? kWsNormal : code, "");
        if (answered.Is(Reason::kCancelled)) co_return answered;
        co_return Unavailable(
            fmt::format("websocket: closed by the peer with {} {}", code, event->payload));
      }
    }
  }
}

rt::Task<Status> StreamWebSocket::SendFrame(WsOpcode opcode, std::string payload) {
  CO_TRY(const rt::Gate::Permit turn, co_await write_turn_.Enter());
  std::optional<uint32_t> mask;
  if (role_ == WsRole::kClient) {
    mask = NewMask();
    WsMask(payload.data(), payload.size(), *mask);
  }
  const std::string head = WsFrameHead(opcode, payload.size(), mask);
  const std::array<std::string_view, 2> parts = {head, payload};
  co_return co_await stream_.Write(parts);
}

rt::Task<Status> StreamWebSocket::Send(Message message) {
  if (closed()) co_return Unavailable("websocket: closed");
  const WsOpcode opcode = message.kind == Kind::kText ? WsOpcode::kText : WsOpcode::kBinary;
  co_return co_await SendFrame(opcode, std::move(message.data));
}

rt::Task<Status> StreamWebSocket::SendClose(uint16_t code, std::string reason) {
  if (std::exchange(close_sent_, true)) co_return OkStatus();
  co_return co_await SendFrame(WsOpcode::kClose, WsClosePayload(code, reason));
}

rt::Task<Status> StreamWebSocket::Close(uint16_t code, std::string reason) {
  CO_TRY_STATUS(co_await SendClose(code, std::move(reason)));
  // Whoever receives sees the peer's goodbye; otherwise wait for it here.
  if (close_received_ || receiving_) co_return OkStatus();
  stream_.SetReadDeadline(stream_.loop().Now() + kCloseTimeMax);
  receiving_ = true;
  Status status;
  while (!close_received_ && status.ok()) {
    Result<WsEvent> event = co_await NextEvent();
    status = event.status();
    if (event.ok() && event->opcode == WsOpcode::kClose) close_received_ = true;
  }
  receiving_ = false;
  close_received_ = true;
  stream_.SetReadDeadline(std::nullopt);
  co_return status.Is(Reason::kCancelled) ? status : OkStatus();
}

}  // namespace berth::net
