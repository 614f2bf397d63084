// SPDX-License-Identifier: Apache-2.0
// Metrics in Prometheus' text format. A series is found by name and labels once, at start, and kept
// by whoever counts on a hot path. Safe from any thread.
#pragma once

#include <initializer_list>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace berth::metrics {

class Counter {
 public:
  virtual ~Counter() = default;
  virtual void Add(double amount = 1) = 0;
  virtual double value() const = 0;
};

class Gauge {
 public:
  virtual ~Gauge() = default;
  virtual void Set(double value) = 0;
  virtual void Add(double amount) = 0;
  virtual double value() const = 0;
};

class Histogram {
 public:
  virtual ~Histogram() = default;
  virtual void Observe(double value) = 0;
};

using Labels = std::map<std::string, std::string>;

// One process has one registry, owned by app/ and handed to components.
class Registry {
 public:
  Registry();
  ~Registry();
  Registry(const Registry&) = delete;
  Registry& operator=(const Registry&) = delete;

  // The same name and labels give the same series; they live as long as the registry. `help` of the
  // first call counts.
  Counter& GetCounter(std::string_view name, std::string_view help, const Labels& labels = {});
  Gauge& GetGauge(std::string_view name, std::string_view help, const Labels& labels = {});
  Histogram& GetHistogram(std::string_view name,
                          std::string_view help,
                          std::vector<double> bounds,
                          const Labels& labels = {});

  // Everything in text exposition format 0.0.4.
  std::string Text() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Bounds for request latencies, in seconds: 0.5 ms to 10 s.
std::vector<double> LatencyBounds();

}  // namespace berth::metrics
