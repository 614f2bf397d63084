// SPDX-License-Identifier: Apache-2.0
// The parser gives the same message however the bytes are cut, and survives noise. What it refuses
// is in http_server_test.cc.
#include "net/http1_parser.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/random.h"

namespace berth::net {
namespace {

struct Parsed {
  Status error;
  int error_status = 0;
  bool done = false;
  std::string target;
  std::string body;
  size_t fields = 0;
  size_t used = 0;
};

// Feeds `bytes` in pieces, as a connection does.
Parsed Parse(Http1Parser::Kind kind, std::string_view bytes, Random& random, size_t piece_max) {
  Http1Parser parser(kind, {.header_bytes = 1'000, .body_bytes = 1'000});
  Parsed parsed;
  std::string inbox;
  size_t at = 0;
  while (parsed.error.ok() && !parser.done()) {
    const Result<size_t> taken = parser.Feed(inbox);
    if (!taken.ok()) {
      parsed.error = taken.status();
      parsed.error_status = parser.error_status();
      break;
    }
    inbox.erase(0, *taken);
    parsed.used += *taken;
    if (*taken > 0) continue;
    if (at == bytes.size()) break;
    const size_t piece = std::min(bytes.size() - at, 1 + random.Below(piece_max));
    inbox.append(bytes.substr(at, piece));
    at += piece;
  }
  parsed.done = parser.done();
  if (parser.head_done()) {
    parsed.target = parser.head().target;
    parsed.fields = parser.head().headers.all().size();
  }
  parsed.body = parser.body();
  return parsed;
}

TEST(Http1Parser, DoesNotDependOnHowBytesAreCut) {
  const std::vector<std::string> messages = {
      "GET /a HTTP/1.1\r\nHost: a\r\nX: 1\r\n\r\n",
      "POST /b HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello",
      "POST /c HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
      "3\r\nhel\r\n2;x=\"y\"\r\nlo\r\n0\r\nTrailer: z\r\n\r\n",
      "POST /d HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
  };
  for (const std::string& message : messages) {
    for (uint64_t seed = 0; seed < 100; ++seed) {
      Random random(seed);
      const Parsed parsed =
          Parse(Http1Parser::Kind::kRequest, message + "GET /next", random, 1 + seed);
      ASSERT_TRUE(parsed.error.ok()) << parsed.error;
      EXPECT_TRUE(parsed.done);
      EXPECT_EQ(parsed.used, message.size()) << "what follows belongs to the next request";
      EXPECT_EQ(parsed.body, message.contains("lo") ? "hello" : "");
      EXPECT_EQ(parsed.target, message.substr(message.find('/'), 2));
    }
  }
}

TEST(Http1Parser, SurvivesNoise) {
  const std::vector<std::string> seeds = {
      "GET /a?b=c HTTP/1.1\r\nHost: a\r\nConnection: close, x\r\nAccept: */*\r\n\r\n",
      "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 12\r\nExpect: 100-continue\r\n\r\nhello, "
      "there",
      "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
      "c\r\nhello, there\r\n0\r\nA: b\r\n\r\n",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
      "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n",
  };
  constexpr std::string_view kBytes = "\r\n: ;,\t09afAF\x01\x80\"\\GET/HTTP";
  for (uint64_t seed = 0; seed < 20'000; ++seed) {
    Random random(seed);
    std::string bytes = seeds[random.Below(seeds.size())];
    for (uint64_t changes = 1 + random.Below(4); changes > 0; --changes) {
      const size_t at = random.Below(bytes.size());
      switch (random.Below(3)) {
        case 0: bytes[at] = kBytes[random.Below(kBytes.size())]; break;
        case 1: bytes.insert(at, 1, kBytes[random.Below(kBytes.size())]); break;
        default: bytes.erase(at, 1 + random.Below(3));
      }
    }
    const auto kind =
        bytes.starts_with("HTTP") ? Http1Parser::Kind::kResponse : Http1Parser::Kind::kRequest;
    const Parsed whole = Parse(kind, bytes, random, bytes.size());
    const Parsed cut = Parse(kind, bytes, random, 5);
    EXPECT_EQ(cut.done, whole.done) << seed;
    EXPECT_EQ(cut.error.ok(), whole.error.ok()) << seed << cut.error << whole.error;
    if (whole.done) {
      EXPECT_EQ(cut.body, whole.body) << seed;
      EXPECT_EQ(cut.target, whole.target) << seed;
      EXPECT_EQ(cut.used, whole.used) << seed;
    }
    if (!whole.error.ok()) EXPECT_NE(whole.error_status, 0) << seed;
  }
}

TEST(Http1Parser, FindsTokensInLists) {
  EXPECT_TRUE(HasToken("keep-alive, Upgrade", "upgrade"));
  EXPECT_TRUE(HasToken("upgrade", "upgrade"));
  EXPECT_FALSE(HasToken("upgraded", "upgrade"));
  EXPECT_FALSE(HasToken("", "upgrade"));
}

}  // namespace
}  // namespace berth::net
