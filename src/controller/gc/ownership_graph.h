// SPDX-License-Identifier: Apache-2.0
// The OwnershipGraph knows which objects belong to which: only objects that have owners, or that
// are being deleted in the foreground or as an orphaner, are kept, and of those only names, UIDs
// and references. Pure.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/text_map.h"
#include "client/client.h"
#include "meta/kind.h"
#include "meta/object.h"

namespace berth::controller {

class OwnershipGraph {
 public:
  struct Owner {
    std::string uid;
    bool blocks = false;  // blockOwnerDeletion
    bool operator==(const Owner&) const = default;
  };
  struct Node {
    const meta::KindInfo* kind = nullptr;
    client::ObjectKey key;
    std::vector<Owner> owners;
    bool is_deleting = false;
    bool waits_for_dependents = false;  // deleting with foregroundDeletion
    bool orphans_dependents = false;    // deleting with orphan
    bool operator==(const Node&) const = default;
  };

  // Takes the newest state of an object. Returns the UIDs that are to be looked at because of it.
  std::vector<std::string> Put(const meta::Object& object);
  // An object is gone. The same.
  std::vector<std::string> Remove(std::string_view uid);

  // Null if the graph does not keep it.
  const Node* Find(std::string_view uid) const;
  // UIDs of objects that name `uid` as an owner.
  std::vector<std::string> DependentsOf(std::string_view uid) const;
  // UIDs of all objects that have owners.
  std::vector<std::string> Owned() const;
  bool HasBlockingDependents(std::string_view uid) const;

  // A list of one kind begins and ends: what was not put in between is removed.
  void BeginList(const meta::KindInfo& kind);
  std::vector<std::string> EndList(const meta::KindInfo& kind);

  size_t size() const { return nodes_.size(); }

 private:
  void Link(const std::string& uid, const Node& node);
  void Unlink(const std::string& uid, const Node& node);

  TextMap<Node> nodes_;                                            // by UID
  TextMap<TextMap<std::monostate>> dependents_;                    // by UID of the owner
  std::map<const meta::KindInfo*, std::set<std::string>> unseen_;  // during lists
};

}  // namespace berth::controller
