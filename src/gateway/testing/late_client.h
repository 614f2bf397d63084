// SPDX-License-Identifier: Apache-2.0
// A LateClient is a client in front of another whose watches of one kind tell nothing while they
// are held, as if what follows them were behind: what is read and written is as new as ever. For
// tests.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "client/passing_client.h"
#include "rt/event.h"

namespace berth::gateway {

class LateClient final : public client::PassingClient {
 public:
  // `inner` outlives this.
  LateClient(client::Client& inner, const meta::KindInfo& kind)
      : PassingClient(inner), kind_(kind) {
    Release();
  }
  // From the next change on.
  void Hold() { may_tell_.Reset(); }
  void Release() { may_tell_.Set(); }

  rt::Task<Result<std::unique_ptr<client::ObjectWatch>>> Watch(
      const meta::KindInfo& kind, client::WatchOptions options) override {
    CO_TRY(std::unique_ptr<client::ObjectWatch> watch,
           co_await inner().Watch(kind, std::move(options)));
    if (&kind == &kind_) watch = std::make_unique<LateWatch>(std::move(watch), may_tell_);
    co_return watch;
  }

 private:
  class LateWatch final : public client::ObjectWatch {
   public:
    LateWatch(std::unique_ptr<client::ObjectWatch> inner, rt::Event& may_tell)
        : inner_(std::move(inner)), may_tell_(may_tell) {}
    rt::Task<Result<std::vector<client::WatchEvent>>> Next() override {
      auto events = co_await inner_->Next();
      CO_TRY_STATUS(co_await may_tell_.Wait());
      co_return events;
    }

   private:
    const std::unique_ptr<client::ObjectWatch> inner_;
    rt::Event& may_tell_;
  };

  const meta::KindInfo& kind_;
  rt::Event may_tell_;
};

}  // namespace berth::gateway
