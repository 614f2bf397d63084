// SPDX-License-Identifier: Apache-2.0
// Frames of WebSocket: however bytes are cut, they are read as the same messages, and what we write
// is read as what it was. The first byte of an input chooses our role and how much comes at a time.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/check.h"
#include "net/websocket_codec.h"
#include "test/fuzz/pieces.h"
#include "test/fuzz/targets.h"

namespace berth::fuzz {
namespace {

constexpr size_t kMessageMax = 1'024;

struct Heard {
  std::vector<std::string> events;
  uint16_t error_code = 0;
  bool operator==(const Heard&) const = default;
};

Heard Listen(net::WsRole role, std::string_view bytes, size_t step) {
  net::WsDecoder decoder(role, kMessageMax);
  Heard heard;
  while (!bytes.empty()) {
    decoder.Feed(bytes.substr(0, step));
    bytes.remove_prefix(std::min(step, bytes.size()));
    for (;;) {
      const auto event = decoder.Next();
      if (!event.ok()) {
        heard.error_code = decoder.error_code();
        CHECK(heard.error_code != 0) << event.status();
        return heard;
      }
      if (!event->has_value()) break;
      CHECK((*event)->opcode != net::WsOpcode::kContinuation);
      CHECK((*event)->payload.size() <= kMessageMax);
      heard.events.push_back(std::to_string(static_cast<int>((*event)->opcode)) + " " +
                             std::to_string((*event)->close_code) + " " + (*event)->payload);
    }
  }
  return heard;
}

}  // namespace

void WebSocket(std::string_view bytes) {
  const uint8_t choice = TakeByte(bytes);
  const auto role = (choice & 1) != 0 ? net::WsRole::kClient : net::WsRole::kServer;
  const Heard whole = Listen(role, bytes, bytes.size());
  const size_t step = 1 + choice / 2U;
  CHECK(Listen(role, bytes, step) == whole) << "in pieces of " << step;

  std::string payload(bytes.substr(0, kMessageMax));
  std::optional<uint32_t> mask;
  if (role == net::WsRole::kServer) mask = 0x01020304U * choice;
  std::string frame = net::WsFrameHead(net::WsOpcode::kBinary, payload.size(), mask);
  const size_t head = frame.size();
  frame += payload;
  if (mask) net::WsMask(frame.data() + head, payload.size(), *mask);
  const Heard own = Listen(role, frame, frame.size());
  CHECK(own.error_code == 0 && own.events.size() == 1 && own.events[0] == "2 0 " + payload);
}

}  // namespace berth::fuzz
