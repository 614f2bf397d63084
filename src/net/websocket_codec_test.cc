// SPDX-License-Identifier: Apache-2.0
// The codec against the RFC: what it takes, what it refuses and with which code, and that no input
// however cut or twisted breaks it.
#include "net/websocket_codec.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/random.h"

namespace berth::net {
namespace {

using std::string_literals::operator""s;

constexpr uint32_t kKey = 0x04030201;  // in a frame: 01 02 03 04

std::string Masked(WsOpcode opcode, std::string payload) {
  const std::string head = WsFrameHead(opcode, payload.size(), kKey);
  WsMask(payload.data(), payload.size(), kKey);
  return head + payload;
}

std::string Unmasked(WsOpcode opcode, const std::string& payload) {
  return WsFrameHead(opcode, payload.size(), std::nullopt) + payload;
}

// All events in `bytes`, or the error with its close code.
struct Decoded {
  std::vector<WsEvent> events;
  Status error;
  uint16_t code = 0;
};
Decoded Decode(WsRole role, std::string_view bytes, size_t step, size_t max = 100'000) {
  WsDecoder decoder(role, max);
  Decoded decoded;
  for (size_t at = 0; at < bytes.size() && decoded.error.ok(); at += step) {
    decoder.Feed(bytes.substr(at, step));
    for (;;) {
      Result<std::optional<WsEvent>> event = decoder.Next();
      if (!event.ok()) {
        decoded.error = event.status();
        decoded.code = decoder.error_code();
        break;
      }
      if (!event->has_value()) break;
      decoded.events.push_back(*std::move(*event));
    }
  }
  return decoded;
}

TEST(WsCodec, ReadsTheExamplesOfTheRfc) {
  struct Case {
    WsRole role;
    std::string bytes;
    WsOpcode opcode;
    std::string payload;
  };
  const std::vector<Case> cases = {
      {WsRole::kClient, "\x81\x05Hello", WsOpcode::kText, "Hello"},
      {WsRole::kServer, "\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58"s, WsOpcode::kText, "Hello"},
      {WsRole::kClient, "\x01\x03Hel\x80\x02lo"s, WsOpcode::kText, "Hello"},
      {WsRole::kClient, "\x89\x05Hello", WsOpcode::kPing, "Hello"},
      {WsRole::kServer, "\x8a\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58"s, WsOpcode::kPong, "Hello"},
      {WsRole::kClient,
       "\x82\x7e\x01\x00"s + std::string(256, 'b'),
       WsOpcode::kBinary,
       std::string(256, 'b')},
      {WsRole::kClient,
       "\x82\x7f\x00\x00\x00\x00\x00\x01\x00\x00"s + std::string(65'536, 'b'),
       WsOpcode::kBinary,
       std::string(65'536, 'b')},
  };
  for (const Case& test : cases) {
    for (const size_t step : {size_t{1}, size_t{3}, size_t{1'000'000}}) {
      const Decoded decoded = Decode(test.role, test.bytes, step);
      ASSERT_TRUE(decoded.error.ok()) << decoded.error;
      ASSERT_EQ(decoded.events.size(), 1U);
      EXPECT_EQ(decoded.events[0].opcode, test.opcode);
      EXPECT_EQ(decoded.events[0].payload, test.payload);
    }
  }
  EXPECT_EQ(WsAccept("dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
}

TEST(WsCodec, WritesWhatItReads) {
  for (const size_t size : {0U, 1U, 125U, 126U, 127U, 65'535U, 65'536U, 99'999U}) {
    const std::string payload(size, 'p');
    const Decoded masked = Decode(WsRole::kServer, Masked(WsOpcode::kBinary, payload), 4096);
    ASSERT_EQ(masked.events.size(), 1U) << size << ": " << masked.error;
    EXPECT_EQ(masked.events[0].payload, payload);
    const Decoded plain = Decode(WsRole::kClient, Unmasked(WsOpcode::kBinary, payload), 4096);
    ASSERT_EQ(plain.events.size(), 1U) << size << ": " << plain.error;
    EXPECT_EQ(plain.events[0].payload, payload);
  }
}

TEST(WsCodec, GivesControlFramesBetweenFragments) {
  const std::string bytes = "\x01\x03Hel"s + "\x89\x01p" + "\x80\x02lo" +
                            Unmasked(WsOpcode::kClose, WsClosePayload(1001, "bye"));
  const Decoded decoded = Decode(WsRole::kClient, bytes, 1);
  ASSERT_EQ(decoded.events.size(), 3U) << decoded.error;
  EXPECT_EQ(decoded.events[0].opcode, WsOpcode::kPing);
  EXPECT_EQ(decoded.events[1].payload, "Hello");
  EXPECT_EQ(decoded.events[2].close_code, 1001);
  EXPECT_EQ(decoded.events[2].payload, "bye");
}

TEST(WsCodec, RefusesWhatTheRfcForbids) {
  struct Case {
    const char* name;
    WsRole role;
    std::string bytes;
    uint16_t code;
  };
  const std::vector<Case> cases = {
      {"unmasked to a server", WsRole::kServer, "\x81\x05Hello", kWsProtocolError},
      {"masked to a client", WsRole::kClient, Masked(WsOpcode::kText, "x"), kWsProtocolError},
      {"a reserved bit", WsRole::kClient, "\xc1\x01x", kWsProtocolError},
      {"opcode 3", WsRole::kClient, "\x83\x01x", kWsProtocolError},
      {"opcode 11", WsRole::kClient, "\x8b\x01x", kWsProtocolError},
      {"a fragmented ping", WsRole::kClient, "\x09\x01x", kWsProtocolError},
      {"a long ping", WsRole::kClient, "\x89\x7e\x00\x7e"s, kWsProtocolError},
      {"a continuation of nothing", WsRole::kClient, "\x80\x01x", kWsProtocolError},
      {"a message inside another", WsRole::kClient, "\x01\x01x\x81\x01y", kWsProtocolError},
      {"a length of 2 bytes for 5", WsRole::kClient, "\x81\x7e\x00\x05Hello"s, kWsProtocolError},
      {"a length of 8 bytes for 5",
       WsRole::kClient,
       "\x81\x7f\x00\x00\x00\x00\x00\x00\x00\x05Hello"s,
       kWsProtocolError},
      {"a length beyond all memory",
       WsRole::kClient,
       "\x82\x7f\xff\xff\xff\xff\xff\xff\xff\xff"s,
       kWsTooBig},
      {"too big at once",
       WsRole::kClient,
       Unmasked(WsOpcode::kBinary, std::string(101, 'x')),
       kWsTooBig},
      {"too big in fragments",
       WsRole::kClient,
       "\x02\x50"s + std::string(80, 'x') + "\x80\x50" + std::string(80, 'x'),
       kWsTooBig},
      {"text that is none", WsRole::kClient, "\x81\x02\xc3\x28", kWsInvalidData},
      {"half a close code", WsRole::kClient, "\x88\x01\x03", kWsProtocolError},
      {"close code 1005", WsRole::kClient, "\x88\x02\x03\xed", kWsProtocolError},
      {"close code 999", WsRole::kClient, "\x88\x02\x03\xe7", kWsProtocolError},
      {"close code 5000", WsRole::kClient, "\x88\x02\x13\x88", kWsProtocolError},
      {"a close reason that is no text", WsRole::kClient, "\x88\x03\x03\xe8\xff", kWsInvalidData},
  };
  for (const Case& test : cases) {
    SCOPED_TRACE(test.name);
    for (const size_t step : {size_t{1}, size_t{1'000}}) {
      const Decoded decoded = Decode(test.role, test.bytes, step, 100);
      EXPECT_FALSE(decoded.error.ok());
      EXPECT_EQ(decoded.code, test.code);
      EXPECT_TRUE(decoded.events.empty());
    }
  }
}

TEST(WsCodec, GivesNothingMoreAfterAnError) {
  WsDecoder decoder(WsRole::kClient, 100);
  decoder.Feed("\x83\x01x");
  EXPECT_FALSE(decoder.Next().ok());
  decoder.Feed(Unmasked(WsOpcode::kText, "fine"));
  EXPECT_FALSE(decoder.Next().ok());
}

TEST(WsCodec, CutsACloseReasonBetweenCharacters) {
  std::string reason;
  for (int i = 0; i < 100; ++i) reason += "\xc3\xa9";  // 200 bytes
  const Decoded decoded =
      Decode(WsRole::kClient, Unmasked(WsOpcode::kClose, WsClosePayload(1000, reason)), 1000);
  ASSERT_EQ(decoded.events.size(), 1U) << decoded.error;
  EXPECT_EQ(decoded.events[0].payload.size(), 122U);
  EXPECT_EQ(WsClosePayload(kWsNoCode, "x"), "") << "1005 is never sent";
}

TEST(WsCodec, SurvivesNoise) {
  for (uint64_t seed = 0; seed < 2'000; ++seed) {
    Random random(seed);
    std::string bytes;
    // Frames that are nearly right get further into the decoder than pure noise.
    for (int frame = 0; frame < 4; ++frame) {
      std::string one =
          Masked(static_cast<WsOpcode>(random.Below(16)), std::string(random.Below(200), 'x'));
      for (uint64_t flips = random.Below(3); flips > 0; --flips) {
        one[random.Below(one.size())] = static_cast<char>(random.Next());
      }
      bytes += one;
    }
    const size_t step = 1 + random.Below(50);
    const Decoded decoded = Decode(WsRole::kServer, bytes, step, 1'000);
    const Decoded whole = Decode(WsRole::kServer, bytes, bytes.size(), 1'000);
    EXPECT_EQ(decoded.events.size(), whole.events.size()) << "seed " << seed;
    EXPECT_EQ(decoded.code, whole.code) << "seed " << seed;
  }
}

}  // namespace
}  // namespace berth::net
