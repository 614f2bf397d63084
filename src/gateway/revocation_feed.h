// SPDX-License-Identifier: Apache-2.0
// The RevocationFeed follows the record of revoked certificates.
#pragma once

#include <functional>
#include <utility>

#include "client/cache/reflector.h"
#include "client/client.h"
#include "client/records/revocations.h"
#include "rt/loop.h"
#include "rt/task.h"

namespace berth::gateway {

class RevocationFeed final : private client::Sink {
 public:
  // `on_change` is called after every change.
  RevocationFeed(rt::Loop& loop, client::Client& client, std::function<void()> on_change);

  rt::Task<Status> Run() { return reflector_.Run(); }
  bool synced() const { return reflector_.synced(); }
  const client::Reflector& reflector() const { return reflector_; }
  const client::Revocations& revocations() const { return revocations_; }

 private:
  void OnListBegin() override { listed_ = {}; }
  void OnListed(meta::Object object) override;
  void OnListEnd() override;
  void OnEvent(client::WatchEvent event) override;
  void Set(client::Revocations revocations);

  const std::function<void()> on_change_;
  client::Revocations listed_;
  client::Revocations revocations_;
  client::Reflector reflector_;
};

}  // namespace berth::gateway
