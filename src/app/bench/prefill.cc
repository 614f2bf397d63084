// SPDX-License-Identifier: Apache-2.0
#include "app/bench/prefill.h"

#include <filesystem>
#include <utility>

#include "apiserver/cache/keys.h"
#include "base/uid.h"
#include "meta/at_rest.h"
#include "rt/scope.h"
#include "store/rocks/rocks_store.h"

namespace berth::app {
namespace {

constexpr size_t kPerCommit = 100;  // of 128 keys that a commit may have

store::Txn NextCommit(rt::Loop& loop, const MachineTemplate& machine, size_t from, size_t to) {
  store::Txn txn;
  for (size_t i = from; i < to; ++i) {
    meta::Object object = machine.object();
    auto& metadata = object.metadata();
    metadata.name = "m-" + std::to_string(i);
    metadata.namespace_ = "default";
    metadata.uid = NewUid(loop.random());
    metadata.generation = 1;
    metadata.creation_timestamp = loop.WallNow();
    txn.ops.push_back(store::Op::Put(
        apiserver::StoreKey(object.kind(),
                            {.namespace_ = metadata.namespace_, .name = metadata.name}),
        meta::EncodeAtRest(object)));
  }
  return txn;
}

}  // namespace

rt::Task<Status> Prefill(rt::AsioLoop& loop,
                         std::string folder,
                         const MachineTemplate& machine,
                         size_t objects) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) co_return Unavailable(folder + ": " + error.message());
  store::RocksOptions options;
  options.dir = folder + "/store";
  CO_TRY(const auto rocks, store::RocksStore::Open(loop, std::move(options)));
  auto handle = rocks->NewHandle();
  for (size_t i = 0; i < objects; i += kPerCommit) {
    store::Txn txn = NextCommit(loop, machine, i, std::min(objects, i + kPerCommit));
    CO_TRY_STATUS(co_await handle->Commit(std::move(txn)));
  }
  handle.reset();
  co_return co_await rocks->Close();
}

}  // namespace berth::app
