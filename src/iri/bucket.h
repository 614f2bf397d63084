// SPDX-License-Identifier: Apache-2.0
// BucketRuntime keeps buckets: the C++ side of bucket.v1alpha1.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "iri/object.h"
#include "rt/task.h"

namespace berth::iri {

enum class BucketState : uint8_t { kPending, kAvailable, kError, kUnknown = 255 };
std::string_view BucketStateName(BucketState state);

struct BucketAccess {
  std::string endpoint;
  SecretMap secret_data;
  bool operator==(const BucketAccess&) const = default;
};
struct Bucket {
  ObjectMetadata metadata;
  std::string class_name;
  BucketState state = BucketState::kPending;
  BucketAccess access;  // with kAvailable
  bool operator==(const Bucket&) const = default;
};
struct BucketClass {
  std::string name;
  int64_t tps = 0;
  int64_t iops = 0;
  bool operator==(const BucketClass&) const = default;
};

// All methods: NotFound for an unknown id; Unavailable or Timeout if the outcome is not known.
class BucketRuntime {
 public:
  virtual ~BucketRuntime() = default;

  virtual rt::Task<Result<RuntimeVersion>> Version() = 0;
  virtual rt::Task<Result<std::vector<Event>>> ListEvents(EventFilter filter) = 0;
  virtual rt::Task<Result<std::vector<Bucket>>> ListBuckets(ObjectFilter filter) = 0;
  // Idempotent by kBucketUidLabel under the rule of MachineRuntime::CreateMachine.
  virtual rt::Task<Result<Bucket>> CreateBucket(Bucket bucket) = 0;
  // Ok: deletion has begun; list until it is gone. Idempotent.
  virtual rt::Task<Status> DeleteBucket(std::string id) = 0;
  virtual rt::Task<Result<std::vector<BucketClass>>> ListBucketClasses() = 0;
};

}  // namespace berth::iri
