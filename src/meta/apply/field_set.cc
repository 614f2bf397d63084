// SPDX-License-Identifier: Apache-2.0
#include "meta/apply/field_set.h"

#include <algorithm>

#include "meta/json.h"
#include "meta/value.h"

namespace berth::meta {

namespace {

constexpr std::string_view kField = "f:";
constexpr std::string_view kKeys = "k:";
constexpr std::string_view kItem = "v:";
constexpr size_t kPrefix = 2;

std::string KeysText(std::string_view json) {
  const auto keys = ParseJson(json);
  if (!keys.ok() || !keys->is_object()) return std::string(json);
  std::string text;
  for (const auto& [name, value] : keys->members()) {
    if (!text.empty()) text += ',';
    text += name;
    text += '=';
    WriteJson(value, text);
  }
  return text;
}

}  // namespace

std::string FieldElement(std::string_view name) {
  std::string element(kField);
  element += name;
  return element;
}

std::string PathText(const PathElements& path) {
  std::string text;
  for (const std::string& element : path) {
    const std::string_view rest = std::string_view(element).substr(kPrefix);
    if (element.starts_with(kField)) {
      text += '.';
      text += rest;
      continue;
    }
    text += '[';
    if (element.starts_with(kKeys)) {
      text += KeysText(rest);
    } else {
      if (element.starts_with(kItem)) text += '=';
      text += rest;
    }
    text += ']';
  }
  return text;
}

FieldSet::FieldSet() = default;
FieldSet::FieldSet(const FieldSet& other) = default;
FieldSet::FieldSet(FieldSet&& other) noexcept = default;
FieldSet& FieldSet::operator=(const FieldSet& other) = default;
FieldSet& FieldSet::operator=(FieldSet&& other) noexcept = default;
FieldSet::~FieldSet() = default;

size_t FieldSet::size() const {
  size_t count = 0;
  for (const auto& [element, node] : nodes_) count += (node.is_member ? 1 : 0) + node.below.size();
  return count;
}

bool FieldSet::operator==(const FieldSet& other) const {
  return std::ranges::equal(nodes_, other.nodes_, [](const auto& a, const auto& b) {
    return a.first == b.first && a.second.is_member == b.second.is_member &&
           a.second.below == b.second.below;
  });
}

void FieldSet::Insert(const PathElements& path) {
  FieldSet* at = this;
  Node* node = nullptr;
  for (const std::string& element : path) {
    node = &at->nodes_[element];
    at = &node->below;
  }
  node->is_member = true;
}

bool FieldSet::Contains(const PathElements& path) const {
  const FieldSet* at = this;
  for (size_t i = 0; i + 1 < path.size() && at != nullptr; ++i) at = at->Below(path[i]);
  return at != nullptr && !path.empty() && at->Has(path.back());
}

void FieldSet::Unite(const FieldSet& other) {
  for (const auto& [element, node] : other.nodes_) {
    Node& mine = nodes_[element];
    mine.is_member = mine.is_member || node.is_member;
    mine.below.Unite(node.below);
  }
}

void FieldSet::Subtract(const FieldSet& other) {
  for (const auto& [element, node] : other.nodes_) {
    const auto found = nodes_.find(element);
    if (found == nodes_.end()) continue;
    Node& mine = found->second;
    mine.is_member = mine.is_member && !node.is_member;
    mine.below.Subtract(node.below);
    if (!mine.is_member && mine.below.empty()) nodes_.erase(found);
  }
}

FieldSet FieldSet::Intersection(const FieldSet& other) const {
  FieldSet common;
  for (const auto& [element, node] : other.nodes_) {
    const auto found = nodes_.find(element);
    if (found == nodes_.end()) continue;
    Node both{.is_member = node.is_member && found->second.is_member,
              .below = found->second.below.Intersection(node.below)};
    if (both.is_member || !both.below.empty()) common.nodes_.emplace(element, std::move(both));
  }
  return common;
}

void FieldSet::DropTree(std::string_view element) {
  const auto found = nodes_.find(element);
  if (found != nodes_.end()) nodes_.erase(found);
}

void FieldSet::KeepTree(std::string_view element) {
  std::erase_if(nodes_, [element](const auto& entry) { return entry.first != element; });
}

bool FieldSet::Has(std::string_view element) const {
  const auto found = nodes_.find(element);
  return found != nodes_.end() && found->second.is_member;
}

const FieldSet* FieldSet::Below(std::string_view element) const {
  const auto found = nodes_.find(element);
  if (found == nodes_.end() || found->second.below.empty()) return nullptr;
  return &found->second.below;
}

void FieldSet::ForEach(const std::function<void(const PathElements& path)>& visit) const {
  PathElements path;
  ForEach(path, visit);
}

void FieldSet::ForEach(PathElements& path,
                       const std::function<void(const PathElements& path)>& visit) const {
  for (const auto& [element, node] : nodes_) {
    path.push_back(element);
    if (node.is_member) visit(path);
    node.below.ForEach(path, visit);
    path.pop_back();
  }
}

}  // namespace berth::meta
