// SPDX-License-Identifier: Apache-2.0
#include "apiserver/registry/reads.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "apiserver/cache/keys.h"
#include "apiserver/errors.h"
#include "apiserver/registry/continue_token.h"
#include "base/strings.h"
#include "meta/field_errors.h"

namespace berth::apiserver {

namespace {

// Keys per read of the store's history: 1,000 * 2 KiB = 2 MiB at a time.
constexpr size_t kStorePage = 1'000;

// Names of what cannot be read: who mends the first ones sees the next.
constexpr size_t kPassedOverMax = 16;

// As Kubernetes words it, and with its status.
Status CheckListRequest(const ListRequest& request) {
  const std::string& match = request.resource_version_match;
  const bool has_version = !request.resource_version.empty();
  if (!request.continue_token.empty() && has_version && request.resource_version != "0") {
    return BadRequest("specifying resource version is not allowed when using continue");
  }
  if (match.empty()) return OkStatus();
  meta::FieldErrors errors;
  const meta::FieldPath path("resourceVersionMatch");
  if (!request.continue_token.empty()) {
    errors.Forbidden(path, "resourceVersionMatch is forbidden when continue is provided");
  }
  if (!has_version) {
    errors.Forbidden(path, "resourceVersionMatch is forbidden unless resourceVersion is provided");
  }
  if (match != "Exact" && match != "NotOlderThan") {
    errors.NotSupported(path, match, {"Exact", "NotOlderThan"});
  }
  if (match == "Exact" && request.resource_version == "0") {
    errors.Forbidden(path, "resourceVersionMatch \"Exact\" is forbidden for resourceVersion \"0\"");
  }
  return errors.ToStatus("ListOptions", "meta.k8s.io", "");
}

// As many as the cache has anyway, for whoever must not take one of them for absent.
size_t PassedOverMax(bool wants_keys) {
  return wants_keys ? std::numeric_limits<size_t>::max() : kPassedOverMax;
}

// By its key: whatever else is selected by cannot be read either.
bool MayBeMeant(std::string_view suffix, const Matcher& matcher) {
  if (!matcher.InScope(suffix)) return false;
  const auto name = matcher.selection().fields.RequiredValue("metadata.name");
  return !name || *name == suffix.substr(suffix.find('/') + 1);
}

void NotePassedOver(const KindCache& cache, const Matcher& matcher, size_t most, ListPage& page) {
  for (const auto& [suffix, aside] : cache.aside()) {
    if (page.passed_over.size() == most) return;
    if (MayBeMeant(suffix, matcher)) page.passed_over.push_back({suffix, aside.now});
  }
}

// A page that ends early, with the last key in place of its token, gets the token.
void SealToken(ListPage& page) {
  if (page.continue_token.empty()) return;
  const ContinueToken token{.revision = page.revision, .after = page.continue_token};
  page.continue_token = token.Encode();
}

// The rights of a request are those of its namespace, and a token is text from outside: one of
// another namespace would begin, and delete, among other people's objects.
Status CheckInScope(const ContinueToken& token, const Matcher& matcher) {
  if (matcher.InScope(token.after)) return OkStatus();
  return BadRequest("continue key is not valid: it is not of a list of namespace " +
                    Quote(matcher.selection().namespace_));
}

Status ContinueExpired() {
  return Expired(
      "the state that this list began with is compacted: list again without continue, or go on "
      "with "
      "the continue of this answer and see the rest as it is now");
}

}  // namespace

rt::Task<Status> Reads::Freshen(std::string resource_version) {
  if (resource_version.empty()) co_return co_await cache_.CatchUp();
  CO_TRY(const store::Revision revision, ParseResourceVersion(resource_version));
  co_return co_await cache_.WaitForAtMost(revision);
}

rt::Task<Result<StoredObject>> Reads::Get(const meta::KindInfo& kind,
                                          ObjectKey key,
                                          std::string resource_version) {
  CO_TRY_STATUS(co_await Freshen(std::move(resource_version)));
  const KindCache& objects = cache_.Of(kind);
  const std::string suffix = KeySuffix(key);
  const StoredObject* object = objects.Find(suffix);
  if (object != nullptr) co_return *object;
  const StoredObject* aside = objects.FindAside(suffix);
  const KindErrors errors(scheme_, kind);
  if (aside == nullptr) co_return errors.NotFound(key.name);
  const Status why = CheckReadable(objects.kind(), suffix, *aside);
  co_return errors.Unreadable(key.name, why.message());
}

rt::Task<Result<ListPage>> Reads::List(const meta::KindInfo& kind, ListRequest request) {
  CO_TRY_STATUS(CheckListRequest(request));
  const KindCache& objects = cache_.Of(kind);
  PageStart start{.after = "",
                  .limit = request.limit,
                  .wants_remaining = request.wants_remaining,
                  .wants_keys = request.wants_keys};
  Matcher matcher(kind, std::move(request.selection));
  store::Revision exact;
  const bool continues = !request.continue_token.empty();
  if (continues) {
    CO_TRY(ContinueToken token, ContinueToken::Decode(request.continue_token));
    CO_TRY_STATUS(CheckInScope(token, matcher));
    start.after = std::move(token.after);
    exact = token.revision;
    CO_TRY_STATUS(exact.value == 0 ? co_await cache_.CatchUp()
                                   : co_await cache_.WaitForAtMost(exact));
  } else {
    CO_TRY_STATUS(co_await Freshen(request.resource_version));
    if (request.resource_version_match == "Exact") {
      CO_TRY(exact, ParseResourceVersion(request.resource_version));
    }
  }
  // As long as nothing of this kind has changed since, the present is the state that is asked for.
  if (exact.value == 0 || objects.IsUnchangedSince(exact)) {
    ListPage page = FromCache(objects, matcher, start);
    if (exact.value != 0) page.revision = exact;
    SealToken(page);
    co_return page;
  }
  Result<ListPage> page = co_await FromStore(kind, std::move(matcher), std::move(start), exact);
  if (!page.ok() && page.status().Is(Reason::kExpired) && continues) co_return ContinueExpired();
  if (page.ok()) SealToken(*page);
  co_return page;
}

ListPage Reads::FromCache(const KindCache& cache,
                          const Matcher& matcher,
                          const PageStart& start) const {
  ListPage page;
  page.revision = cache_.revision();
  const KindCache::Objects& objects = cache.objects();
  auto at = start.after.empty() ? objects.lower_bound(matcher.scope())
                                : objects.upper_bound(std::max(start.after, matcher.scope()));
  if (start.limit == 0 && matcher.takes_all() && matcher.scope().empty() && start.after.empty()) {
    page.items.reserve(objects.size());
  }
  const std::string* last = nullptr;
  for (; at != objects.end() && matcher.InScope(at->first); ++at) {
    if (start.limit != 0 && page.items.size() == start.limit) {
      page.continue_token = *last;
      break;
    }
    if (!matcher.Matches(at->first, at->second)) continue;
    page.items.push_back(at->second);
    if (start.wants_keys) page.keys.push_back(at->first);
    last = &at->first;
  }
  NotePassedOver(cache, matcher, PassedOverMax(start.wants_keys), page);
  if (!page.continue_token.empty() && matcher.takes_all() && start.wants_remaining) {
    int64_t remaining = 0;
    for (; at != objects.end() && matcher.InScope(at->first); ++at) ++remaining;
    page.remaining = remaining;
  }
  return page;
}

rt::Task<Result<ListPage>> Reads::FromStore(const meta::KindInfo& kind,
                                            Matcher matcher,
                                            PageStart start,
                                            store::Revision revision) {
  ListPage page;
  page.revision = revision;
  const size_t passed_over_max = PassedOverMax(start.wants_keys);
  const meta::KindInfo& stored_kind = cache_.Of(kind).kind();
  const std::string& prefix = cache_.Of(kind).prefix();
  store::RangeRequest request{.start = prefix + matcher.scope(),
                              .end = store::PrefixEnd(prefix + matcher.scope()),
                              .revision = revision,
                              .limit = kStorePage};
  if (!start.after.empty()) {
    request.start = std::max(request.start, prefix + start.after + '\0');
  }
  std::string last;
  for (bool more = true; more;) {
    CO_TRY(store::RangeResult range, co_await store_.Range(request));
    for (size_t i = 0; i < range.items.size(); ++i) {
      store::KeyValue& item = range.items[i];
      if (start.limit != 0 && page.items.size() == start.limit) {
        page.continue_token = last;
        if (matcher.takes_all()) page.remaining = static_cast<int64_t>(range.count - i);
        co_return page;
      }
      StoredObject object{.at_rest = std::move(item.value), .revision = item.mod_revision};
      std::string suffix = item.key.substr(prefix.size());
      if (!matcher.InScope(suffix)) continue;
      if (!CheckReadable(stored_kind, suffix, object).ok()) {
        const bool is_named = page.passed_over.size() < passed_over_max;
        if (is_named && MayBeMeant(suffix, matcher)) {
          page.passed_over.push_back({std::move(suffix), std::move(object)});
        }
        continue;
      }
      if (!matcher.Matches(suffix, object)) continue;
      page.items.push_back(std::move(object));
      if (start.wants_keys) page.keys.push_back(suffix);
      last = std::move(suffix);
    }
    more = range.more;
    if (more) request.start = range.items.back().key + '\0';
  }
  co_return page;
}

}  // namespace berth::apiserver
