// SPDX-License-Identifier: Apache-2.0
// What is sent to a socket that loses packets neither arrives nor is acknowledged, and nobody is
// told.
#include "app/bench/packet_loss.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <string_view>

namespace berth::app {
namespace {

// Two ends of one TCP connection.
class PacketLoss : public testing::Test {
 protected:
  PacketLoss() {
    const int listener = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    auto* where = reinterpret_cast<sockaddr*>(&address);
    socklen_t size = sizeof(address);
    EXPECT_EQ(::bind(listener, where, size), 0);
    EXPECT_EQ(::listen(listener, 1), 0);
    EXPECT_EQ(::getsockname(listener, where, &size), 0);
    host_ = ::socket(AF_INET, SOCK_STREAM, 0);
    EXPECT_EQ(::connect(host_, where, size), 0);
    server_ = ::accept(listener, nullptr, nullptr);
    EXPECT_GE(server_, 0);
    ::close(listener);
  }
  ~PacketLoss() override {
    ::close(host_);
    ::close(server_);
  }

  static void Send(int socket, std::string_view words) {
    EXPECT_EQ(::send(socket, words.data(), words.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(words.size()));
  }
  // Something to read, or an end, within so many milliseconds.
  static bool HasNews(int socket, int limit_ms) {
    pollfd entry{.fd = socket, .events = POLLIN, .revents = 0};
    return ::poll(&entry, 1, limit_ms) > 0;
  }
  int Unacknowledged() const {
    int bytes = -1;
    EXPECT_EQ(::ioctl(server_, SIOCOUTQ, &bytes), 0);
    return bytes;
  }

  int host_ = -1;
  int server_ = -1;
};

TEST_F(PacketLoss, WhatIsSentNeitherArrivesNorIsAcknowledged) {
  constexpr int kLong = 10'000;
  constexpr int kRetransmission = 250;  // the first one comes within that
  Send(server_, "hello");
  ASSERT_TRUE(HasNews(host_, kLong));
  char words[8];
  ASSERT_EQ(::recv(host_, words, sizeof(words), 0), 5);
  EXPECT_EQ(Unacknowledged(), 0);

  ASSERT_EQ(DropPacketsTo(host_), OkStatus());
  Send(server_, "again");
  EXPECT_FALSE(HasNews(host_, kRetransmission));
  EXPECT_FALSE(HasNews(server_, 0)) << "nothing was closed";
  EXPECT_EQ(Unacknowledged(), 5);
}

TEST_F(PacketLoss, AllSocketsOfTheProcessLoseThem) {
  constexpr int kRetransmission = 250;
  ASSERT_EQ(DropAllPacketsOf(::getpid()), OkStatus());
  Send(server_, "hello");
  Send(host_, "hello");
  EXPECT_FALSE(HasNews(host_, kRetransmission));
  EXPECT_FALSE(HasNews(server_, 0));
}

TEST_F(PacketLoss, ThoseOfAChildLoseThem) {
  constexpr int kRetransmission = 250;
  const pid_t child = ::fork();
  if (child == 0) {
    ::pause();
    ::_exit(0);
  }
  EXPECT_EQ(DropAllPacketsOf(child), OkStatus());
  Send(server_, "hello");
  EXPECT_FALSE(HasNews(host_, kRetransmission)) << "the child's socket is this one";
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

TEST_F(PacketLoss, WhatIsNoSocketIsRefused) { EXPECT_FALSE(DropPacketsTo(-1).ok()); }

}  // namespace
}  // namespace berth::app
