// SPDX-License-Identifier: Apache-2.0
// The subresource `usage` of pools and machines: what the scheduler promises
// and what hosts measure at this moment, from memory. Nothing is stored, so a
// heartbeat costs no write.
#pragma once

#include "apis/meta_v1/usage.h"
#include "apiserver/http/call.h"
#include "apiserver/http/hosts.h"
#include "apiserver/registry.h"
#include "base/result.h"
#include "meta/object.h"
#include "net/http.h"
#include "rt/loop.h"
#include "rt/task.h"

namespace berth::apiserver {

class UsageReads {
 public:
  struct Deps {
    rt::Loop& loop;
    Registry& registry;
    const Hosts& hosts;
  };
  explicit UsageReads(Deps deps) : deps_(deps) {}

  // Answers a get of the subresource.
  rt::Task<Result<net::HttpResponse>> Answer(CallPtr call) const;

 private:
  apis::meta_v1::Usage OfPool(const meta::Object& pool) const;
  apis::meta_v1::Usage OfMachine(const meta::Object& machine) const;

  const Deps deps_;
};

}  // namespace berth::apiserver
