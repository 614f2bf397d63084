// SPDX-License-Identifier: Apache-2.0
#include "client/cache/health_report.h"

#include <algorithm>

namespace berth::client {

ControllerHealth& HealthReport::Of(std::string_view controller) {
  const auto found = all_.find(controller);
  return found != all_.end() ? found->second : all_[std::string(controller)];
}

void HealthReport::Add(std::string_view controller, const WorkQueue& queue) {
  ControllerHealth& health = Of(controller);
  health.waiting += queue.waiting();
  health.waiting_longest = std::max(health.waiting_longest, queue.waiting_longest());
  health.failing += queue.failing();
  health.failing_longest = std::max(health.failing_longest, queue.failing_longest());
  health.failures += queue.failures();
}

void HealthReport::Add(std::string_view controller, const FollowState& state) {
  ControllerHealth& health = Of(controller);
  if (!state.synced()) ++health.unsynced;
  health.lost_longest = std::max(health.lost_longest, state.failing());
}

void HealthReport::Add(std::string_view component, const UntoldEvents& events) {
  UntoldEvents& sum = events_[std::string(component)];
  sum.dropped += events.dropped;
  sum.skipped += events.skipped;
  sum.refused += events.refused;
}

namespace {

// Counters only grow; what is counted anew, by another term, is added once it is more.
void Raise(metrics::Counter& counter, uint64_t count) {
  counter.Add(std::max(0.0, static_cast<double>(count) - counter.value()));
}

void ShowEvents(const HealthReport& report, metrics::Registry& metrics) {
  for (const auto& [component, events] : report.events()) {
    const metrics::Labels labels = {{"component", component}};
    Raise(metrics.GetCounter("berth_events_dropped_total",
                             "Events that were not written because too many waited.",
                             labels),
          events.dropped);
    Raise(metrics.GetCounter("berth_events_skipped_total",
                             "Events of type Normal that were left out while many waited.",
                             labels),
          events.skipped);
    Raise(metrics.GetCounter("berth_events_refused_total",
                             "Events that the API did not take: their namespace may be gone.",
                             labels),
          events.refused);
  }
}

}  // namespace

void ShowHealth(const HealthReport& report, metrics::Registry& metrics) {
  for (const auto& [controller, health] : report.all()) {
    const metrics::Labels labels = {{"controller", controller}};
    const auto set = [&](std::string_view name, std::string_view help, double value) {
      metrics.GetGauge(name, help, labels).Set(value);
    };
    set("berth_controller_queue_keys",
        "Keys that wait for their turn.",
        static_cast<double>(health.waiting));
    set("berth_controller_queue_oldest_seconds",
        "How long the key has waited that is next.",
        health.waiting_longest.to_seconds());
    set("berth_controller_failing_keys",
        "Keys that failed and have not succeeded since.",
        static_cast<double>(health.failing));
    set("berth_controller_failing_seconds",
        "How long the key has failed that began first.",
        health.failing_longest.to_seconds());
    set("berth_controller_follow_unsynced",
        "Kinds that are followed and were never read whole.",
        static_cast<double>(health.unsynced));
    set("berth_controller_follow_failing_seconds",
        "How long a kind could not be followed; 0 if all are.",
        health.lost_longest.to_seconds());
    metrics::Counter& failures = metrics.GetCounter(
        "berth_controller_failures_total", "Turns that failed; conflicts are among them.", labels);
    Raise(failures, health.failures);
  }
  ShowEvents(report, metrics);
}

}  // namespace berth::client
