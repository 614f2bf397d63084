// SPDX-License-Identifier: Apache-2.0
#include "cli/guests/forwarding.h"

#include <fmt/core.h>
#include <unistd.h>

#include <array>
#include <optional>
#include <utility>

#include "base/check.h"
#include "base/strings.h"
#include "net/socket.h"
#include "net/websocket_codec.h"

namespace berth::cli {
namespace {

// Channels of a forwarded port; each begins with a message of the port's two bytes.
constexpr char kData = 0;
constexpr char kErrors = 1;
constexpr size_t kGreetingBytes = 3;
constexpr char kClose = static_cast<char>(255);

constexpr size_t kReadBytes = 32 * 1024;

Result<uint16_t> ParsePort(std::string_view text, const std::string& whole) {
  const auto port = ParseUint(text);
  if (!port || *port == 0 || *port > UINT16_MAX) {
    return BadRequest(fmt::format("{}: {} is no port from 1 to 65535", Quote(whole), Quote(text)));
  }
  return static_cast<uint16_t>(*port);
}

net::WebSocket::Message Binary(std::string data) {
  return {.kind = net::WebSocket::Kind::kBinary, .data = std::move(data)};
}

}  // namespace

Result<ForwardedPort> ParseForwardedPort(const std::string& text) {
  ForwardedPort out;
  const size_t colon = text.find(':');
  TRY(out.remote, ParsePort(colon == std::string::npos ? text : text.substr(colon + 1), text));
  if (colon == 0) return out;
  out.local = out.remote;
  if (colon == std::string::npos || text.substr(0, colon) == "0") {
    if (colon != std::string::npos) out.local = 0;
    return out;
  }
  TRY(out.local, ParsePort(text.substr(0, colon), text));
  return out;
}

Result<std::string> Forwarding::Listen(const std::string& address, ForwardedPort port) {
  TRY(const int fd, net::ListenTcp(address, port.local));
  const uint16_t remote = port.remote;
  acceptors_.push_back(
      std::make_unique<net::Acceptor>(link_.loop(), fd, [this, remote](int connection) {
        if (scope_.size() >= kConnectionsMax) {
          err_ << fmt::format("port {}: more than {} connections\n", remote, kConnectionsMax);
          ::close(connection);
          return;
        }
        scope_.Spawn("cli.forward", Carry(connection, remote));
      }));
  return acceptors_.back()->address();
}

rt::Task<Status> Forwarding::Stop() {
  for (const auto& acceptor : acceptors_) {
    const Status stopped = co_await acceptor->Stop();
    CHECK(stopped.ok());
  }
  const Status closed = co_await scope_.Close();
  CHECK(closed.ok());
  acceptors_.clear();
  co_return OkStatus();
}

rt::Task<Status> Forwarding::Carry(int fd, uint16_t remote) {
  net::PlainStream local(link_.loop(), fd);
  const Status carried = co_await CarryOver(&local, remote);
  if (carried.ok() || carried.Is(Reason::kCancelled)) co_return carried;
  err_ << fmt::format("port {}: {}\n", remote, Printable(carried.message())) << std::flush;
  co_return OkStatus();
}

rt::Task<Status> Forwarding::CarryOver(net::Stream* local, uint16_t remote) {
  GuestLink::Query query = {{"ports", std::to_string(remote)}};
  const std::string subresource = "portforward";
  CO_TRY(const std::unique_ptr<net::WebSocket> socket,
         co_await link_.Open(subresource, std::move(query)));
  rt::Event over;
  rt::TaskScope pumps(link_.loop());
  pumps.Spawn("cli.to_guest", ToGuest(local, socket.get(), &over));
  pumps.Spawn("cli.from_guest", FromGuest(socket.get(), local, &over));
  const Status waited = co_await over.Wait();
  const Status closed = co_await pumps.Close();
  CHECK(closed.ok());
  local->Shutdown();
  const Status told = co_await socket->Close(net::kWsNormal, std::string());
  if (told.Is(Reason::kCancelled)) co_return told;
  co_return waited;
}

// The guest may go on speaking when nothing more is said to it.
rt::Task<Status> Forwarding::ToGuest(net::Stream* local, net::WebSocket* socket, rt::Event* over) {
  std::array<char, kReadBytes> buffer;
  for (;;) {
    const auto count = co_await local->Read(buffer);
    if (!count.ok()) break;
    if (*count == 0) {
      std::string closing(1, kClose);
      closing.push_back(kData);
      const Status told = co_await socket->Send(Binary(std::move(closing)));
      if (told.ok()) co_return OkStatus();
      break;
    }
    std::string data(1, kData);
    data.append(buffer.data(), *count);
    const Status sent = co_await socket->Send(Binary(std::move(data)));
    if (!sent.ok()) break;
  }
  over->Set();
  co_return OkStatus();
}

rt::Task<Status> Forwarding::FromGuest(net::WebSocket* socket,
                                       net::Stream* local,
                                       rt::Event* over) {
  std::array<bool, 2> is_greeted = {false, false};
  for (;;) {
    auto message = co_await socket->Receive();
    if (!message.ok()) break;
    if (message->data.empty() || (message->data[0] != kData && message->data[0] != kErrors)) {
      continue;
    }
    bool& greeted = is_greeted[static_cast<size_t>(message->data[0])];
    if (!std::exchange(greeted, true) && message->data.size() == kGreetingBytes) continue;
    const std::string_view data = std::string_view(message->data).substr(1);
    if (message->data[0] == kErrors) {
      err_ << Printable(data) << "\n" << std::flush;
      continue;
    }
    const std::array<std::string_view, 1> parts = {data};
    const Status written = co_await local->Write(parts);
    if (!written.ok()) break;
  }
  over->Set();
  co_return OkStatus();
}

}  // namespace berth::cli
