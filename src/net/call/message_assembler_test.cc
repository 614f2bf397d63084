// SPDX-License-Identifier: Apache-2.0
// However the bytes are cut, the messages are the same.
#include "net/call/message_assembler.h"

#include <gtest/gtest.h>

#include <string>

namespace berth::net {
namespace {

std::string Framed(const std::string& message) { return MessagePrefix(message.size()) + message; }

TEST(MessageAssembler, GivesTheSameMessagesForEveryCut) {
  const std::list<std::string> messages = {"one", "", std::string(300, 'x'), "four"};
  std::string wire;
  for (const std::string& message : messages) wire += Framed(message);
  for (size_t step = 1; step <= wire.size(); ++step) {
    MessageAssembler assembler(1'000);
    std::list<std::string> got;
    for (size_t i = 0; i < wire.size(); i += step) {
      ASSERT_TRUE(assembler.Feed(std::string_view(wire).substr(i, step), &got).ok());
    }
    EXPECT_EQ(got, messages) << "in steps of " << step;
    EXPECT_TRUE(assembler.is_between_messages());
  }
}

TEST(MessageAssembler, RefusesAMessageByItsPrefix) {
  MessageAssembler assembler(10);
  std::list<std::string> got;
  EXPECT_EQ(assembler.Feed(MessagePrefix(11), &got).reason(), Reason::kRequestTooLarge);
  MessageAssembler compressed(10);
  EXPECT_EQ(compressed.Feed(std::string("\x01\0\0\0\1x", 6), &got).reason(),
            Reason::kMethodNotSupported);
  EXPECT_TRUE(got.empty());
}

TEST(MessageAssembler, AMessageInProgressIsJudgedByANewLimit) {
  MessageAssembler assembler(1'000);
  std::list<std::string> got;
  ASSERT_TRUE(assembler.Feed(Framed(std::string(100, 'x')).substr(0, 20), &got).ok());
  EXPECT_TRUE(assembler.SetLimit(100).ok());
  EXPECT_EQ(assembler.SetLimit(99).reason(), Reason::kRequestTooLarge);
}

}  // namespace
}  // namespace berth::net
