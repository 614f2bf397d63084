// SPDX-License-Identifier: Apache-2.0
#include "apiserver/cache/matcher.h"

#include <utility>

#include "meta/at_rest.h"

namespace berth::apiserver {

Matcher::Matcher(const meta::KindInfo& kind, Selection selection)
    : kind_(kind),
      selection_(std::move(selection)),
      scope_(selection_.namespace_.empty() ? "" : selection_.namespace_ + '/'),
      takes_all_(selection_.labels.empty() && selection_.fields.empty()) {}

bool Matcher::Matches(std::string_view suffix, const StoredObject& object) const {
  if (takes_all_) return true;
  const Result<meta::AtRestView> view = meta::AtRestView::Parse(object.at_rest.view());
  if (!view.ok()) return true;
  if (!selection_.labels.empty() && !view->Matches(selection_.labels)) return false;
  if (selection_.fields.empty()) return true;
  const size_t slash = suffix.find('/');
  const bool has_namespace = slash != std::string_view::npos;
  return view->Matches(selection_.fields,
                       kind_,
                       has_namespace ? suffix.substr(0, slash) : std::string_view(),
                       has_namespace ? suffix.substr(slash + 1) : suffix);
}

}  // namespace berth::apiserver
