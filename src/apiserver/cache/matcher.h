// SPDX-License-Identifier: Apache-2.0
// A Matcher decides whether an object lies in a selection, looking at its key and its header only.
#pragma once

#include <string>
#include <string_view>

#include "apiserver/registry.h"
#include "meta/kind.h"

namespace berth::apiserver {

class Matcher {
 public:
  // `kind` is the kind that was asked for, which gives the field selectors their names.
  Matcher(const meta::KindInfo& kind, Selection selection);

  const Selection& selection() const { return selection_; }
  // Keys of the selection's namespace begin with this: "" for all, "default/" for one.
  const std::string& scope() const { return scope_; }
  bool InScope(std::string_view suffix) const { return suffix.starts_with(scope_); }
  // No object in scope is left out, so headers need not be read.
  bool takes_all() const { return takes_all_; }
  // REQUIRES: InScope(suffix). An object with a damaged header matches: whoever decodes it reports
  // the damage, nobody overlooks it.
  bool Matches(std::string_view suffix, const StoredObject& object) const;

 private:
  const meta::KindInfo& kind_;
  Selection selection_;
  std::string scope_;
  bool takes_all_;
};

}  // namespace berth::apiserver
