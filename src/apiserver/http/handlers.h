// SPDX-License-Identifier: Apache-2.0
// What each verb on a resource does: from a Call to the Registry and back to an answer. Rights have
// been checked.
#pragma once

#include <string>
#include <string_view>

#include "apiserver/authz/authorizer.h"
#include "apiserver/http/adoption.h"
#include "apiserver/http/call.h"
#include "apiserver/http/fan_out.h"
#include "apiserver/http/hosts.h"
#include "apiserver/http/object_writer.h"
#include "apiserver/http/placement_reviews.h"
#include "apiserver/registry.h"
#include "apiserver/registry/field_ownership.h"
#include "base/metrics.h"
#include "client/binder.h"
#include "meta/object.h"
#include "meta/scheme.h"
#include "net/http.h"
#include "rt/loop.h"
#include "rt/task.h"

namespace berth::apiserver {

class Handlers {
 public:
  struct Deps {
    rt::Loop& loop;
    const meta::Scheme& scheme;
    Registry& registry;
    const Authorizer& authorizer;
    metrics::Registry& metrics;
    const PlacementReviews& placement;
    const Hosts& hosts;
  };
  explicit Handlers(Deps deps);

  using Answer = rt::Task<Result<net::HttpResponse>>;
  Answer Get(CallPtr call);  // read.cc
  Answer List(CallPtr call);
  Answer Watch(CallPtr call);   // watch.cc
  Answer Create(CallPtr call);  // write.cc
  Answer Update(CallPtr call);
  Answer Patch(CallPtr call);   // patch.cc
  Answer Apply(CallPtr call);   // apply.cc
  Answer Delete(CallPtr call);  // delete.cc
  Answer DeleteCollection(CallPtr call);
  Answer Scale(CallPtr call);  // scale.cc: get, update, patch
  Answer Bind(CallPtr call);   // binding.cc
  Answer Unbind(CallPtr call);

 private:
  Result<ObjectWriter> WriterFor(const Call& call) const;
  // The context of a write, with the guard of rights that depend on its content.
  Result<WriteContext> ContextFor(Call& call) const { return ContextFor(call, call.info); }
  // The same for what the call asks for in other words.
  Result<WriteContext> ContextFor(Call& call, const RequestInfo& request) const;
  // Reads the body as an object of the call's kind and checks it against the path.
  Result<meta::Object> DecodeBody(Call& call) const;
  // The binding in the body, with the rights to all of its items.
  Result<client::BindRequest> BindRequestOf(const Call& call) const;
  // An operator's word for a host needs the right to fence its pool.
  rt::Task<Status> CheckProof(CallPtr call, client::UnbindRequest request) const;
  Result<net::HttpResponse> AnswerWith(Call& call, const WriteResult& result) const;
  std::string ServedApiVersion(const Call& call) const;
  rt::Task<Status> StreamList(CallPtr call,
                              ObjectWriter writer,
                              ListPage page,
                              net::BodyWriter* body) const;
  rt::Task<Status> StreamWatch(CallPtr call,
                               ObjectWriter writer,
                               std::shared_ptr<RegistryWatch> watch,
                               Duration timeout,
                               net::BodyWriter* body) const;
  // The object that an apply has found missing.
  Answer CreateApplied(CallPtr call, ApplyRequest request);
  // Applies a patch to the current state, as the client sees it, under its apiVersion.
  Result<meta::Object> ApplyPatch(Call& call, const meta::Object& current) const;

  rt::Loop& loop_;
  const meta::Scheme& scheme_;
  Registry& registry_;
  const Authorizer& authorizer_;
  const PlacementReviews& placement_;
  const Adoption adoption_;
  metrics::Gauge& watchers_;
  mutable FanOut fan_out_;
};

}  // namespace berth::apiserver
