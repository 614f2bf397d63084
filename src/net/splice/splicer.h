// SPDX-License-Identifier: Apache-2.0
// A Splicer takes connections off a listening socket and joins each with one to somewhere else:
// what one end says the other hears, byte by byte. On-loop only.
//
//   comes ──► no target, too many, not seen lately ──► closed at once
//        └──► dialled ──► joined ──► one end closes: the other is told, and closed soon
//                               └──► another target, an error, Stop(): both are closed at once
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <string>
#include <vector>

#include "base/metrics.h"
#include "base/result.h"
#include "base/time.h"
#include "net/acceptor.h"
#include "net/splice/knocks.h"
#include "net/stream.h"
#include "rt/asio/asio_loop.h"
#include "rt/scope.h"
#include "rt/task.h"

namespace berth::net {

// Where connections go.
struct SpliceTarget {
  std::string name;                    // another one is another target; "": nowhere
  std::vector<std::string> addresses;  // "host:port", tried in this order
  Time until;                          // none is begun after that

  bool IsSame(const SpliceTarget& other) const {
    return name == other.name && addresses == other.addresses;
  }
};

struct SplicerOptions {
  // As many as an H2Server has. Two descriptors each.
  size_t connections_max = 10'000;
  // Of one address. A host asks the next server after as long.
  Duration dial_limit = Duration::Millis(300);
  // After a target that was not reached nobody waits for it for this long.
  Duration failed_pause = Duration::Millis(500);
  // Who can reach the target itself is not to come here: an address is passed on from its second
  // connection on, of those that follow each other so closely. Zero: from the first one on.
  Duration again_within = Duration::Seconds(10);
  // An end that takes nothing for this long is gone.
  Duration write_limit = Duration::Seconds(10);
  // What the other end has after the first one closed.
  Duration farewell_limit = Duration::Seconds(2);
};

struct SpliceFigures {
  metrics::Gauge& open;
  metrics::Counter& passed;
  metrics::Counter& refused;      // closed at once
  metrics::Counter& unreachable;  // closed because the target was not reached
};

class Splicer {
 public:
  // Read from one end before the other has taken it: 2 * 16 KiB for a connection whose ends both
  // take nothing, none for one that is quiet.
  static constexpr size_t kPieceBytesMax = 16 * 1024;
  // Of a target: who finds nobody has waited for 6 * 300 ms, less than a host does.
  static constexpr size_t kAddressesMax = 6;

  // Takes `listener` over, which listens. Goes nowhere at first. The figures outlive it.
  Splicer(rt::AsioLoop& loop, int listener, SplicerOptions options, SpliceFigures figures);
  // REQUIRES: Stop() was awaited.
  ~Splicer() = default;
  Splicer(const Splicer&) = delete;
  Splicer& operator=(const Splicer&) = delete;

  // From now on. Connections to another target are closed; the same one with a later time is a
  // renewal.
  void SetTarget(SpliceTarget target);
  // Closes everything. The socket listens on if somebody else has it, too.
  rt::Task<Status> Stop();

  const std::string& address() const { return acceptor_.address(); }
  size_t connections() const { return connections_.size(); }
  // Read from one end and not yet taken by the other, of all connections.
  size_t bytes_held() const { return bytes_held_; }

 private:
  struct Joint;

  void Take(int fd);
  bool MayPass(const std::string& host);
  rt::Task<Status> Serve(int fd, std::string host);
  rt::Task<Result<int>> Dial();
  bool LeadsBack(int fd) const;
  rt::Task<Status> Join(int near, int far);
  rt::Task<Status> Pump(Joint* joint, Stream* from, Stream* to);

  rt::AsioLoop& loop_;
  const SplicerOptions options_;
  SpliceFigures figures_;
  SpliceTarget target_;
  uint64_t targets_ = 0;  // how many there were
  Time failed_until_;
  Knocks knocks_;
  std::map<std::string, size_t> open_;  // connections that are passed on, by the host's address
  size_t bytes_held_ = 0;
  std::array<char, kPieceBytesMax> piece_{};  // of all: it is emptied in the turn that fills it
  std::list<Joint*> joints_;
  rt::TaskScope connections_;
  Acceptor acceptor_;
};

}  // namespace berth::net
