// SPDX-License-Identifier: Apache-2.0
// A HealthReport is how well controllers keep up at one moment: what waits, what fails and what
// they cannot follow. One entry per controller, whatever the number of objects.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "base/metrics.h"
#include "base/time.h"
#include "client/cache/follow_state.h"
#include "client/cache/informer.h"
#include "client/cache/reflector.h"
#include "client/cache/work_queue.h"

namespace berth::client {

struct ControllerHealth {
  size_t waiting = 0;  // keys
  Duration waiting_longest;
  size_t failing = 0;  // keys that failed and have not succeeded since
  Duration failing_longest;
  uint64_t failures = 0;  // all that there were
  size_t unsynced = 0;    // lists that were never complete
  Duration lost_longest;  // how long it has not been able to follow something
};

// Events that one component did not write, by why.
struct UntoldEvents {
  uint64_t dropped = 0;  // too many waited
  uint64_t skipped = 0;  // too many waited for one that says that all is well
  uint64_t refused = 0;  // the API did not take them
};

class HealthReport {
 public:
  // `controller` is a literal: it becomes the value of a label. What is added to one controller
  // counts together.
  void Add(std::string_view controller, const WorkQueue& queue);
  void Add(std::string_view controller, const FollowState& state);
  void Add(std::string_view controller, const Reflector& reflector) {
    Add(controller, reflector.state());
  }
  void Add(std::string_view controller, const Informer& informer) {
    Add(controller, informer.reflector());
  }

  // `component` is a literal too, the one that its events name.
  void Add(std::string_view component, const UntoldEvents& events);

  const std::map<std::string, ControllerHealth, std::less<>>& all() const { return all_; }
  const std::map<std::string, UntoldEvents, std::less<>>& events() const { return events_; }

 private:
  ControllerHealth& Of(std::string_view controller);

  std::map<std::string, ControllerHealth, std::less<>> all_;
  std::map<std::string, UntoldEvents, std::less<>> events_;  // by component
};

// Sets berth_controller_... of every controller in the report, and berth_events_... of every
// component.
void ShowHealth(const HealthReport& report, metrics::Registry& metrics);

}  // namespace berth::client
