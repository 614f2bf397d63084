// SPDX-License-Identifier: Apache-2.0
// Drafts are objects that are not in the store, and that count as if they were while somebody asks
// where one of them would go: see ObjectDirectory::WithDrafts. What exists counts as it is.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "apis/compute/machine_class.h"
#include "client/client.h"
#include "meta/object.h"
#include "scheduler/core/words.h"
#include "scheduler/placing/object_directory.h"

namespace berth::scheduler {

struct Drafts {
  struct Draft {
    const meta::Object* object = nullptr;
    ObjectRecord record;
  };
  using Name = std::pair<std::string_view, client::ObjectKey>;  // of the kind, and its own

  // A UID for what has none: the same for the same name, and never a UUID.
  static std::string UidFor(const meta::KindInfo& kind, const client::ObjectKey& key);

  // The object outlives the drafts. Of two with one name the first counts.
  void Add(const meta::Object& object, ObjectRecord record);
  // Null: there is none.
  const ObjectRecord* Find(const meta::KindInfo& kind, const client::ObjectKey& key) const;

  std::map<std::string, apis::compute::MachineClass, std::less<>> classes;
  std::map<Name, Draft> objects;
  std::set<ObjectKey> copies;  // of reservations among them that have room on the board
};

}  // namespace berth::scheduler
