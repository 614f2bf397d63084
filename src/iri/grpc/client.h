// SPDX-License-Identifier: Apache-2.0
// RuntimeClient talks to any runtime behind a unix socket: Berth's own and other people's. It
// connects when it is first used and again whenever the connection is lost.
//
// Answers are checked before anyone sees them: at most kAnswerBytesMax, and what CheckMessage of
// iri/wire allows. A runtime that answers anything else gets Internal, with the field's name.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "iri/runtimes.h"
#include "rt/loop.h"
#include "rt/task.h"

namespace berth::iri {

// A list of 10,000 machines with 1.5 KiB each fits.
inline constexpr size_t kAnswerBytesMax = 16 * 1024 * 1024;

// Of a call that only asks: runtimes of ours answer from memory, and one that hangs is soon known.
inline constexpr Duration kAskLimit = Duration::Seconds(10);
// Of a call that changes something. More than whoever is behind the runtime takes to refuse
// (libvirt that hangs 20 s, a guest that does not let go of a device 17 s): its words come, not our
// Timeout.
inline constexpr Duration kChangeLimit = Duration::Seconds(30);

struct RuntimeClientOptions {
  Duration ask_limit = kAskLimit;  // Timeout after it
  Duration change_limit = kChangeLimit;
  std::vector<uid_t> allowed_uids;  // beside root and ourselves: see ConnectSocket
};

class RuntimeClient {
 public:
  // `path` is that of the socket. On-loop only, like everything here.
  RuntimeClient(rt::Loop& loop, std::string path, RuntimeClientOptions options = {});
  // REQUIRES: no call is in progress, all streams are closed.
  ~RuntimeClient();
  RuntimeClient(const RuntimeClient&) = delete;
  RuntimeClient& operator=(const RuntimeClient&) = delete;

  // Valid as long as this. A service that the runtime lacks answers MethodNotSupported; a watch
  // says so in its first Next().
  MachineRuntime& machine();
  VolumeRuntime& volume();
  BucketRuntime& bucket();
  HostRuntime& host();

  // Asks the runtime which of the four it serves; null for the others.
  rt::Task<Result<Runtimes>> Discover();

  const std::string& path() const;

 private:
  class Connection;
  class Machines;
  class Volumes;
  class Buckets;
  class Host;
  class Stream;
  class Attached;
  std::unique_ptr<Connection> connection_;
  std::unique_ptr<Machines> machines_;
  std::unique_ptr<Volumes> volumes_;
  std::unique_ptr<Buckets> buckets_;
  std::unique_ptr<Host> host_;
};

}  // namespace berth::iri
