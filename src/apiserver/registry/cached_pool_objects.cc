// SPDX-License-Identifier: Apache-2.0
#include "apiserver/registry/cached_pool_objects.h"

#include <algorithm>
#include <utility>

#include "apis/placement.h"
#include "apiserver/registry/write_parts.h"
#include "meta/at_rest.h"

namespace berth::apiserver {

std::optional<meta::Object> CachedPoolObjects::Find(const meta::KindInfo& kind,
                                                    const client::ObjectKey& key) const {
  return CacheSource(cache_).Find(kind, key);
}

std::vector<meta::Object> CachedPoolObjects::OnPool(const meta::KindInfo& kind,
                                                    const std::string& namespace_,
                                                    const std::string& pool) const {
  const std::string field = "spec." + std::string(apis::PoolRefField(kind)) + ".name";
  const auto selector = std::ranges::find(kind.field_selectors, field);
  const auto index = static_cast<size_t>(selector - kind.field_selectors.begin());
  std::vector<meta::Object> found;
  const KindCache::Objects& all = cache_.Of(kind).objects();
  const std::string scope = namespace_ + '/';
  for (auto at = all.lower_bound(scope); at != all.end() && at->first.starts_with(scope); ++at) {
    const Result<meta::AtRestView> view = meta::AtRestView::Parse(at->second.at_rest.view());
    if (!view.ok() || view->FieldValue(index) != pool) continue;
    Result<meta::Object> object = Decode(kind, at->second);
    if (object.ok()) found.push_back(*std::move(object));
  }
  return found;
}

}  // namespace berth::apiserver
