// SPDX-License-Identifier: Apache-2.0
// Figures that a bench prints: as a table for people, as one JSON object per line for programs.
#pragma once

#include <map>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

namespace berth::app {

struct Figure {
  std::string metric;
  double value = 0;
  std::string unit;
  std::map<std::string, std::string> params;  // what the figure depends on
};

// Says beside the figure what it may be at most, and whether it is: params bar=3 verdict=within. A
// bench does not fail for being slow: whoever reads the figures knows on what they were measured.
void AddBar(Figure& figure, double most);

// {"bench":"api","metric":"list_10k_ms","value":41.5,"unit":"ms","params":{...}}
std::string FigureJson(std::string_view bench, const Figure& figure);
void PrintTable(std::string_view bench, const std::vector<Figure>& figures, std::ostream& out);

// The middle value, and the largest of the lower 99 %. REQUIRES: not empty.
double Median(std::vector<double> values);
double Percentile(std::vector<double> values, double fraction);

}  // namespace berth::app
