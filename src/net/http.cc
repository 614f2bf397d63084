// SPDX-License-Identifier: Apache-2.0
#include "net/http.h"

#include <algorithm>
#include <utility>

#include "base/strings.h"

namespace berth::net {

std::string_view Headers::Get(std::string_view name) const {
  for (const Header& field : fields_) {
    if (EqualsIgnoreCase(field.name, name)) return field.value;
  }
  return {};
}

std::vector<std::string_view> Headers::GetAll(std::string_view name) const {
  std::vector<std::string_view> values;
  for (const Header& field : fields_) {
    if (EqualsIgnoreCase(field.name, name)) values.push_back(field.value);
  }
  return values;
}

bool Headers::Has(std::string_view name) const {
  return std::ranges::any_of(
      fields_, [name](const Header& field) { return EqualsIgnoreCase(field.name, name); });
}

void Headers::Set(std::string_view name, std::string value) {
  Remove(name);
  Add(name, std::move(value));
}

void Headers::Add(std::string_view name, std::string value) {
  fields_.push_back({.name = std::string(name), .value = std::move(value)});
}

void Headers::Remove(std::string_view name) {
  std::erase_if(fields_,
                [name](const Header& field) { return EqualsIgnoreCase(field.name, name); });
}

}  // namespace berth::net
