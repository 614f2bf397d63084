// SPDX-License-Identifier: Apache-2.0
// The Registry does what a request asks for, on objects: it knows defaults, validation, admission,
// generations, finalizers, preconditions and commits, but nothing of HTTP, users' rights or
// encodings. HTTP handlers and the in-process client are two thin shells around it.
//
// Reads come from the watch cache and are as fresh as the store; a write returns once it is durable
// and the cache has it, so a client always reads its own writes. All functions run on the
// registry's loop.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apiserver/identity.h"
#include "base/bytes.h"
#include "base/result.h"
#include "client/binder.h"
#include "client/client.h"
#include "client/rewound.h"
#include "client/tombstones.h"
#include "meta/field_selector.h"
#include "meta/kind.h"
#include "meta/label_selector.h"
#include "meta/object.h"
#include "meta/shared_object.h"
#include "rt/task.h"
#include "store/store.h"

namespace berth::apiserver {

using client::DryRun;
using client::ObjectKey;
using client::Subresource;

// An object as it lies in the cache: encoded, with its revision. Cheap to copy; decode only what
// must be looked into. The bytes are always those of the stored kind: whoever asked for a view
// (KindInfo::view) decodes and converts.
struct StoredObject {
  Bytes at_rest;  // meta/at_rest.h: header and body
  store::Revision revision;
};

struct Selection {
  std::string namespace_;  // "": all
  meta::Selector labels;
  meta::FieldSelector fields;
};

struct ListRequest {
  Selection selection;
  size_t limit = 0;                    // 0: all
  std::string continue_token;          // opaque; Expired once its revision is compacted
  std::string resource_version;        // "", "0", or a revision
  std::string resource_version_match;  // "", "Exact", "NotOlderThan"
  bool wants_remaining = true;         // counting costs as much as there is to count
  bool wants_keys = false;             // of every item, and everything that is passed over
};

// An object that is there and cannot be read.
struct PassedOver {
  std::string key;  // NAMESPACE/NAME or NAME
  StoredObject object;
};

struct ListPage {
  std::vector<StoredObject> items;
  store::Revision revision;
  std::string continue_token;        // "" on the last page
  std::optional<int64_t> remaining;  // how many more there are, if known
  std::vector<std::string> keys;     // of items, in order, if they are wanted
  // What has no readable header: all of it if keys are wanted, otherwise the first few.
  std::vector<PassedOver> passed_over;
};

// The encoded frames of one event. Whoever encodes an event first leaves the frame here for all
// other watchers of the same event. A form is a number that the encoder gives to everything that a
// frame depends on besides the object: event type, domain spelling, table or not.
class EventFrames {
 public:
  // Null if there is none yet.
  const Bytes* Find(uint32_t form) const;
  // Beyond kFormsMax the frame is not kept.
  void Keep(uint32_t form, Bytes frame);
  // The object itself, decoded, for watchers in this process; empty until one has decoded it.
  const meta::SharedObject& decoded() const { return decoded_; }
  void KeepDecoded(meta::SharedObject object) { decoded_ = std::move(object); }
  // Forgets all of it: an old event is rarely read again, and its frames weigh as much as the
  // object.
  void Drop() {
    frames_.clear();
    decoded_ = {};
  }

 private:
  struct Frame {
    uint32_t form;
    Bytes bytes;
  };
  std::vector<Frame> frames_;
  meta::SharedObject decoded_;
};

struct RegistryEvent {
  enum class Type : uint8_t { kAdded, kModified, kDeleted, kBookmark };
  Type type = Type::kAdded;
  StoredObject object;  // kDeleted: the last state with the revision of the deletion. kBookmark:
                        // revision only
  std::shared_ptr<EventFrames> frames;  // null for the initial state, bookmarks, old events
  bool ends_state = false;              // a bookmark: all of the initial state has been told
};

// A watch of one kind through a selection; transitions in and out of the selection become ADDED and
// DELETED.
class RegistryWatch {
 public:
  virtual ~RegistryWatch() = default;
  // All pending events, at least one; those of one commit always come together. Expired when the
  // reader fell behind the bounded buffer or the start is too old.
  virtual rt::Task<Result<std::vector<RegistryEvent>>> Next() = 0;
};

// What a watch tells before the first change.
enum class InitialState : uint8_t {
  kByVersion,  // everything if the version is "" or "0", else nothing
  kTold,       // everything, as new as the version at least; with bookmarks, one says when it ends
  kNotTold,    // nothing: changes after the version, or from now on
};

struct WatchStart {
  Selection selection;
  std::string resource_version;  // "" or "0": the newest, or any
  bool bookmarks = false;
  InitialState initial = InitialState::kByVersion;
};

// What becomes of metadata.managedFields.
enum class Ownership : uint8_t {
  kUnrecorded,  // it stays as it is: the server's own parts write
  kUpdated,     // what the write changes belongs to its manager from now on
  kApplied,     // the written object says it, because apply has settled it
};

// What a write needs to know about its sender.
struct WriteContext {
  Identity identity;
  DryRun dry_run = DryRun::kNo;
  Subresource subresource = Subresource::kNone;
  Ownership ownership = Ownership::kUnrecorded;
  std::string field_manager;
  std::string managed_subresource;               // as managedFields names it: "", "status", "scale"
  std::vector<std::string>* warnings = nullptr;  // becomes Warning headers
  // Of a create: the UID under which a host has it already (apis/adoption.h); "" for a new one.
  std::string adopted_uid;
  // Rights that depend on what is written (RBAC escalation, tokens). Called with the state before
  // (null for a new object) and the state wanted, each time before a commit; its error is the
  // answer. May be empty.
  std::function<Status(const meta::Object* before, const meta::Object& after)> guard;
  // The right to remove an object by force, asked before the commit. May be empty.
  std::function<Status(const meta::Object& object)> force_guard;
};

// Changes the current state of an object into the wanted one. May run several times (conflicts), so
// it has no effects.
using Mutation = std::function<Result<meta::Object>(const meta::Object& current)>;

struct WriteResult {
  StoredObject object;
  bool created = false;
};

// A deletion by force does not wait for the host that an object is bound to, and leaves a tombstone
// for it.
struct DeleteRequest {
  client::Force force = client::Force::kNo;
  // Not set: in the background, unless a finalizer of the object asks for another way.
  std::optional<client::Propagation> propagation;
  std::optional<int64_t> grace_period_seconds;
  std::string uid;  // preconditions, "" for none
  std::string resource_version;
};

struct DeleteResult {
  StoredObject object;  // its last state
  bool gone = false;    // false: finalizers keep it for now
};

class Registry {
 public:
  virtual ~Registry() = default;

  virtual rt::Task<Result<StoredObject>> Get(const meta::KindInfo& kind,
                                             ObjectKey key,
                                             std::string resource_version) = 0;
  virtual rt::Task<Result<ListPage>> List(const meta::KindInfo& kind, ListRequest request) = 0;
  virtual rt::Task<Result<std::unique_ptr<RegistryWatch>>> Watch(const meta::KindInfo& kind,
                                                                 WatchStart start) = 0;

  virtual rt::Task<Result<WriteResult>> Create(meta::Object object, WriteContext context) = 0;
  virtual rt::Task<std::vector<Result<WriteResult>>> CreateBatch(std::vector<meta::Object> objects,
                                                                 WriteContext context) = 0;
  // The object's resourceVersion, if not empty, is the precondition.
  virtual rt::Task<Result<WriteResult>> Update(meta::Object object, WriteContext context) = 0;
  // Read, change, write, again on conflict (a bounded number of times). A mutation that returns an
  // object with a resourceVersion other than the current one fails with Conflict.
  virtual rt::Task<Result<WriteResult>> Mutate(const meta::KindInfo& kind,
                                               ObjectKey key,
                                               Mutation mutation,
                                               WriteContext context) = 0;
  virtual rt::Task<Result<DeleteResult>> Delete(const meta::KindInfo& kind,
                                                ObjectKey key,
                                                DeleteRequest request,
                                                WriteContext context) = 0;
  virtual rt::Task<Result<ListPage>> DeleteCollection(const meta::KindInfo& kind,
                                                      ListRequest which,
                                                      DeleteRequest request,
                                                      WriteContext context) = 0;

  // Where placements change, what hosts still have to remove, and what they run that the store has
  // lost. All live as long as the registry.
  virtual client::Binder& binder() = 0;
  virtual client::Tombstones& tombstones() = 0;
  virtual client::Rewound& rewound() = 0;
};

}  // namespace berth::apiserver
