// SPDX-License-Identifier: Apache-2.0
#include "client/release/release.h"

#include <utility>

#include "apis/placement.h"

namespace berth::client {
namespace {

constexpr int kAttempts = 5;

// Whether the object is still where the request means.
bool IsMeant(const meta::Object& object, const ReleaseRequest& request) {
  return object.metadata().uid == request.uid && !object.metadata().deletion_timestamp &&
         apis::IsBound(object) && apis::EpochOf(object) == request.placement;
}

WriteOptions StatusOptions() {
  WriteOptions options;
  options.subresource = Subresource::kStatus;
  return options;
}

}  // namespace

rt::Task<Result<ReleaseOutcome>> AskToLeave(rt::Loop& loop,
                                            Client& client,
                                            ReleaseRequest request) {
  Status last;
  const WriteOptions options = StatusOptions();
  for (int i = 0; i < kAttempts; ++i) {
    Result<meta::Object> object = co_await client.Get(*request.kind, request.key);
    if (object.status().Is(Reason::kNotFound)) co_return ReleaseOutcome::kLeavesAlready;
    CO_TRY_STATUS(object);
    if (!IsMeant(*object, request) || !apis::PlacementOf(*object)->release.empty()) {
      co_return ReleaseOutcome::kLeavesAlready;
    }
    apis::PlacementOf(*object)->release = request.reason;
    apis::SetReleased(*object, "True", request.reason, request.message, loop.WallNow());
    const Result<meta::Object> written = co_await client.Update(*std::move(object), options);
    if (written.ok()) co_return ReleaseOutcome::kAsked;
    last = written.status();
    if (!last.Is(Reason::kConflict)) break;
  }
  co_return last;
}

rt::Task<Status> SayItStays(rt::Loop& loop, Client& client, ReleaseRequest request) {
  Result<meta::Object> object = co_await client.Get(*request.kind, request.key);
  if (object.status().Is(Reason::kNotFound)) co_return OkStatus();
  CO_TRY_STATUS(object);
  if (!IsMeant(*object, request) || !apis::PlacementOf(*object)->release.empty()) {
    co_return OkStatus();
  }
  const meta::Object before = *object;
  apis::SetReleased(*object, "False", request.reason, request.message, loop.WallNow());
  if (*object == before) co_return OkStatus();
  const WriteOptions options = StatusOptions();
  const Result<meta::Object> written = co_await client.Update(*std::move(object), options);
  co_return written.status();
}

}  // namespace berth::client
