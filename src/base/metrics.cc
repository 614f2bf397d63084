// SPDX-License-Identifier: Apache-2.0
#include "base/metrics.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include "base/mutex.h"

namespace berth::metrics {
namespace {

class PrometheusCounter final : public Counter {
 public:
  explicit PrometheusCounter(prometheus::Counter& counter) : counter_(counter) {}
  void Add(double amount) override { counter_.Increment(amount); }
  double value() const override { return counter_.Value(); }

 private:
  prometheus::Counter& counter_;
};

class PrometheusGauge final : public Gauge {
 public:
  explicit PrometheusGauge(prometheus::Gauge& gauge) : gauge_(gauge) {}
  void Set(double value) override { gauge_.Set(value); }
  void Add(double amount) override { gauge_.Increment(amount); }
  double value() const override { return gauge_.Value(); }

 private:
  prometheus::Gauge& gauge_;
};

class PrometheusHistogram final : public Histogram {
 public:
  explicit PrometheusHistogram(prometheus::Histogram& histogram) : histogram_(histogram) {}
  void Observe(double value) override { histogram_.Observe(value); }

 private:
  prometheus::Histogram& histogram_;
};

// Finds the wrapper of a series, or makes it with `make`.
template <class Interface, class Make>
Interface& FindOrMake(std::map<std::pair<std::string, Labels>, std::unique_ptr<Interface>>& series,
                      std::string_view name,
                      const Labels& labels,
                      const Make& make) {
  auto& slot = series[{std::string(name), labels}];
  if (slot == nullptr) slot = make();
  return *slot;
}

}  // namespace

struct Registry::State {
  Mutex mutex;
  prometheus::Registry registry{prometheus::Registry::InsertBehavior::Merge};
  std::map<std::pair<std::string, Labels>, std::unique_ptr<Counter>> counters GUARDED_BY(mutex);
  std::map<std::pair<std::string, Labels>, std::unique_ptr<Gauge>> gauges GUARDED_BY(mutex);
  std::map<std::pair<std::string, Labels>, std::unique_ptr<Histogram>> histograms GUARDED_BY(mutex);
};

Registry::Registry() : state_(std::make_unique<State>()) {}
Registry::~Registry() = default;

Counter& Registry::GetCounter(std::string_view name, std::string_view help, const Labels& labels) {
  const MutexLock lock(state_->mutex);
  return FindOrMake(state_->counters, name, labels, [&] {
    auto& family = prometheus::BuildCounter()
                       .Name(std::string(name))
                       .Help(std::string(help))
                       .Register(state_->registry);
    return std::make_unique<PrometheusCounter>(family.Add(labels));
  });
}

Gauge& Registry::GetGauge(std::string_view name, std::string_view help, const Labels& labels) {
  const MutexLock lock(state_->mutex);
  return FindOrMake(state_->gauges, name, labels, [&] {
    auto& family = prometheus::BuildGauge()
                       .Name(std::string(name))
                       .Help(std::string(help))
                       .Register(state_->registry);
    return std::make_unique<PrometheusGauge>(family.Add(labels));
  });
}

Histogram& Registry::GetHistogram(std::string_view name,
                                  std::string_view help,
                                  std::vector<double> bounds,
                                  const Labels& labels) {
  const MutexLock lock(state_->mutex);
  return FindOrMake(state_->histograms, name, labels, [&] {
    auto& family = prometheus::BuildHistogram()
                       .Name(std::string(name))
                       .Help(std::string(help))
                       .Register(state_->registry);
    return std::make_unique<PrometheusHistogram>(family.Add(labels, bounds));
  });
}

std::string Registry::Text() const {
  return prometheus::TextSerializer().Serialize(state_->registry.Collect());
}

std::vector<double> LatencyBounds() {
  return {0.0005, 0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10};
}

}  // namespace berth::metrics
