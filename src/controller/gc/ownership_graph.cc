// SPDX-License-Identifier: Apache-2.0
#include "controller/gc/ownership_graph.h"

#include <algorithm>
#include <utility>

#include "controller/finalizers.h"

namespace berth::controller {

namespace {

OwnershipGraph::Node NodeOf(const meta::Object& object) {
  const meta::ObjectMeta& metadata = object.metadata();
  OwnershipGraph::Node node{
      .kind = &object.kind(),
      .key = {.namespace_ = metadata.namespace_, .name = metadata.name},
      .owners = {},
      .is_deleting = metadata.deletion_timestamp.has_value(),
  };
  for (const meta::OwnerReference& owner : metadata.owner_references) {
    node.owners.push_back({.uid = owner.uid, .blocks = owner.block_owner_deletion.value_or(false)});
  }
  if (node.is_deleting) {
    node.waits_for_dependents = HasFinalizer(metadata, kForegroundFinalizer);
    node.orphans_dependents = HasFinalizer(metadata, kOrphanFinalizer);
  }
  return node;
}

bool IsWorthKeeping(const OwnershipGraph::Node& node) {
  return !node.owners.empty() || node.waits_for_dependents || node.orphans_dependents;
}

}  // namespace

std::vector<std::string> OwnershipGraph::Put(const meta::Object& object) {
  const std::string& uid = object.metadata().uid;
  if (const auto list = unseen_.find(&object.kind()); list != unseen_.end()) {
    list->second.erase(uid);
  }
  Node node = NodeOf(object);
  const auto found = nodes_.find(uid);
  if (found != nodes_.end() && found->second == node) return {};
  std::vector<std::string> touched;
  if (found != nodes_.end()) {
    for (const Owner& owner : found->second.owners) touched.push_back(owner.uid);
    Unlink(uid, found->second);
    nodes_.erase(found);
  }
  if (!IsWorthKeeping(node)) return touched;
  Link(uid, node);
  touched.push_back(uid);
  if (node.waits_for_dependents) {
    for (std::string& dependent : DependentsOf(uid)) touched.push_back(std::move(dependent));
  }
  nodes_.emplace(uid, std::move(node));
  return touched;
}

std::vector<std::string> OwnershipGraph::Remove(std::string_view uid) {
  std::vector<std::string> touched = DependentsOf(uid);
  const auto found = nodes_.find(uid);
  if (found == nodes_.end()) return touched;
  // An owner may have waited for this one.
  for (const Owner& owner : found->second.owners) touched.push_back(owner.uid);
  Unlink(found->first, found->second);
  nodes_.erase(found);
  return touched;
}

const OwnershipGraph::Node* OwnershipGraph::Find(std::string_view uid) const {
  const auto found = nodes_.find(uid);
  return found == nodes_.end() ? nullptr : &found->second;
}

std::vector<std::string> OwnershipGraph::DependentsOf(std::string_view uid) const {
  const auto found = dependents_.find(uid);
  std::vector<std::string> uids;
  if (found == dependents_.end()) return uids;
  uids.reserve(found->second.size());
  for (const auto& [dependent, nothing] : found->second) uids.push_back(dependent);
  return uids;
}

std::vector<std::string> OwnershipGraph::Owned() const {
  std::vector<std::string> uids;
  for (const auto& [uid, node] : nodes_) {
    if (!node.owners.empty()) uids.push_back(uid);
  }
  return uids;
}

bool OwnershipGraph::HasBlockingDependents(std::string_view uid) const {
  const auto found = dependents_.find(uid);
  if (found == dependents_.end()) return false;
  return std::ranges::any_of(found->second, [&](const auto& dependent) {
    const Node* node = Find(dependent.first);
    return node != nullptr && std::ranges::any_of(node->owners, [uid](const Owner& owner) {
             return owner.uid == uid && owner.blocks;
           });
  });
}

void OwnershipGraph::BeginList(const meta::KindInfo& kind) {
  std::set<std::string>& unseen = unseen_[&kind];
  unseen.clear();
  for (const auto& [uid, node] : nodes_) {
    if (node.kind == &kind) unseen.insert(uid);
  }
}

std::vector<std::string> OwnershipGraph::EndList(const meta::KindInfo& kind) {
  std::vector<std::string> touched;
  const auto list = unseen_.extract(&kind);
  if (list.empty()) return touched;
  for (const std::string& uid : list.mapped()) {
    for (std::string& other : Remove(uid)) touched.push_back(std::move(other));
  }
  return touched;
}

void OwnershipGraph::Link(const std::string& uid, const Node& node) {
  for (const Owner& owner : node.owners) dependents_[owner.uid].try_emplace(uid);
}

void OwnershipGraph::Unlink(const std::string& uid, const Node& node) {
  for (const Owner& owner : node.owners) {
    const auto found = dependents_.find(owner.uid);
    if (found == dependents_.end()) continue;
    found->second.erase(uid);
    if (found->second.empty()) dependents_.erase(found);
  }
}

}  // namespace berth::controller
