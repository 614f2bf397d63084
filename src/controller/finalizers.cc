// SPDX-License-Identifier: Apache-2.0
#include "controller/finalizers.h"

#include <algorithm>
#include <utility>

namespace berth::controller {

rt::Task<Status> EditMetadata(client::Client& client,
                              const meta::KindInfo& kind,
                              client::ObjectKey key,
                              std::string uid,
                              std::function<bool(meta::ObjectMeta&)> change) {
  Result<meta::Object> object = co_await client.Get(kind, key);
  if (object.status().Is(Reason::kNotFound)) co_return OkStatus();
  CO_TRY_STATUS(object);
  if (object->metadata().uid != uid || !change(object->metadata())) co_return OkStatus();
  const client::WriteOptions options;
  const Result<meta::Object> written = co_await client.Update(*std::move(object), options);
  if (written.status().Is(Reason::kNotFound)) co_return OkStatus();
  co_return written.status();
}

rt::Task<Status> RemoveFinalizer(client::Client& client,
                                 const meta::KindInfo& kind,
                                 client::ObjectKey key,
                                 std::string uid,
                                 std::string finalizer) {
  std::function<bool(meta::ObjectMeta&)> change = [finalizer](meta::ObjectMeta& metadata) {
    return std::erase(metadata.finalizers, finalizer) > 0;
  };
  co_return co_await EditMetadata(client, kind, std::move(key), std::move(uid), std::move(change));
}

bool HasFinalizer(const meta::ObjectMeta& metadata, std::string_view finalizer) {
  return std::ranges::find(metadata.finalizers, finalizer) != metadata.finalizers.end();
}

}  // namespace berth::controller
