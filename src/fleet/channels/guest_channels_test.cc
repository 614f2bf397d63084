// SPDX-License-Identifier: Apache-2.0
// Defends that Kubernetes' clients understand us: which byte is which channel, how an exit status
// is said, and that a client writes only where it may.
#include "fleet/channels/guest_channels.h"

#include <gtest/gtest.h>

#include <string>

#include "meta/json.h"
#include "meta/value.h"

namespace berth::fleet {
namespace {

using Channel = TunnelFrame::Channel;

std::string Bytes(std::initializer_list<int> values, std::string_view text = "") {
  std::string out;
  for (const int value : values) out.push_back(static_cast<char>(value));
  return out.append(text);
}

TEST(GuestChannels, TheNewestProtocolThatBothSpeakIsChosen) {
  struct Case {
    std::string offered;
    std::string chosen;
  };
  for (const Case& c : {Case{"", ""},
                        Case{"v4.channel.k8s.io", "v4.channel.k8s.io"},
                        Case{"v4.channel.k8s.io, v5.channel.k8s.io", "v5.channel.k8s.io"},
                        Case{"x,v4.channel.k8s.io", "v4.channel.k8s.io"}}) {
    const auto chosen = ChooseChannels(c.offered);
    ASSERT_TRUE(chosen.ok()) << c.offered;
    EXPECT_EQ(*chosen, c.chosen) << c.offered;
  }
  EXPECT_EQ(ChooseChannels("v1.channel.k8s.io").status().reason(), Reason::kBadRequest);
}

TEST(GuestChannels, WhatAClientSaysReachesTheGuest) {
  const auto in = FromClient(GuestTalk::kTerminal, Bytes({0}, "ls\n"));
  ASSERT_TRUE(in.ok() && in->has_value());
  EXPECT_EQ((*in)->channel, Channel::kIn);
  EXPECT_EQ((*in)->data, "ls\n");
  const auto end = FromClient(GuestTalk::kTerminal, Bytes({255, 0}));
  ASSERT_TRUE(end.ok() && end->has_value());
  EXPECT_EQ((*end)->channel, Channel::kIn);
  EXPECT_EQ((*end)->data, "") << "the input is over";
  const auto size = FromClient(GuestTalk::kTerminal, Bytes({4}, R"({"Width":80,"Height":24})"));
  ASSERT_TRUE(size.ok() && size->has_value());
  EXPECT_EQ((*size)->channel, Channel::kResize);
  EXPECT_EQ((*size)->data, "80x24");
}

TEST(GuestChannels, WordsWithoutMeaningAreNotPassedOn) {
  for (const std::string& nothing : {Bytes({}), Bytes({0}), Bytes({255, 1}), Bytes({255})}) {
    const auto frame = FromClient(GuestTalk::kTerminal, nothing);
    ASSERT_TRUE(frame.ok());
    EXPECT_FALSE(frame->has_value());
  }
}

TEST(GuestChannels, AClientWritesOnlyWhereItMay) {
  for (const std::string& bad : {Bytes({1}, "x"),
                                 Bytes({2}, "x"),
                                 Bytes({3}, "x"),
                                 Bytes({77}, "x"),
                                 Bytes({4}, "wide"),
                                 Bytes({4}, R"({"Width":0,"Height":24})"),
                                 Bytes({4}, R"({"Width":80,"Height":99999999})"),
                                 Bytes({4}, R"({"Width":"80","Height":24})")}) {
    EXPECT_EQ(FromClient(GuestTalk::kTerminal, bad).status().reason(), Reason::kBadRequest) << bad;
  }
  EXPECT_FALSE(FromClient(GuestTalk::kPort, Bytes({4}, R"({"Width":80,"Height":24})")).ok());
}

TEST(GuestChannels, WhatAGuestSaysHasItsChannel) {
  EXPECT_EQ(ToClient(GuestTalk::kTerminal, {.channel = Channel::kOut, .data = "a"}),
            Bytes({1}, "a"));
  EXPECT_EQ(ToClient(GuestTalk::kTerminal, {.channel = Channel::kErrors, .data = "b"}),
            Bytes({2}, "b"));
  EXPECT_EQ(ToClient(GuestTalk::kPort, {.channel = Channel::kOut, .data = "c"}), Bytes({0}, "c"));
  EXPECT_EQ(ToClient(GuestTalk::kPort, {.channel = Channel::kEnd, .data = "refused"}),
            Bytes({1}, "refused"));
  EXPECT_FALSE(ToClient(GuestTalk::kPort, {.channel = Channel::kEnd, .data = "0"}).has_value());
  EXPECT_FALSE(ToClient(GuestTalk::kTerminal, {.channel = Channel::kIn, .data = "x"}).has_value());
}

TEST(GuestChannels, AnExitStatusIsSaidAsTheKubeletSaysIt) {
  const auto said = [](const std::string& end) {
    const auto message = ToClient(GuestTalk::kTerminal, {.channel = Channel::kEnd, .data = end});
    CHECK(message && message->front() == 3);
    auto status = meta::ParseJson(message->substr(1));
    CHECK(status.ok()) << *message;
    return *std::move(status);
  };
  EXPECT_EQ(said("0").GetString({"status"}), "Success");
  EXPECT_EQ(said("").GetString({"status"}), "Success");
  const meta::Value failed = said("3");
  EXPECT_EQ(failed.GetString({"status"}), "Failure");
  EXPECT_EQ(failed.GetString({"reason"}), "NonZeroExitCode");
  const meta::Value& cause = failed.Get({"details", "causes"})->items()[0];
  EXPECT_EQ(cause.GetString({"reason"}), "ExitCode");
  EXPECT_EQ(cause.GetString({"message"}), "3");
  const meta::Value broken = said("the guest is gone\x1b[2J");
  EXPECT_EQ(broken.GetString({"reason"}), "InternalError");
  EXPECT_EQ(broken.GetString({"message"}).find('\x1b'), std::string_view::npos);
  EXPECT_EQ(said("256").GetString({"reason"}), "InternalError") << "no exit status";
}

}  // namespace
}  // namespace berth::fleet
