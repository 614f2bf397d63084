// SPDX-License-Identifier: Apache-2.0
#include "runtime/images/namespace_credentials.h"

#include "meta/names.h"
#include "pki/private_file.h"

namespace berth::runtime {

Result<image::Credentials> NamespaceCredentials::For(std::string_view namespace_name,
                                                     std::string_view registry) const {
  // What is no name of a namespace is no name of a file either.
  if (folder_.empty() || !meta::IsDnsLabel(namespace_name)) return image::Credentials();
  const std::string path = folder_ + "/" + std::string(namespace_name) + ".json";
  const Result<std::string> text = pki::ReadPrivateFile(path);
  if (text.status().Is(Reason::kNotFound)) return image::Credentials();
  if (!text.ok()) return text.status();
  Result<image::Credentials> found = image::CredentialsFor(*text, registry);
  if (!found.ok()) return found.status().Wrap(path);
  return found;
}

}  // namespace berth::runtime
