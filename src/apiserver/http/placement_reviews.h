// SPDX-License-Identifier: Apache-2.0
// PlacementReview: where something would be placed, or why it is where it is. Also what a dry run
// tells about the same.
#pragma once

#include <string>
#include <vector>

#include "apis/berth/placement_review.h"
#include "apiserver/authz/authorizer.h"
#include "apiserver/http/call.h"
#include "apiserver/http/hosts.h"
#include "apiserver/registry.h"
#include "base/result.h"
#include "base/status.h"
#include "meta/object.h"
#include "meta/scheme.h"
#include "meta/value.h"
#include "net/http.h"
#include "rt/task.h"

namespace berth::apiserver {

class PlacementReviews {
 public:
  struct Deps {
    const meta::Scheme& scheme;
    Registry& registry;
    const Authorizer& authorizer;
    const Hosts& hosts;
  };
  explicit PlacementReviews(Deps deps) : deps_(deps) {}

  // Answers a create. Who asks about an object that exists needs the right to get it: its place is
  // part of it.
  rt::Task<Result<net::HttpResponse>> Answer(CallPtr call) const;

  // Adds a warning with the place that the object of a dry run would get, if it is of a kind that
  // gets one and has none yet. Never fails: a dry run is about more than the place.
  void WarnOfPlace(Call& call, const meta::Object& object) const;

 private:
  rt::Task<Result<meta::Object>> FindTarget(CallPtr call,
                                            apis::berth_dev::PlacementTarget target) const;
  // The object at that field of the review, as it would be created in the review's namespace.
  Result<meta::Object> DecodeDraft(Call& call,
                                   const meta::Value& draft,
                                   const std::string& field) const;
  // What comes with it.
  Result<std::vector<meta::Object>> DecodeRelated(Call& call,
                                                  const std::vector<meta::Value>& related) const;
  // Who asks about a group is told the names of its machines.
  Status CheckMembersAreKnown(const Call& call) const;

  const Deps deps_;
};

}  // namespace berth::apiserver
