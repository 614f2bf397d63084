// SPDX-License-Identifier: Apache-2.0
// An EventLog keeps the last things that a runtime wants people to know, for ListEvents.
#pragma once

#include <deque>
#include <vector>

#include "iri/object.h"

namespace berth::runtime {

// A message is at most a KiB: 1 MiB in all.
constexpr size_t kEventsMax = 1024;

class EventLog {
 public:
  void Add(iri::Event event) {
    events_.push_back(std::move(event));
    if (events_.size() > kEventsMax) events_.pop_front();
  }
  // Oldest first.
  std::vector<iri::Event> List(const iri::EventFilter& filter) const {
    std::vector<iri::Event> listed;
    for (const iri::Event& event : events_) {
      if (Matches(filter, event)) listed.push_back(event);
    }
    return listed;
  }

 private:
  std::deque<iri::Event> events_;
};

}  // namespace berth::runtime
