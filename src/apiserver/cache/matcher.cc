// SPDX-License-Identifier: Apache-2.0
#include "apiserver/cache/matcher.h"

#include <array>
#include <utility>
#include <vector>

#include "apiserver/cache/keys.h"
#include "meta/at_rest.h"

namespace berth::apiserver {

namespace {

// The two shapes of Event call some fields by other names; headers hold those of the stored one.
struct Renamed {
  std::string_view view;
  std::string_view stored;
};
constexpr std::array kRenamed = {
    Renamed{"regarding.", "involvedObject."},
    Renamed{"reportingController", "reportingComponent"},
};

std::string StoredField(const std::string& field) {
  for (const Renamed& row : kRenamed) {
    if (field.starts_with(row.view)) {
      return std::string(row.stored) + field.substr(row.view.size());
    }
  }
  return field;
}

meta::FieldSelector InStoredNames(const meta::KindInfo& asked, meta::FieldSelector selector) {
  if (asked.view == nullptr || selector.empty()) return selector;
  std::vector<meta::FieldSelector::Term> terms = selector.terms();
  for (meta::FieldSelector::Term& term : terms) term.field = StoredField(term.field);
  return meta::FieldSelector(std::move(terms));
}

}  // namespace

Matcher::Matcher(const meta::KindInfo& kind, Selection selection)
    : kind_(StoredKind(kind)),
      selection_{.namespace_ = std::move(selection.namespace_),
                 .labels = std::move(selection.labels),
                 .fields = InStoredNames(kind, std::move(selection.fields))},
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
