// SPDX-License-Identifier: Apache-2.0
// The subresource `usage` of pools and machines: what the scheduler promises
// and what hosts measure at this moment, from memory. Nothing is stored, so a
// heartbeat costs no write.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>

#include "apis/meta_v1/usage.h"
#include "apiserver/authz/authorizer.h"
#include "apiserver/http/call.h"
#include "apiserver/http/hosts.h"
#include "apiserver/registry.h"
#include "base/result.h"
#include "fleet/fleet.h"
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
    const Authorizer& authorizer;
    const Hosts& hosts;
  };
  explicit UsageReads(Deps deps) : deps_(deps) {}

  // Answers a get of the subresource.
  rt::Task<Result<net::HttpResponse>> Answer(CallPtr call) const;

  // Whether it is a list of objects that is to be one of their usages.
  static bool IsList(const Call& call);
  // Answers such a list, a page at a time, to who may get the subresource of all of them.
  rt::Task<Result<net::HttpResponse>> AnswerList(CallPtr call) const;

 private:
  using Healths = std::unordered_map<std::string, fleet::PoolHealth>;  // by the pool's UID
  using Modes = std::unordered_map<std::string, std::string>;          // by the machine pool's name

  Healths ReadHealths() const;
  // Adds the mode of the pool that a machine without a placement names, if it does.
  rt::Task<Status> LearnMode(meta::Object object, std::shared_ptr<Modes> modes) const;
  apis::meta_v1::Usage Of(const meta::Object& object,
                          const Healths& healths,
                          const Modes& modes) const;
  apis::meta_v1::Usage OfPool(const meta::Object& pool, const Healths& healths) const;
  apis::meta_v1::Usage OfMachine(const meta::Object& machine, const Modes& modes) const;

  const Deps deps_;
};

}  // namespace berth::apiserver
