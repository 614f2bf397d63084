// SPDX-License-Identifier: Apache-2.0
// Who sends a request, and what a request is about. Authentication makes an Identity, the router
// makes RequestInfo, authorization compares the two.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "meta/kind.h"

namespace berth::apiserver {

struct Identity {
  std::string user;
  std::vector<std::string> groups;  // system:authenticated or system:unauthenticated is among them
  std::string uid;
  std::map<std::string, std::vector<std::string>> extra;  // of an impersonated user
  bool InGroup(std::string_view group) const;
};

// A request as authorization, audit and metrics see it. Groups are canonical: an alias domain never
// makes a difference to what is allowed.
struct RequestInfo {
  bool is_resource = false;
  std::string verb;   // get list watch create update patch delete deletecollection; or the
                      // lower-case HTTP method
  std::string path;   // as sent, without query
  std::string group;  // canonical: "compute.ironcore.dev", "" for core
  std::string requested_group;  // in the spelling of the request, for answers
  std::string version;
  std::string namespace_;
  std::string resource;  // plural
  std::string subresource;
  std::string name;
  std::string field_selector;            // of list and watch, as sent
  const meta::KindInfo* kind = nullptr;  // null if the resource is not served
};

}  // namespace berth::apiserver
