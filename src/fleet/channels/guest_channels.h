// SPDX-License-Identifier: Apache-2.0
// The channel protocol that Kubernetes' clients speak over a WebSocket (v4 and v5.channel.k8s.io):
// every message is a byte that names a channel, and its data. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "fleet/fleet.h"

namespace berth::fleet {

inline constexpr std::string_view kChannelsV4 = "v4.channel.k8s.io";
inline constexpr std::string_view kChannelsV5 = "v5.channel.k8s.io";

// What a client offers in Sec-WebSocket-Protocol, as the server answers it: the newest that both
// speak; "" if the client asks for none, which means v4. BadRequest if it asks only for others.
Result<std::string> ChooseChannels(std::string_view offered);

enum class GuestTalk : uint8_t {
  kTerminal,  // exec, console: 0 in, 1 out, 2 errors, 3 how it ended, 4 size
  kPort,      // portforward of one port: 0 data, 1 errors; each begins with the port
};

// A client's message as a frame to the guest; nullopt for one that says nothing to it. BadRequest
// for a channel that a client must not write to. The end of the input is a frame without data.
Result<std::optional<TunnelFrame>> FromClient(GuestTalk talk, std::string_view message);
// A guest's frame as a message to the client; nullopt where there is nothing to say. The end of a
// terminal is a metav1.Status on channel 3, with the exit status as Kubernetes puts it.
std::optional<std::string> ToClient(GuestTalk talk, const TunnelFrame& frame);

// How a guest's last frame reads: the exit status, or what went wrong.
struct GuestEnd {
  int exit_code = 0;
  std::string problem;  // "" if it ended by itself
};
GuestEnd ReadEnd(std::string_view data);

}  // namespace berth::fleet
