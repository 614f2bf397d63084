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

#include "base/result.h"
#include "meta/kind.h"
#include "meta/object.h"
#include "rt/task.h"

namespace berth::client {

struct ObjectKey {
  std::string namespace_;  // "" for cluster-scoped kinds
  std::string name;
  auto operator<=>(const ObjectKey&) const = default;
};

struct ListOptions {
  std::string namespace_;  // "": all namespaces
  std::string label_selector;
  std::string field_selector;
  // "": the newest state. "0": whatever is at hand. Otherwise: at least as new as this.
  std::string resource_version;
};

struct ObjectList {
  std::vector<meta::Object> items;
  std::string resource_version;  // watch from here on
};

struct WatchOptions {
  std::string namespace_;
  std::string label_selector;
  std::string field_selector;
  std::string
      resource_version;  // changes after this; "": from now on, beginning with what is there
};

struct WatchEvent {
  enum class Type : uint8_t { kAdded, kModified, kDeleted, kBookmark };
  Type type = Type::kAdded;
  meta::Object object;  // kBookmark: empty but for the kind
  std::string resource_version;
};

class ObjectWatch {
 public:
  virtual ~ObjectWatch() = default;
  // Waits for at least one event. Expired: list again and watch anew.
  virtual rt::Task<Result<std::vector<WatchEvent>>> Next() = 0;
};

enum class Subresource : uint8_t { kNone, kStatus, kFinalize };
enum class DryRun : uint8_t { kNo, kYes };
enum class Propagation : uint8_t { kBackground, kForeground, kOrphan };
enum class PatchType : uint8_t { kJson, kMerge, kStrategicMerge };

struct WriteOptions {
  DryRun dry_run = DryRun::kNo;
  Subresource subresource = Subresource::kNone;
};

struct DeleteOptions {
  DryRun dry_run = DryRun::kNo;
  Propagation propagation = Propagation::kBackground;
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
  virtual rt::Task<Status> Delete(const meta::KindInfo& kind,
                                  ObjectKey key,
                                  DeleteOptions options) = 0;
};

}  // namespace berth::client
