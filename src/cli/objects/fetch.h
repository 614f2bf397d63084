// SPDX-License-Identifier: Apache-2.0
// Reading objects: single ones, and lists page by page.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "cli/api/api.h"
#include "cli/api/resource.h"
#include "meta/value.h"

namespace berth::cli {

// As kubectl: large lists come in pages, so that neither side holds everything twice.
inline constexpr int kPageSize = 500;

struct ListSelection {
  std::string namespace_;  // "": all
  std::string label_selector;
  std::string field_selector;
};

Api::Query QueryOf(const ListSelection& selection);

struct FetchedList {
  std::vector<meta::Value> items;  // each with apiVersion and kind
  std::string resource_version;
};

// Every object that the selection names. A page that has expired meanwhile starts the list anew,
// in one piece.
Result<FetchedList> FetchList(Api& api, const Resource& resource, const ListSelection& selection);

Result<meta::Value> FetchObject(Api& api,
                                const Resource& resource,
                                const std::string& namespace_,
                                const std::string& name);

// One page after another, in the form that `accept` asks for (tables). `take` gets every page and
// returns the error that ends it.
Status FetchPages(Api& api,
                  const std::string& path,
                  const Api::Query& query,
                  std::string_view accept,
                  const std::function<Status(meta::Value page)>& take,
                  const std::function<void()>& restart);

}  // namespace berth::cli
