// SPDX-License-Identifier: Apache-2.0
// A HealthBook knows when each host was last heard of and what it was granted. It is memory only:
// 100,000 heartbeats cost no write. What changes for a person comes out of Tick.
//
//              Begin                 Word
//   Silent ──────────► Connected ◄────────── Quiet (connected, nothing said for the grace)
//     ▲                 │   │ grace             ▲
//     │ grace       End │   └───────────────────┘
//     │                 ▼
//     └───────────── Absent ◄── Goodbye: the planned absence takes the place of the grace
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/text_map.h"
#include "base/time.h"
#include "fleet/fleet.h"
#include "gateway/rules/limits.h"

namespace berth::gateway {

class HealthBook {
 public:
  enum class Ready : uint8_t {
    kYes,
    kAway,     // said goodbye and is expected back
    kUnknown,  // silent
  };
  // What a pool's condition Ready is from now on.
  struct Turn {
    std::string pool_uid;
    Ready ready = Ready::kYes;
    bool operator==(const Turn&) const = default;
  };

  // What the store says of a host that has had no session with this server yet.
  struct Past {
    Duration lease;                     // the longest that it was told
    std::optional<Time> planned_until;  // it said goodbye to an earlier server
  };

  // A new server does not know what was granted before: it counts from its own start (3.3.6).
  HealthBook(Time start, size_t cores) : start_(start), last_tick_(start), cores_(cores) {}

  // A session pool exists. Idempotent; a pool never changes its host.
  void Know(const std::string& pool_uid, const std::string& host, const Past& past = {});
  void Forget(const std::string& pool_uid);

  // A session of the host begins; its pools' conditions are written as Ready by whoever admits
  // them.
  void Begin(const std::string& host, Duration lease, Time now);
  void Word(const std::string& host, Time now);
  // A heartbeat is to be answered. False: no grant, the host was fenced.
  bool Grant(const std::string& host, Time now);
  // Its end; unless a goodbye came before, the grace runs from the last word.
  void End(const std::string& host, Time now);
  void Goodbye(const std::string& host, Time now);

  // No more grants until the next Begin.
  fleet::PoolHealth Fence(const std::string& pool_uid, Time now);
  std::vector<fleet::PoolHealth> All(Time now) const;
  // Connected and not quiet.
  bool IsReachable(std::string_view pool_uid) const;

  // To be called about every 500 ms. A tick that comes later than the grace says that this server
  // was paused: all hosts get their grace anew (3.4).
  std::vector<Turn> Tick(Time now);

  // L as it was announced to the host, or would be.
  Duration LeaseOf(std::string_view host) const;
  // The same while something longer that was granted before may still hold: that.
  Duration LongestLeaseOf(std::string_view host) const;
  // L as it would be announced now.
  Duration lease() const { return LeaseFor(hosts_.size(), cores_); }
  size_t hosts() const { return hosts_.size(); }

 private:
  struct Host {
    std::set<std::string> pools;
    bool connected = false;
    bool fenced = false;
    bool said_goodbye = false;
    Time last_word;
    Time last_grant;
    Time planned_until;
    std::optional<Duration> lease;  // none before the first session
    // Of earlier sessions and servers, while what was granted then may still hold.
    Duration longer;
    Time longer_until;
    Ready told = Ready::kYes;
  };
  Host& HostOf(const std::string& host);
  // How long guests of the host may live on: never less than what any server may have granted. The
  // hosts that are known count, also those that are listed later: so it is asked for, not kept.
  Duration LongestLeaseOf(const Host& host) const;
  Ready ReadyOf(const Host& host, Time now) const;
  fleet::PoolHealth HealthOf(const std::string& pool_uid, const Host& host, Time now) const;

  const Time start_;
  Time last_tick_;
  const size_t cores_;
  TextMap<Host> hosts_;
  TextMap<std::string> host_of_;  // pool UID to host
};

}  // namespace berth::gateway
