// SPDX-License-Identifier: Apache-2.0
// Client is how every component reads and writes objects, in the same process or over HTTPS.
// Controllers, the scheduler and the CLI see nothing else of the API server. All bodies pass
// client/conformance.
//
// Writes are idempotent through their preconditions: Create by name, Update by resourceVersion,
// Delete by UID.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "meta/kind.h"
#include "meta/object.h"
#include "meta/shared_object.h"
#include "rt/task.h"

namespace berth::client {

struct ObjectKey {
  std::string namespace_;  // "" for cluster-scoped kinds
  std::string name;
  auto operator<=>(const ObjectKey&) const = default;
};

// How much of each object is wanted.
enum class Detail : uint8_t {
  kFull,
  kMetadata,  // nothing beyond metadata is promised: cheap to send and to decode
};

// What becomes of a list with an object that is there and cannot be read.
enum class Unreadable : uint8_t {
  kSkip,  // it is not in the list, as over HTTPS
  kName,  // it is not in the list, and named beside it: for those who must not take it for absent
  kFail,  // there is no list: for those whom what they do not see may cost everything
};

// An object that is there and cannot be read.
struct Unread {
  ObjectKey key;
  std::string uid;  // "": not even its header can be read, so whatever selects may mean it
  Bytes at_rest;    // as the store has it
};

struct ListOptions {
  std::string namespace_;  // "": all namespaces
  std::string label_selector;
  std::string field_selector;
  Detail detail = Detail::kFull;
  size_t limit = 0;            // 0: all at once
  std::string continue_token;  // of the page before
  // "": the newest state. "0": whatever is at hand. Otherwise: at least as new as this.
  std::string resource_version;
  Unreadable unreadable = Unreadable::kSkip;
};

struct ObjectList {
  std::vector<meta::Object> items;
  std::string resource_version;  // watch from here on
  std::string continue_token;    // "" on the last page; Expired once its state is compacted
  std::vector<Unread> unread;    // of kName: all of them, some perhaps with every page
};

struct WatchOptions {
  std::string namespace_;
  std::string label_selector;
  std::string field_selector;
  Detail detail = Detail::kFull;
  // Changes after this; "": from now on, beginning with what is there.
  std::string resource_version;
};

struct WatchEvent {
  enum class Type : uint8_t { kAdded, kModified, kDeleted, kBookmark };
  Type type = Type::kAdded;
  meta::SharedObject object;  // kBookmark: empty but for the kind
  std::string resource_version;
};

class ObjectWatch {
 public:
  virtual ~ObjectWatch() = default;
  // Waits for at least one event; bookmarks come while nothing happens. Expired: list again and
  // watch anew. Any other error: watch anew after the last resource_version seen.
  virtual rt::Task<Result<std::vector<WatchEvent>>> Next() = 0;
};

enum class Subresource : uint8_t {
  kNone,
  kStatus,
  kFinalize,  // Namespace: spec.finalizers
};
enum class DryRun : uint8_t { kNo, kYes };
// kYes: do not wait for the host that the object is bound to. Its host may still run it: whoever
// says so knows better.
enum class Force : uint8_t { kNo, kYes };
enum class Propagation : uint8_t { kBackground, kForeground, kOrphan };
enum class PatchType : uint8_t { kJson, kMerge, kStrategicMerge };

struct WriteOptions {
  DryRun dry_run = DryRun::kNo;
  Subresource subresource = Subresource::kNone;
};

struct DeleteOptions {
  DryRun dry_run = DryRun::kNo;
  Propagation propagation = Propagation::kBackground;
  Force force = Force::kNo;
  std::string uid;               // precondition, "" for none
  std::string resource_version;  // precondition, "" for none
};

class Client {
 public:
  virtual ~Client() = default;

  virtual rt::Task<Result<meta::Object>> Get(const meta::KindInfo& kind, ObjectKey key) = 0;
  virtual rt::Task<Result<ObjectList>> List(const meta::KindInfo& kind, ListOptions options) = 0;
  virtual rt::Task<Result<std::unique_ptr<ObjectWatch>>> Watch(const meta::KindInfo& kind,
                                                               WatchOptions options) = 0;

  virtual rt::Task<Result<meta::Object>> Create(meta::Object object, WriteOptions options) = 0;
  // Many objects with few commits; one verdict per object, in order. Not atomic over the whole.
  virtual rt::Task<std::vector<Result<meta::Object>>> CreateBatch(std::vector<meta::Object> objects,
                                                                  WriteOptions options) = 0;
  // The object's resourceVersion is the precondition; an empty one is a BadRequest.
  virtual rt::Task<Result<meta::Object>> Update(meta::Object object, WriteOptions options) = 0;
  virtual rt::Task<Result<meta::Object>> Patch(const meta::KindInfo& kind,
                                               ObjectKey key,
                                               PatchType type,
                                               std::string body,
                                               WriteOptions options) = 0;
  // Ok if it is gone or on its way: finalizers may keep it for a while. NotFound if there is none.
  virtual rt::Task<Status> Delete(const meta::KindInfo& kind,
                                  ObjectKey key,
                                  DeleteOptions options) = 0;
};

}  // namespace berth::client
