// SPDX-License-Identifier: Apache-2.0
// What decorators of a client have in common: each call goes on to the client behind. A decorator
// says only what it does otherwise.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "client/client.h"

namespace berth::client {

class PassingClient : public Client {
 public:
  rt::Task<Result<meta::Object>> Get(const meta::KindInfo& kind, ObjectKey key) override {
    return inner_.Get(kind, std::move(key));
  }
  rt::Task<Result<ObjectList>> List(const meta::KindInfo& kind, ListOptions options) override {
    return inner_.List(kind, std::move(options));
  }
  rt::Task<Result<std::unique_ptr<ObjectWatch>>> Watch(const meta::KindInfo& kind,
                                                       WatchOptions options) override {
    return inner_.Watch(kind, std::move(options));
  }
  rt::Task<Result<meta::Object>> Create(meta::Object object, WriteOptions options) override {
    return inner_.Create(std::move(object), options);
  }
  rt::Task<std::vector<Result<meta::Object>>> CreateBatch(std::vector<meta::Object> objects,
                                                          WriteOptions options) override {
    return inner_.CreateBatch(std::move(objects), options);
  }
  rt::Task<Result<meta::Object>> Update(meta::Object object, WriteOptions options) override {
    return inner_.Update(std::move(object), options);
  }
  rt::Task<Result<meta::Object>> Patch(const meta::KindInfo& kind,
                                       ObjectKey key,
                                       PatchType type,
                                       std::string body,
                                       WriteOptions options) override {
    return inner_.Patch(kind, std::move(key), type, std::move(body), options);
  }
  rt::Task<Status> Delete(const meta::KindInfo& kind,
                          ObjectKey key,
                          DeleteOptions options) override {
    return inner_.Delete(kind, std::move(key), std::move(options));
  }

 protected:
  // `inner` outlives this.
  explicit PassingClient(Client& inner) : inner_(inner) {}
  Client& inner() const { return inner_; }

 private:
  Client& inner_;
};

}  // namespace berth::client
