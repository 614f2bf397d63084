// SPDX-License-Identifier: Apache-2.0
// What is sent to a socket that loses packets neither arrives nor is acknowledged, and nobody is
// told.
#include "app/bench/packet_loss.h"

#include <gtest/gtest.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string_view>

#include "net/socket.h"

namespace berth::app {
namespace {

// Milliseconds. The first retransmission comes within that.
constexpr int kRetransmission = 250;
constexpr int kLong = 10'000;

// Two ends of one TCP connection.
struct Connection {
  Connection() {
    const int listener = net::ListenTcp("127.0.0.1", 0).value();
    sockaddr_in address{};
    auto* where = reinterpret_cast<sockaddr*>(&address);
    socklen_t size = sizeof(address);
    EXPECT_EQ(::getsockname(listener, where, &size), 0);
    host = ::socket(AF_INET, SOCK_STREAM, 0);
    EXPECT_EQ(::connect(host, where, size), 0);
    server = ::accept(listener, nullptr, nullptr);
    EXPECT_GE(server, 0);
    ::close(listener);
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection() {
    ::close(host);
    ::close(server);
  }

  int Unacknowledged() const {
    int bytes = -1;
    EXPECT_EQ(::ioctl(server, SIOCOUTQ, &bytes), 0);
    return bytes;
  }

  int host = -1;
  int server = -1;
};

void Send(int socket, std::string_view words) {
  EXPECT_EQ(::send(socket, words.data(), words.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(words.size()));
}

// Something to read, or an end, within so many milliseconds.
bool HasNews(int socket, int limit_ms) {
  pollfd entry{.fd = socket, .events = POLLIN, .revents = 0};
  return ::poll(&entry, 1, limit_ms) > 0;
}

TEST(PacketLoss, WhatIsSentNeitherArrivesNorIsAcknowledged) {
  const Connection one;
  Send(one.server, "hello");
  ASSERT_TRUE(HasNews(one.host, kLong));
  char words[8];
  ASSERT_EQ(::recv(one.host, words, sizeof(words), 0), 5);
  EXPECT_EQ(one.Unacknowledged(), 0);

  ASSERT_EQ(DropPacketsTo(one.host), OkStatus());
  Send(one.server, "again");
  EXPECT_FALSE(HasNews(one.host, kRetransmission));
  EXPECT_FALSE(HasNews(one.server, 0)) << "nothing was closed";
  EXPECT_EQ(one.Unacknowledged(), 5);
}

TEST(PacketLoss, AllSocketsOfTheProcessLoseThem) {
  EXPECT_EQ(DropAllPackets().reason(), Reason::kNotFound);
  const Connection one;
  ASSERT_EQ(DropAllPackets(), OkStatus());
  Send(one.server, "hello");
  Send(one.host, "hello");
  EXPECT_FALSE(HasNews(one.host, kRetransmission));
  EXPECT_FALSE(HasNews(one.server, 0));
}

TEST(PacketLoss, ThoseOfOneAddressLoseThemAndNoOthers) {
  const Connection one;
  const Connection other;
  EXPECT_EQ(DropPacketsOf("127.0.0.1:1").reason(), Reason::kNotFound);
  ASSERT_EQ(DropPacketsOf(net::LocalAddress(one.host)), OkStatus());
  Send(one.server, "hello");
  Send(one.host, "hello");
  EXPECT_FALSE(HasNews(one.host, kRetransmission));
  EXPECT_FALSE(HasNews(one.server, 0)) << "the address is that of its other end";
  Send(other.server, "hello");
  EXPECT_TRUE(HasNews(other.host, kLong));
}

TEST(PacketLoss, WhatIsNoSocketIsRefused) { EXPECT_FALSE(DropPacketsTo(-1).ok()); }

}  // namespace
}  // namespace berth::app
