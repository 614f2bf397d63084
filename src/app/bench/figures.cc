// SPDX-License-Identifier: Apache-2.0
#include "app/bench/figures.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/check.h"
#include "meta/json.h"
#include "meta/value.h"

namespace berth::app {

void AddBar(Figure& figure, double most) {
  figure.params["bar"] = fmt::format("{}", most);
  figure.params["verdict"] = figure.value <= most ? "within" : "over";
}

std::string FigureJson(std::string_view bench, const Figure& figure) {
  meta::Value line = meta::Value::Object();
  line.Set("bench", bench);
  line.Set("metric", figure.metric);
  line.Set("value", figure.value);
  line.Set("unit", figure.unit);
  meta::Value params = meta::Value::Object();
  for (const auto& [key, value] : figure.params) params.Set(key, value);
  line.Set("params", std::move(params));
  return meta::WriteJson(line);
}

void PrintTable(std::string_view bench, const std::vector<Figure>& figures, std::ostream& out) {
  out << fmt::format(
      "{:<8} {:<24} {:>14} {:<8} {}\n", "BENCH", "METRIC", "VALUE", "UNIT", "PARAMS");
  for (const auto& figure : figures) {
    std::string params;
    for (const auto& [key, value] : figure.params) {
      if (!params.empty()) params += ' ';
      params += fmt::format("{}={}", key, value);
    }
    out << fmt::format("{:<8} {:<24} {:>14.2f} {:<8} {}\n",
                       bench,
                       figure.metric,
                       figure.value,
                       figure.unit,
                       params);
  }
}

double Percentile(std::vector<double> values, double fraction) {
  CHECK(!values.empty());
  std::ranges::sort(values);
  const auto index = static_cast<size_t>(fraction * static_cast<double>(values.size()));
  return values[std::min(index, values.size() - 1)];
}

double Median(std::vector<double> values) { return Percentile(std::move(values), 0.5); }

}  // namespace berth::app
