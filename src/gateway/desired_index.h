// SPDX-License-Identifier: Apache-2.0
// The DesiredIndex knows what the store wants where (G1): every machine, volume, snapshot and
// bucket that was ever placed, by UID and by pool, and who refers to whom. It keeps a few words per
// object, not the objects: bodies are assembled when they are sent. Of several objects with one UID
// it knows the first: deleting a copy must not end what runs.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/text_map.h"
#include "client/cache/health_report.h"
#include "client/cache/reflector.h"
#include "client/cache/twins.h"
#include "client/client.h"
#include "gateway/rules/bodies.h"
#include "meta/object.h"
#include "rt/loop.h"
#include "rt/scope.h"

namespace berth::gateway {

struct DesiredEntry {
  const meta::KindInfo* kind = nullptr;
  client::ObjectKey key;
  std::string uid;
  std::string pool_uid;  // "": bound nowhere
  uint64_t placement = 0;
  bool is_deleting = false;  // and nobody uses it
  // Somebody else looks after it: its host keeps what it has, and is not told of changes.
  bool is_managed_elsewhere = false;
  std::string release;  // why it has to leave its pool; "" if it has not
  // Its host is to remove it.
  bool must_go() const { return is_deleting || !release.empty(); }
  uint64_t fingerprint = 0;  // of what a body is made of, as far as the object itself goes
  std::string hash;          // of the body as it was last assembled; "" if that is out of date
  uint64_t touches = 0;      // how often anything of it changed
  std::set<std::string> references;
};

// Who is told of changes.
class DesiredListener {
 public:
  virtual ~DesiredListener() = default;
  // `before` is null for a new entry, `now` for one that is gone. `object` (may be null) is the
  // object as it is now.
  virtual void OnEntry(const DesiredEntry* before,
                       const DesiredEntry* now,
                       const meta::Object* object) = 0;
  // Something that this object's body is made of has changed.
  virtual void OnReferenced(const DesiredEntry& entry) = 0;
};

class DesiredIndex {
 public:
  // Everything outlives the index.
  DesiredIndex(rt::Loop& loop, client::Client& client, DesiredListener& listener);
  ~DesiredIndex();

  // Follows the store in tasks of `scope`.
  void Start(rt::TaskScope& scope);
  // Everything was listed once.
  bool synced() const;
  void Report(std::string_view name, client::HealthReport& report) const;

  const DesiredEntry* Find(std::string_view uid) const;
  // UIDs bound to the pool.
  const std::set<std::string>& OfPool(const std::string& pool_uid) const;
  size_t size() const { return entries_.size(); }
  template <class Visit>  // visit(entry)
  void ForEach(const Visit& visit) const {
    for (const auto& [uid, entry] : entries_) visit(entry);
  }

  // What was looked at to assemble the object: changes of it are told from now on.
  void SetReferences(const std::string& uid, const client::ObjectKey& key, const Parts& parts);
  // Has no effect if anything changed since `touches`.
  void SetHash(const std::string& uid, uint64_t touches, const std::string& hash);

 private:
  class Placed;
  class Referenced;

  void Put(const meta::Object& object);
  void Add(DesiredEntry fresh, const meta::Object* object);
  void Remove(const meta::KindInfo& kind, const client::ObjectKey& key, const std::string& uid);
  void Touch(std::string_view kind, const client::ObjectKey& key);
  void TouchAll(std::string_view kind);
  void Unlink(DesiredEntry& entry);

  DesiredListener& listener_;
  TextMap<DesiredEntry> entries_;
  client::Twins<DesiredEntry> twins_{"gateway"};
  TextMap<std::set<std::string>> of_pool_;
  // "secrets/default/x" to the UIDs whose bodies hold it.
  std::map<std::string, std::set<std::string>> users_;
  std::vector<std::unique_ptr<Placed>> placed_;
  std::vector<std::unique_ptr<Referenced>> referenced_;
};

}  // namespace berth::gateway
