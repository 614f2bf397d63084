// SPDX-License-Identifier: Apache-2.0
// The Client of components that share a process with the API server: it calls the registry
// directly, as a given identity with full rights.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "apiserver/identity.h"
#include "apiserver/registry.h"
#include "client/binder.h"
#include "client/client.h"
#include "client/rewound.h"
#include "client/tombstones.h"
#include "meta/scheme.h"

namespace berth::apiserver {

class LoopbackClient final : public client::Client,
                             public client::Binder,
                             public client::Tombstones,
                             public client::Rewound {
 public:
  // The registry and the scheme outlive the client. `identity` is who its writes are made by.
  LoopbackClient(Registry& registry, const meta::Scheme& scheme, Identity identity);

  rt::Task<Result<meta::Object>> Get(const meta::KindInfo& kind, client::ObjectKey key) override;
  rt::Task<Result<client::ObjectList>> List(const meta::KindInfo& kind,
                                            client::ListOptions options) override;
  rt::Task<Result<std::unique_ptr<client::ObjectWatch>>> Watch(
      const meta::KindInfo& kind, client::WatchOptions options) override;
  rt::Task<Result<meta::Object>> Create(meta::Object object, client::WriteOptions options) override;
  rt::Task<std::vector<Result<meta::Object>>> CreateBatch(std::vector<meta::Object> objects,
                                                          client::WriteOptions options) override;
  rt::Task<Result<meta::Object>> Update(meta::Object object, client::WriteOptions options) override;
  rt::Task<Result<meta::Object>> Patch(const meta::KindInfo& kind,
                                       client::ObjectKey key,
                                       client::PatchType type,
                                       std::string body,
                                       client::WriteOptions options) override;
  rt::Task<Status> Delete(const meta::KindInfo& kind,
                          client::ObjectKey key,
                          client::DeleteOptions options) override;

  rt::Task<std::vector<Result<std::vector<meta::Object>>>> BindBatch(
      std::vector<client::BindRequest> requests) override;
  rt::Task<std::vector<Status>> CreateBoundBatch(meta::Object model,
                                                 std::vector<client::BindItem> items,
                                                 std::string holder,
                                                 int64_t term) override;
  rt::Task<std::vector<Status>> UnbindBatch(std::vector<client::UnbindRequest> requests) override;

  rt::Task<Result<std::vector<client::Tombstone>>> ListTombstones(std::string pool_uid) override;
  rt::Task<Status> ClearTombstones(std::string pool_uid, std::vector<std::string> uids) override;

  rt::Task<std::vector<Status>> AdoptBatch(std::vector<client::Adoption> adoptions) override;
  rt::Task<Status> Settle() override;

 private:
  WriteContext Context(const client::WriteOptions& options) const;

  Registry& registry_;
  const meta::Scheme& scheme_;
  const Identity identity_;
};

// The object as a client of `kind` sees it.
Result<meta::Object> DecodeFor(const meta::KindInfo& kind,
                               const StoredObject& stored,
                               client::Detail detail = client::Detail::kFull);

}  // namespace berth::apiserver
