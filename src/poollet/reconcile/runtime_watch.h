// SPDX-License-Identifier: Apache-2.0
// A RuntimeWatch notices what changes in the runtimes: by their watch where they have one, by
// listing everything now and then in any case, and by their events.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/time.h"
#include "iri/host.h"
#include "poollet/reconcile/driver.h"
#include "rt/event.h"
#include "rt/loop.h"
#include "rt/scope.h"

namespace berth::poollet {

struct WatchOptions {
  Duration poll_interval = Duration::Seconds(5);    // of a runtime without a watch
  Duration scan_interval = Duration::Seconds(60);   // of one with a watch: the safety net
  Duration event_interval = Duration::Seconds(10);  // of ListEvents, if nothing changes
  Duration event_pause = Duration::Millis(250);     // between two of them, whatever changes
  Duration event_retry = Duration::Millis(200);     // after one that failed; doubles
  // How often a watch is asked for again at most: until it is there, nothing is told at once. Two
  // calls a second over a socket of the host, to a runtime that is away.
  Duration watch_retry_max = Duration::Millis(500);
  Duration call_limit = kCallLimit;
};

class RuntimeWatch {
 public:
  class Listener {
   public:
    virtual ~Listener() = default;
    // Something happened to this object, or may have.
    virtual void Changed(fleet::ObjectKind kind, const std::string& uid) = 0;
    // Everything of this cluster that the runtime has.
    virtual void Scanned(fleet::ObjectKind kind, std::vector<Seen> all) = 0;
    virtual void Happened(fleet::ObjectKind kind, const std::string& uid, iri::Event event) = 0;
    // What the runtime says of this kind and of earlier seconds than this all went to Happened.
    virtual void HeardUntil(fleet::ObjectKind kind, WallTime until) = 0;
  };

  struct Watched {
    Driver* driver = nullptr;
    iri::HostRuntime* host = nullptr;  // null for a foreign runtime
    std::string cluster_id;
    // Where a former life of this process stood; what happened since is told.
    std::optional<WallTime> heard_until;
  };

  RuntimeWatch(rt::Loop& loop, Listener& listener, WatchOptions options)
      : loop_(loop), listener_(listener), options_(options), scope_(loop) {}

  // REQUIRES: the driver and the host outlive the watch. One host may stand behind several drivers.
  void Start(const Watched& watched);
  // Scans everything soon.
  void ScanNow();
  rt::Task<Status> Close();

 private:
  rt::Task<Status> ScanLoop(Driver* driver, Duration interval, std::string cluster_id);
  rt::Task<Status> WatchLoop(iri::HostRuntime* host);
  rt::Task<Status> ReadChanges(iri::ChangeStream* changes, std::string* cursor);
  // Up to where a runtime's events were told. Their times are whole seconds: those of the last
  // second are remembered one by one.
  using EventKey = std::tuple<std::string, std::string, std::string>;
  struct EventPlace {
    WallTime from;
    std::set<EventKey> told;
  };
  rt::Task<Status> EventLoop(Driver* driver, WallTime from);
  void AskEvents();
  void Tell(const Driver& driver, std::vector<iri::Event> events, EventPlace& place);

  rt::Loop& loop_;
  Listener& listener_;
  const WatchOptions options_;
  std::set<iri::HostRuntime*> watched_;
  std::vector<rt::Event*> wakes_;        // of scan loops
  std::vector<rt::Event*> event_wakes_;  // of event loops
  rt::TaskScope scope_;
};

}  // namespace berth::poollet
