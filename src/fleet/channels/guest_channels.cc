// SPDX-License-Identifier: Apache-2.0
#include "fleet/channels/guest_channels.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/strings.h"
#include "meta/json.h"
#include "meta/value.h"

namespace berth::fleet {
namespace {

using Channel = TunnelFrame::Channel;

// Bytes of the wire.
constexpr char kIn = 0;
constexpr char kOut = 1;
constexpr char kErrors = 2;
constexpr char kEnd = 3;
constexpr char kResize = 4;
constexpr char kClose = static_cast<char>(255);  // v5: the next byte's channel is over

constexpr char kPortData = 0;
constexpr char kPortErrors = 1;

constexpr uint64_t kExitCodeMax = 255;
constexpr int64_t kSideMax = 10'000;  // columns or rows of a terminal

std::string Message(char channel, std::string_view data) {
  std::string out(1, channel);
  out.append(data);
  return out;
}

// {"Width":80,"Height":24} as "80x24".
Result<std::optional<TunnelFrame>> ReadSize(std::string_view text) {
  TRY(const meta::Value size, meta::ParseJson(std::string(text)));
  const meta::Value* width = size.Find("Width");
  const meta::Value* height = size.Find("Height");
  const auto is_side = [](const meta::Value* side) {
    return side != nullptr && side->is_int() && side->as_int() > 0 && side->as_int() <= kSideMax;
  };
  if (!is_side(width) || !is_side(height)) {
    return BadRequest("a size has Width and Height, each from 1 to " + std::to_string(kSideMax));
  }
  return std::optional<TunnelFrame>(
      {.channel = Channel::kResize,
       .data = std::to_string(width->as_int()) + "x" + std::to_string(height->as_int())});
}

// As the kubelet says it, so that clients find the exit status where they look for it.
std::string EndStatus(const GuestEnd& end) {
  meta::Value status = meta::Value::Object();
  status.Set("metadata", meta::Value::Object());
  const bool is_well = end.problem.empty() && end.exit_code == 0;
  status.Set("status", is_well ? "Success" : "Failure");
  if (!end.problem.empty()) {
    status.Set("message", end.problem);
    status.Set("reason", "InternalError");
    status.Set("code", meta::Value(int64_t{500}));
  } else if (!is_well) {
    const std::string code = std::to_string(end.exit_code);
    meta::Value cause = meta::Value::Object();
    cause.Set("reason", "ExitCode");
    cause.Set("message", code);
    meta::Value details = meta::Value::Object();
    details.Set("causes", meta::Value::Array({std::move(cause)}));
    status.Set("message", "command terminated with non-zero exit code: exit status " + code);
    status.Set("reason", "NonZeroExitCode");
    status.Set("details", std::move(details));
  }
  return meta::WriteJson(status);
}

}  // namespace

Result<std::string> ChooseChannels(std::string_view offered) {
  if (Trim(offered).empty()) return std::string();
  std::vector<std::string_view> protocols;
  for (const std::string_view one : Split(offered, ',')) protocols.push_back(Trim(one));
  for (const std::string_view known : {kChannelsV5, kChannelsV4}) {
    if (std::ranges::find(protocols, known) != protocols.end()) return std::string(known);
  }
  return BadRequest("Sec-WebSocket-Protocol " + Quote(offered.substr(0, 256)) +
                    ": this server speaks " + std::string(kChannelsV5) + " and " +
                    std::string(kChannelsV4));
}

Result<std::optional<TunnelFrame>> FromClient(GuestTalk talk, std::string_view message) {
  if (message.empty()) return std::optional<TunnelFrame>();
  const char channel = message.front();
  const std::string_view data = message.substr(1);
  if (channel == kClose) {
    if (data.size() == 1 && data.front() == kIn) {
      return std::optional<TunnelFrame>({.channel = Channel::kIn, .data = {}});
    }
    return std::optional<TunnelFrame>();
  }
  if (channel == kIn) {
    if (data.empty()) return std::optional<TunnelFrame>();  // some clients begin with one
    return std::optional<TunnelFrame>({.channel = Channel::kIn, .data = std::string(data)});
  }
  if (channel == kResize && talk == GuestTalk::kTerminal) return ReadSize(data);
  return BadRequest("channel " + std::to_string(static_cast<unsigned char>(channel)) +
                    " is not a client's to write to");
}

std::optional<std::string> ToClient(GuestTalk talk, const TunnelFrame& frame) {
  if (talk == GuestTalk::kPort) {
    if (frame.channel == Channel::kOut) return Message(kPortData, frame.data);
    if (frame.channel == Channel::kErrors) return Message(kPortErrors, frame.data);
    if (frame.channel != Channel::kEnd) return std::nullopt;
    const GuestEnd end = ReadEnd(frame.data);
    return end.problem.empty() ? std::nullopt
                               : std::optional<std::string>(Message(kPortErrors, end.problem));
  }
  switch (frame.channel) {
    case Channel::kOut: return Message(kOut, frame.data);
    case Channel::kErrors: return Message(kErrors, frame.data);
    case Channel::kEnd: return Message(kEnd, EndStatus(ReadEnd(frame.data)));
    case Channel::kIn:
    case Channel::kResize: break;
  }
  return std::nullopt;
}

GuestEnd ReadEnd(std::string_view data) {
  if (data.empty()) return {};
  const std::optional<uint64_t> code = ParseUint(data);
  if (code && *code <= kExitCodeMax) return {.exit_code = static_cast<int>(*code), .problem = {}};
  return {.exit_code = 0, .problem = Printable(data)};
}

}  // namespace berth::fleet
