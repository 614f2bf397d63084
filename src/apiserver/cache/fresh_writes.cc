// SPDX-License-Identifier: Apache-2.0
#include "apiserver/cache/fresh_writes.h"

#include <utility>

namespace berth::apiserver {

void FreshWrites::Offer::Add(std::string_view key, const Bytes& at_rest, meta::Object& object) {
  // Two writers of one key: one of them will fail, and the other's readers may have to decode.
  const bool is_first = writes_.by_key_.try_emplace(key, at_rest, &object).second;
  if (is_first) keys_.push_back(key);
}

void FreshWrites::Offer::Withdraw() {
  for (const std::string_view key : keys_) writes_.by_key_.erase(key);
  keys_.clear();
}

meta::SharedObject FreshWrites::Take(std::string_view key,
                                     const Bytes& at_rest,
                                     std::string resource_version) {
  const auto found = by_key_.find(key);
  if (found == by_key_.end() || found->second.object == nullptr) return {};
  if (found->second.at_rest != at_rest) return {};
  meta::Object object = std::move(*std::exchange(found->second.object, nullptr));
  object.metadata().resource_version = std::move(resource_version);
  return object;
}

}  // namespace berth::apiserver
