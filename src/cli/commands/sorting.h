// SPDX-License-Identifier: Apache-2.0
// --sort-by: objects in the order of one field. Numbers and quantities by size, the rest as text;
// objects without the field come first.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "meta/value.h"

namespace berth::cli {

// Orders field values as --sort-by does.
bool FieldLess(const std::string& a, const std::string& b);
// The field as text; "" if it is absent. BadRequest for a path that cannot be read.
Result<std::string> SortKey(const meta::Value& object, std::string_view path);

template <class T, class Projection>
Status SortByField(std::vector<T>& items, std::string_view path, Projection object_of) {
  std::vector<std::pair<std::string, size_t>> order;
  order.reserve(items.size());
  for (size_t i = 0; i < items.size(); ++i) {
    TRY(std::string key, SortKey(std::invoke(object_of, items[i]), path));
    order.emplace_back(std::move(key), i);
  }
  std::ranges::sort(order, [](const auto& a, const auto& b) {
    if (FieldLess(a.first, b.first)) return true;
    return !FieldLess(b.first, a.first) && a.second < b.second;
  });
  std::vector<T> sorted;
  sorted.reserve(items.size());
  for (const auto& [key, index] : order) sorted.push_back(std::move(items[index]));
  items = std::move(sorted);
  return OkStatus();
}

}  // namespace berth::cli
