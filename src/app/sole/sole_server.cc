// SPDX-License-Identifier: Apache-2.0
#include "app/sole/sole_server.h"

#include <algorithm>
#include <string_view>

#include "base/log.h"
#include "rt/sleep.h"

namespace berth::app {
namespace {

constexpr std::string_view kKey = "/guard/server";
constexpr Duration kLook = Duration::Millis(250);

}  // namespace

rt::Task<Result<bool>> SoleServer::TryTake() {
  store::RangeRequest request;
  request.start = kKey;
  CO_TRY(const store::RangeResult found, co_await store_.Range(std::move(request)));
  store::Txn txn;
  txn.conditions.push_back(store::Condition::Absent(std::string(kKey)));
  if (!found.items.empty()) {
    // "ID NAME"
    const std::string_view value = found.items[0].value.view();
    const std::string_view id = value.substr(0, value.find(' '));
    other_ = value.substr(std::min(value.size(), id.size() + 1));
    if (id != options_.id) co_return false;
    txn.conditions[0].mod_revision = found.items[0].mod_revision;
  }
  CO_TRY(const store::LeaseId lease, co_await store_.GrantLease(options_.ttl));
  const Bytes value = Bytes::Concat({options_.id, " ", options_.name});
  txn.ops.push_back(store::Op::Put(std::string(kKey), value, lease));
  CO_TRY(const store::TxnResult result, co_await store_.Commit(std::move(txn)));
  if (result.committed) lease_ = lease;
  co_return result.committed;
}

rt::Task<Result<std::unique_ptr<SoleServer>>> SoleServer::Take(rt::Loop& loop,
                                                               store::Store& store,
                                                               SoleServerOptions options) {
  std::unique_ptr<SoleServer> server(new SoleServer(store, std::move(options)));
  const Time deadline = loop.Now() + server->options_.ttl * 3;
  for (bool is_first = true;; is_first = false) {
    CO_TRY(const bool taken, co_await server->TryTake());
    if (taken) co_return std::move(server);
    if (is_first) LOG_INFO("{} serves from this store; waiting for its end", server->other_);
    if (loop.Now() >= deadline) {
      co_return Conflict("server " + server->other_ +
                         " serves from this store: stop it first; several servers on one store are "
                         "not there yet");
    }
    CO_TRY_STATUS(co_await rt::Sleep(kLook));
  }
}

rt::Task<Status> SoleServer::Keep() {
  for (;;) {
    CO_TRY_STATUS(co_await rt::Sleep(options_.ttl / 4));
    const Status renewed = co_await store_.RenewLease(lease_);
    if (renewed.Is(Reason::kCancelled)) co_return renewed;
    if (!renewed.Is(Reason::kNotFound)) continue;  // renewed, or the store's own trouble
    const Result<bool> taken = co_await TryTake();
    if (taken.status().Is(Reason::kCancelled)) co_return taken.status();
    if (taken.ok() && !*taken) {
      co_return Conflict("server " + other_ + " has taken this store while it was not reached");
    }
  }
}

rt::Task<Status> SoleServer::Leave() {
  const Status revoked = co_await store_.RevokeLease(lease_);
  co_return revoked.Is(Reason::kNotFound) ? OkStatus() : revoked;
}

}  // namespace berth::app
