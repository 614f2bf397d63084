// SPDX-License-Identifier: Apache-2.0
// A conversation with a guest: its console, a command, its logs, one of its ports.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "iri/object.h"
#include "rt/task.h"

namespace berth::iri {

// Of one frame; whoever has more sends more frames.
inline constexpr size_t kAttachFrameBytesMax = 64 * 1024;

struct AttachFrame {
  enum class Channel : uint8_t {
    kIn,      // to the guest; without data: the input is over
    kOut,     // from the guest
    kErrors,  // from the guest
    kEnd,     // the last frame: "0" or another exit status, or what went wrong
    kResize,  // "80x24"
  };
  Channel channel = Channel::kOut;
  std::string data;
  bool operator==(const AttachFrame&) const = default;
};
inline constexpr uint32_t kAttachChannelMax = static_cast<uint32_t>(AttachFrame::Channel::kResize);

struct AttachRequest {
  std::string machine_uid;
  std::string what;   // "console", "exec", "logs", "portforward"
  StringMap options;  // exec: "command"; portforward: "port"
  bool operator==(const AttachRequest&) const = default;
};

// Whoever does not read makes the guest wait, and nobody else. One reader and one writer at a time.
class AttachStream {
 public:
  virtual ~AttachStream() = default;
  // The next frame; nullopt after the last. Unavailable if the runtime is gone.
  virtual rt::Task<Result<std::optional<AttachFrame>>> Read() = 0;
  // Unavailable once it is over.
  virtual rt::Task<Status> Write(AttachFrame frame) = 0;
  // Ends it; awaited before the stream is destroyed. Always ok, also for a cancelled caller.
  virtual rt::Task<Status> Close() = 0;
};

}  // namespace berth::iri
