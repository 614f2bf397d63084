// SPDX-License-Identifier: Apache-2.0
// FreshWrites knows the objects that this server is about to commit, as they were when they were
// encoded: whoever follows them in this process takes them from here and decodes nothing. An
// object is recognised by its key and its bytes, so whatever else happens to the key, nobody sees
// anything but what is stored.
#pragma once

#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/bytes.h"
#include "meta/object.h"
#include "meta/shared_object.h"

namespace berth::apiserver {

class FreshWrites {
 public:
  // The objects of one commit, until it is destroyed: best when the cache has the commit.
  class Offer {
   public:
    explicit Offer(FreshWrites& writes) : writes_(writes) {}
    ~Offer() { Withdraw(); }
    Offer(const Offer&) = delete;
    Offer& operator=(const Offer&) = delete;
    // The key and the object stay where they are until then. The object is moved from when
    // somebody takes it, which happens only once it is committed.
    void Add(std::string_view key, const Bytes& at_rest, meta::Object& object);
    // Nothing was committed.
    void Withdraw();

   private:
    FreshWrites& writes_;
    std::vector<std::string_view> keys_;
  };

  // The object that these stored bytes came from; empty if nobody here offers it.
  meta::SharedObject Take(std::string_view key, const Bytes& at_rest, std::string resource_version);

 private:
  struct Fresh {
    Bytes at_rest;
    meta::Object* object;
  };
  std::unordered_map<std::string_view, Fresh> by_key_;
};

}  // namespace berth::apiserver
