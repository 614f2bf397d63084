// SPDX-License-Identifier: Apache-2.0
// A RuntimeWatch notices what changes in the runtimes: by their watch where they have one, by
// listing everything now and then in any case, and by their events.
#pragma once

#include <map>
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
  Duration call_limit = Duration::Seconds(30);
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
  };

  RuntimeWatch(rt::Loop& loop, Listener& listener, WatchOptions options)
      : loop_(loop), listener_(listener), options_(options), scope_(loop) {}

  // REQUIRES: the driver and the host outlive the watch. `host` is null for a foreign runtime; one
  // host may stand behind several drivers.
  void Start(Driver& driver, iri::HostRuntime* host, std::string cluster_id);
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
  rt::Task<Status> EventLoop(Driver* driver);
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
