// SPDX-License-Identifier: Apache-2.0
// ObjectSelector: objects of one kind, by label.
#pragma once

#include <string>

#include "meta/label_selector.h"
#include "meta/type.h"

namespace berth::apis::core {

struct ObjectSelector {
  std::string kind;
  meta::LabelSelector selector;
  bool operator==(const ObjectSelector&) const = default;
};
BERTH_DESCRIBE(ObjectSelector,
               "com.github.ironcore-dev.ironcore.api.core.v1alpha1.ObjectSelector",
               "Selects objects of one kind by their labels.",
               BERTH_FIELD(kind, "kind", "Kind of the objects.", {.required = true}),
               BERTH_FIELD(selector, "", "Labels of the objects.", {.inlined = true}))

}  // namespace berth::apis::core
