// SPDX-License-Identifier: Apache-2.0
#include "net/websocket_codec.h"

#include <fmt/core.h>
#include <openssl/sha.h>

#include <array>
#include <cstring>
#include <utility>

#include "base/strings.h"

namespace berth::net {
namespace {

constexpr size_t kControlMax = 125;
constexpr std::string_view kAcceptSalt = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

bool IsControl(WsOpcode opcode) { return static_cast<uint8_t>(opcode) >= 8; }

bool IsKnown(uint8_t opcode) { return opcode <= 2 || (opcode >= 8 && opcode <= 10); }

// Codes that may stand in a close frame.
bool IsSendable(uint16_t code) {
  if (code >= 3000 && code <= 4999) return true;
  return code >= 1000 && code <= 1014 && code != 1004 && code != 1005 && code != 1006;
}

uint64_t BigEndian(std::string_view bytes) {
  uint64_t value = 0;
  for (const char c : bytes) value = value << 8 | static_cast<uint8_t>(c);
  return value;
}

}  // namespace

struct WsDecoder::Head {
  WsOpcode opcode = WsOpcode::kContinuation;
  bool final = true;
  bool masked = false;
  uint32_t mask = 0;
  uint64_t size = 0;
  size_t head_size = 0;
};

Status WsDecoder::Fail(uint16_t code, std::string message) {
  error_code_ = code;
  buffer_.clear();
  return BadRequest("websocket: " + std::move(message));
}

Result<std::optional<WsDecoder::Head>> WsDecoder::ReadHead() {
  if (buffer_.size() < 2) return std::optional<Head>();
  const auto first = static_cast<uint8_t>(buffer_[0]);
  const auto second = static_cast<uint8_t>(buffer_[1]);
  if ((first & 0x70) != 0) return Fail(kWsProtocolError, "a reserved bit is set");
  if (!IsKnown(first & 0x0f)) {
    return Fail(kWsProtocolError, fmt::format("opcode {} is unknown", first & 0x0f));
  }
  Head head;
  head.final = (first & 0x80) != 0;
  head.opcode = static_cast<WsOpcode>(first & 0x0f);
  head.masked = (second & 0x80) != 0;
  head.size = second & 0x7f;
  // Everything that the first two bytes can tell is judged before the peer may send more.
  if (head.masked != (role_ == WsRole::kServer)) {
    return Fail(kWsProtocolError,
                head.masked ? "a server must not mask" : "a client must mask its frames");
  }
  const size_t length_size = head.size < 126 ? 0 : head.size == 126 ? 2 : 8;
  if (IsControl(head.opcode) && (length_size != 0 || !head.final)) {
    return Fail(kWsProtocolError, "a control frame is whole and has at most 125 bytes");
  }
  head.head_size = 2 + length_size + (head.masked ? 4 : 0);
  if (buffer_.size() < head.head_size) return std::optional<Head>();
  const std::string_view bytes = buffer_;
  if (length_size != 0) {
    head.size = BigEndian(bytes.substr(2, length_size));
    if (head.size < (length_size == 2 ? 126U : 65'536U)) {
      return Fail(kWsProtocolError, "a length is not in its shortest form");
    }
  }
  if (head.masked) std::memcpy(&head.mask, buffer_.data() + 2 + length_size, 4);
  TRY_STATUS(CheckHead(head));
  return std::optional<Head>(head);
}

Status WsDecoder::CheckHead(const Head& head) {
  if (IsControl(head.opcode)) return OkStatus();
  const bool continues = head.opcode == WsOpcode::kContinuation;
  if (continues && !fragmented_.has_value()) {
    return Fail(kWsProtocolError, "a continuation of nothing");
  }
  if (!continues && fragmented_.has_value()) {
    return Fail(kWsProtocolError, "a new message inside a fragmented one");
  }
  if (head.size > message_max_ || message_.size() + head.size > message_max_) {
    return Fail(kWsTooBig, fmt::format("a message has more than {} bytes", message_max_));
  }
  return OkStatus();
}

Result<std::optional<WsEvent>> WsDecoder::Next() {
  if (error_code_ != 0) return BadRequest("websocket: the peer broke the protocol before");
  for (;;) {
    TRY(const std::optional<Head> head, ReadHead());
    if (!head.has_value() || buffer_.size() - head->head_size < head->size) {
      return std::optional<WsEvent>();
    }
    std::string payload = buffer_.substr(head->head_size, head->size);
    buffer_.erase(0, head->head_size + head->size);
    if (head->masked) WsMask(payload.data(), payload.size(), head->mask);
    if (IsControl(head->opcode)) return Control(head->opcode, std::move(payload));
    if (message_.empty()) {
      message_ = std::move(payload);
    } else {
      message_ += payload;
    }
    const WsOpcode opcode = fragmented_.value_or(head->opcode);
    if (!head->final) {
      fragmented_ = opcode;
      continue;
    }
    fragmented_.reset();
    WsEvent event{.opcode = opcode, .payload = std::exchange(message_, {})};
    if (opcode == WsOpcode::kText && !IsValidUtf8(event.payload)) {
      return Fail(kWsInvalidData, "a text message is not UTF-8");
    }
    return std::optional<WsEvent>(std::move(event));
  }
}

Result<std::optional<WsEvent>> WsDecoder::Control(WsOpcode opcode, std::string payload) {
  WsEvent event{.opcode = opcode, .payload = std::move(payload)};
  if (opcode == WsOpcode::kClose) {
    if (event.payload.size() == 1) return Fail(kWsProtocolError, "half a close code");
    event.close_code = kWsNoCode;
    if (event.payload.size() >= 2) {
      event.close_code =
          static_cast<uint16_t>(BigEndian(std::string_view(event.payload).substr(0, 2)));
      event.payload.erase(0, 2);
      if (!IsSendable(event.close_code)) {
        return Fail(kWsProtocolError, fmt::format("close code {} is not one", event.close_code));
      }
      if (!IsValidUtf8(event.payload)) return Fail(kWsInvalidData, "a close reason is not UTF-8");
    }
  }
  return std::optional<WsEvent>(std::move(event));
}

std::string WsFrameHead(WsOpcode opcode, uint64_t size, std::optional<uint32_t> mask) {
  std::string head;
  head += static_cast<char>(0x80 | static_cast<uint8_t>(opcode));
  const uint8_t mask_bit = mask.has_value() ? 0x80 : 0;
  int length_bytes = 0;
  if (size < 126) {
    head += static_cast<char>(mask_bit | static_cast<uint8_t>(size));
  } else if (size < 65'536) {
    head += static_cast<char>(mask_bit | 126);
    length_bytes = 2;
  } else {
    head += static_cast<char>(mask_bit | 127);
    length_bytes = 8;
  }
  for (int i = length_bytes - 1; i >= 0; --i) head += static_cast<char>(size >> (8 * i));
  if (mask.has_value()) head.append(reinterpret_cast<const char*>(&*mask), 4);
  return head;
}

void WsMask(char* data, size_t size, uint32_t key) {
  std::array<char, 4> bytes{};
  std::memcpy(bytes.data(), &key, 4);
  for (size_t i = 0; i < size; ++i) data[i] = static_cast<char>(data[i] ^ bytes[i & 3]);
}

std::string WsClosePayload(uint16_t code, std::string_view reason) {
  std::string payload;
  if (!IsSendable(code)) return payload;
  payload += static_cast<char>(code >> 8);
  payload += static_cast<char>(code & 0xff);
  reason = reason.substr(0, kControlMax - 2);
  // Never half a character: the peer checks.
  while (!IsValidUtf8(reason) && !reason.empty()) reason.remove_suffix(1);
  payload += reason;
  return payload;
}

std::string WsAccept(std::string_view key) {
  const std::string salted = std::string(key) + std::string(kAcceptSalt);
  std::array<unsigned char, SHA_DIGEST_LENGTH> digest{};
  SHA1(reinterpret_cast<const unsigned char*>(salted.data()), salted.size(), digest.data());
  return Base64Encode({reinterpret_cast<const char*>(digest.data()), digest.size()});
}

bool IsWsKey(std::string_view key) {
  const auto decoded = Base64Decode(key);
  return decoded.has_value() && decoded->size() == 16;
}

}  // namespace berth::net
