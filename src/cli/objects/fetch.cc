// SPDX-License-Identifier: Apache-2.0
#include "cli/objects/fetch.h"

#include <utility>

namespace berth::cli {

using meta::Value;

Api::Query QueryOf(const ListSelection& selection) {
  Api::Query out;
  if (!selection.label_selector.empty()) {
    out.emplace_back("labelSelector", selection.label_selector);
  }
  if (!selection.field_selector.empty()) {
    out.emplace_back("fieldSelector", selection.field_selector);
  }
  return out;
}

Status FetchPages(Api& api,
                  const std::string& path,
                  const Api::Query& query,
                  std::string_view accept,
                  const std::function<Status(Value page)>& take,
                  const std::function<void()>& restart) {
  std::string token;
  bool in_one_piece = false;
  while (true) {
    Api::Query page_query = query;
    if (!in_one_piece) page_query.emplace_back("limit", std::to_string(kPageSize));
    if (!token.empty()) page_query.emplace_back("continue", token);
    auto page = api.Get(path, std::move(page_query), accept);
    if (!page.ok() && page.status().Is(Reason::kExpired) && !token.empty() && !in_one_piece) {
      restart();
      token.clear();
      in_one_piece = true;  // if the server gives more than a page at a time
      continue;
    }
    if (!page.ok()) return page.status();
    token = page->GetString({"metadata", "continue"});
    TRY_STATUS(take(*std::move(page)));
    if (token.empty()) return OkStatus();
  }
}

Result<FetchedList> FetchList(Api& api, const Resource& resource, const ListSelection& selection) {
  FetchedList out;
  const auto take = [&out, &resource](Value page) -> Status {
    out.resource_version = page.GetString({"metadata", "resourceVersion"});
    Value* items = page.Find("items");
    if (items == nullptr || !items->is_array()) return OkStatus();
    for (Value& item : items->items()) {
      // Items of a typed list do not repeat what they are.
      Value object = Value::Object();
      object.Set("apiVersion", resource.ApiVersion());
      object.Set("kind", resource.kind);
      if (item.is_object()) {
        for (Value::Member& member : item.members())
          object.Set(member.key, std::move(member.value));
      }
      out.items.push_back(std::move(object));
    }
    return OkStatus();
  };
  const auto restart = [&out] { out.items.clear(); };
  TRY_STATUS(FetchPages(
      api, PathOf(resource, selection.namespace_), QueryOf(selection), kAcceptJson, take, restart));
  return out;
}

Result<Value> FetchObject(Api& api,
                          const Resource& resource,
                          const std::string& namespace_,
                          const std::string& name) {
  return api.Get(PathOf(resource, namespace_, name));
}

}  // namespace berth::cli
