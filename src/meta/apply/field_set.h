// SPDX-License-Identifier: Apache-2.0
// A set of paths to fields of an object, as a trie. A path is a list of elements in the form that
// fieldsV1 gives them: f:NAME is a field or a map's key, k:{"name":"x"} the list item with these
// keys, v:"x" a set's item, i:3 an index. Elements are compared as text, so they are canonical
// (fields_v1.h).
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace berth::meta {

using PathElements = std::vector<std::string>;

// "f:NAME".
std::string FieldElement(std::string_view name);
// As conflicts name it: .spec.volumes[name="root"].device
std::string PathText(const PathElements& path);

class FieldSet {
 public:
  FieldSet();
  FieldSet(const FieldSet& other);
  FieldSet(FieldSet&& other) noexcept;
  FieldSet& operator=(const FieldSet& other);
  FieldSet& operator=(FieldSet&& other) noexcept;
  ~FieldSet();

  bool empty() const { return nodes_.empty(); }
  size_t size() const;  // paths
  bool operator==(const FieldSet& other) const;

  // A path may be in the set without its parents or children. REQUIRES: not empty.
  void Insert(const PathElements& path);
  bool Contains(const PathElements& path) const;
  void Unite(const FieldSet& other);
  void Subtract(const FieldSet& other);
  FieldSet Intersection(const FieldSet& other) const;
  // Takes out an element of the first level with everything below it, or all but that.
  void DropTree(std::string_view element);
  void KeepTree(std::string_view element);

  // One step down: whether the path of this one element is in the set, and what is below it (null
  // if nothing is).
  bool Has(std::string_view element) const;
  const FieldSet* Below(std::string_view element) const;

  // In order of the elements, parents first.
  void ForEach(const std::function<void(const PathElements& path)>& visit) const;

 private:
  friend class FieldsReader;
  friend class FieldsWriter;
  struct Node;
  using Nodes = std::map<std::string, Node, std::less<>>;

  void ForEach(PathElements& path,
               const std::function<void(const PathElements& path)>& visit) const;

  Nodes nodes_;  // none without a path in it or below it
};

struct FieldSet::Node {
  bool is_member = false;
  FieldSet below;
};

}  // namespace berth::meta
