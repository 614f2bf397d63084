// SPDX-License-Identifier: Apache-2.0
// Who a namespace is at registries: a file FOLDER/NAMESPACE.json each, in Docker's format, as a
// Secret of type kubernetes.io/dockerconfigjson holds it. A file that is changed counts from the
// next image on.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "image/registry/credentials.h"

namespace berth::runtime {

class NamespaceCredentials {
 public:
  // "": no namespace has any.
  explicit NamespaceCredentials(std::string folder) : folder_(std::move(folder)) {}

  // Nobody if there is no file or no entry for the registry. Blocks.
  Result<image::Credentials> For(std::string_view namespace_name, std::string_view registry) const;

 private:
  const std::string folder_;
};

}  // namespace berth::runtime
