// SPDX-License-Identifier: Apache-2.0
// What of a Secret with credentials of registries a host gets: the entries of the registries that
// the images are in, and nothing else. Pure.
#pragma once

#include <string>
#include <vector>

#include "apis/k8s/secret.h"
#include "base/result.h"

namespace berth::gateway {

// The registries of these images, sorted, each once; those of the host's own images are none.
std::vector<std::string> RegistriesOf(const std::vector<std::string>& images);

// In the Secret's own format; "" if it has no entry for any of the registries. BadRequest says what
// is wrong with the Secret, without what is secret.
Result<std::string> PullSecretFor(const apis::k8s::Secret& secret,
                                  const std::vector<std::string>& registries);

}  // namespace berth::gateway
