// SPDX-License-Identifier: Apache-2.0
// Who we are at a registry, from a file or Secret in Docker's format. Pure.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace berth::image {

struct Credentials {
  std::string user;
  std::string password;
  bool empty() const { return user.empty() && password.empty(); }
  // "Basic ..."; "" for nobody.
  std::string BasicHeader() const;
};

// The entry of the registry ("registry.example:5000") in a text as `docker login` writes it and as
// a Secret of type kubernetes.io/dockerconfigjson holds it. Nobody if there is none: credentials go
// only to the host that they belong to. BadRequest says what is wrong, without what is secret.
Result<Credentials> CredentialsFor(std::string_view docker_config, std::string_view registry);

}  // namespace berth::image
