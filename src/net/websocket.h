// SPDX-License-Identifier: Apache-2.0
// A WebSocket on a Stream, for both ends. Receive and Send may run at the same time; several Sends
// take turns.
#pragma once

#include <cstddef>
#include <string>

#include "net/http.h"
#include "net/stream.h"
#include "net/websocket_codec.h"
#include "rt/gate.h"

namespace berth::net {

class StreamWebSocket final : public WebSocket {
 public:
  // `leftover` was read from the stream behind the upgrade. The stream outlives this.
  StreamWebSocket(Stream& stream, WsRole role, size_t message_max, std::string leftover);

  // Answers pings and the peer's close by itself. Unavailable, with the peer's code and reason,
  // once it is closed; BadRequest if the peer breaks the protocol, after telling it so.
  rt::Task<Result<Message>> Receive() override;
  rt::Task<Status> Send(Message message) override;
  // Says goodbye and waits a moment for the peer to say so too. Idempotent.
  rt::Task<Status> Close(uint16_t code, std::string reason) override;

  bool closed() const { return close_sent_ || close_received_; }

 private:
  rt::Task<Status> SendFrame(WsOpcode opcode, std::string payload);
  rt::Task<Status> SendClose(uint16_t code, std::string reason);
  // The next event, reading as needed.
  rt::Task<Result<WsEvent>> NextEvent();

  Stream& stream_;
  const WsRole role_;
  WsDecoder decoder_;
  rt::Gate write_turn_{1};
  bool close_sent_ = false;
  bool close_received_ = false;
  bool receiving_ = false;
};

}  // namespace berth::net
