// SPDX-License-Identifier: Apache-2.0
// gRPC's words: what we say is what others read, and what others say is judged before it is used.
#include "net/h2/grpc_wire.h"

#include <gtest/gtest.h>

#include <string>

#include "base/strings.h"
#include "net/h2/flood_guard.h"

namespace berth::net {
namespace {

TEST(GrpcWire, TimeoutsHaveAtMostEightDigitsAndAreNeverShorter) {
  const struct {
    Duration timeout;
    const char* text;
  } kCases[] = {
      {Duration::Nanos(1), "1n"},
      {Duration::Nanos(99'999'999), "99999999n"},
      {Duration::Nanos(100'000'001), "100001u"},
      {Duration::Seconds(100), "100000m"},
      {Duration::Hours(48), "172800S"},
      {Duration::Nanos(-5), "1n"},
      {Duration(), "1n"},
  };
  for (const auto& test : kCases) {
    EXPECT_EQ(FormatGrpcTimeout(test.timeout), test.text);
    EXPECT_GE(*ParseGrpcTimeout(test.text), test.timeout) << test.text;
  }
}

TEST(GrpcWire, OddTimeoutsAreRefused) {
  for (const char* text : {"", "5", "m", "-1m", "123456789m", "1x", "1 m", "0x1m", "+1S"}) {
    EXPECT_EQ(ParseGrpcTimeout(text), std::nullopt) << text;
  }
  EXPECT_EQ(ParseGrpcTimeout("99999999H"), Duration::Hours(24 * 365)) << "bounded, no overflow";
}

TEST(GrpcWire, MessagesSurviveAnyBytes) {
  std::string all;
  for (int i = 0; i < 256; ++i) all += static_cast<char>(i);
  EXPECT_EQ(DecodeGrpcMessage(EncodeGrpcMessage(all)), all);
  EXPECT_EQ(EncodeGrpcMessage("100 % \xc3\xa9\n"), "100 %25 %C3%A9%0A");
  EXPECT_EQ(DecodeGrpcMessage("50% %4 %zz %41"), "50% %4 %zz A") << "a stray percent stays";
}

TEST(GrpcWire, AStatusCrossesWithAllItSays) {
  const Status rich =
      Status(Reason::kForbidden,
             "machine a/b: no",
             {{.kind = CauseKind::kTooMany, .field = "spec.x[1]", .message = "5 > 4"}})
          .WithObject({.group = "g", .kind = "k", .name = "n", .uid = "u"})
          .WithRetryAfter(Duration::Millis(1'500));
  EXPECT_EQ(StatusOfTrailers(GrpcTrailers(rich)), rich);
  EXPECT_EQ(StatusOfTrailers(GrpcTrailers(OkStatus())), OkStatus());
  for (int i = 1; i <= static_cast<int>(Reason::kUnavailable); ++i) {
    const Status status(static_cast<Reason>(i), "why");
    const Status back = StatusOfTrailers(GrpcTrailers(status));
    if (status.Is(Reason::kCancelled)) {
      EXPECT_EQ(back.reason(), Reason::kUnavailable) << "Cancelled means our own doing";
    } else {
      EXPECT_EQ(back, status);
    }
  }
}

TEST(GrpcWire, TrailersStaySmall) {
  std::vector<Cause> causes(1'000, {.field = "spec.something", .message = std::string(90, 'm')});
  const Status huge(Reason::kInvalid, std::string(100'000, '\n'), std::move(causes));
  size_t cost = 0;
  for (const H2Field& field : GrpcTrailers(huge)) cost += FieldCost(field.name, field.value);
  EXPECT_LT(cost, 8'000U);
  const Status back = StatusOfTrailers(GrpcTrailers(huge));
  EXPECT_EQ(back.reason(), Reason::kInvalid);
  EXPECT_GT(back.causes().size(), 10U);
}

TEST(GrpcWire, AForeignServersTrailersAreEnough) {
  EXPECT_EQ(StatusOfTrailers({{"grpc-status", "5"}, {"grpc-message", "no%20way"}}),
            NotFound("no way"));
  EXPECT_EQ(StatusOfTrailers({{"grpc-status", "999999999999"}}).reason(), Reason::kInternal);
  EXPECT_EQ(StatusOfTrailers({{"grpc-status", "x"}}).reason(), Reason::kUnavailable);
  EXPECT_EQ(StatusOfTrailers({}).reason(), Reason::kUnavailable);
}

TEST(GrpcWire, ADetailThatContradictsItsCodeOrIsBrokenIsIgnored) {
  const std::string right =
      "1:1"
      "8:NotFound"
      "0:"
      "0:"
      "0:"
      "0:"
      "0:";
  for (const std::string& detail : {right,
                                    std::string("1:1"),
                                    std::string("99999999999999999999:x"),
                                    std::string("-1:x"),
                                    right + "5:Field",
                                    std::string("\xff\xfe")}) {
    const Status status = StatusOfTrailers(
        {{"grpc-status", "7"}, {"grpc-message", "no"}, {"berth-status-bin", Base64Encode(detail)}});
    EXPECT_EQ(status, Forbidden("no")) << detail;
  }
}

H2Fields Call(H2Fields more) {
  H2Fields fields = {{":method", "POST"},
                     {":scheme", "https"},
                     {":path", "/a/B"},
                     {"content-type", "application/grpc+proto"}};
  fields.insert(fields.end(), more.begin(), more.end());
  return fields;
}

TEST(GrpcWire, ACallIsReadFromItsFields) {
  const auto head = ParseGrpcRequest(Call({{"te", "trailers"},
                                           {"user-agent", "grpc-c++/1.51"},
                                           {"grpc-timeout", "2S"},
                                           {"grpc-accept-encoding", "gzip"},
                                           {"word", "one"},
                                           {"word", "two"},
                                           {"raw-bin", "AP8"}}));
  ASSERT_TRUE(head.ok()) << head.status();
  EXPECT_EQ(head->method, "/a/B");
  EXPECT_EQ(head->timeout, Duration::Seconds(2));
  EXPECT_EQ(head->metadata.size(), 2U);
  EXPECT_EQ(head->metadata.at("word"), "one,two");
  EXPECT_EQ(head->metadata.at("raw-bin"), std::string("\x00\xff", 2));
}

TEST(GrpcWire, WhatIsNoCallIsRefused) {
  const struct {
    H2Fields fields;
    Reason reason;
  } kCases[] = {
      {{}, Reason::kBadRequest},
      {{{":method", "GET"}, {":path", "/"}}, Reason::kBadRequest},
      {{{":method", "POST"}, {":path", "/"}, {"content-type", "text/html"}},
       Reason::kUnsupportedMediaType},
      {{{":method", "POST"}, {":path", "/"}, {"content-type", "application/grpcish"}},
       Reason::kUnsupportedMediaType},
      {Call({{"grpc-timeout", "soon"}}), Reason::kBadRequest},
      {Call({{"grpc-encoding", "gzip"}}), Reason::kMethodNotSupported},
      {Call({{"raw-bin", "!"}}), Reason::kBadRequest},
  };
  for (const auto& test : kCases) {
    EXPECT_EQ(ParseGrpcRequest(test.fields).status().reason(), test.reason);
  }
}

TEST(GrpcWire, MetadataThatCannotBeAFieldIsRefusedBeforeItIsSent) {
  for (const auto& [name, value] : {std::pair("grpc-status", "0"),
                                    std::pair(":path", "/"),
                                    std::pair("Upper", "x"),
                                    std::pair("", "x"),
                                    std::pair("a b", "x"),
                                    std::pair("line", "x\r\ny")}) {
    RpcOptions options;
    options.metadata[name] = value;
    EXPECT_EQ(FormatGrpcRequest("h", "/m", options).status().reason(), Reason::kBadRequest) << name;
  }
}

TEST(FloodGuard, WorkEarnsWhatPingsSpend) {
  FloodGuard guard(10, 5, Time());
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(guard.Spend(Time()));
  EXPECT_FALSE(guard.Spend(Time()));
  guard.Earn(3);
  EXPECT_TRUE(guard.Spend(Time()));
  EXPECT_TRUE(guard.Spend(Time()));
  EXPECT_FALSE(guard.Spend(Time()));
  EXPECT_TRUE(guard.Spend(Time() + Duration::Seconds(1)));
  guard.Earn(1'000'000);
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(guard.Spend(Time() + Duration::Seconds(1)));
  EXPECT_FALSE(guard.Spend(Time() + Duration::Seconds(1))) << "never more than the burst";
}

}  // namespace
}  // namespace berth::net
