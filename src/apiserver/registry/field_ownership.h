// SPDX-License-Identifier: Apache-2.0
// metadata.managedFields of what is written: whom its fields belong to after an update, and what an
// apply makes of the object. The rules are meta/apply's; here is what they need to know of objects.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "apiserver/registry.h"
#include "base/result.h"
#include "base/time.h"
#include "meta/apply/apply.h"
#include "meta/object.h"
#include "meta/object_meta.h"
#include "meta/scheme.h"
#include "meta/value.h"

namespace berth::apiserver {

// Who owns the fields of `after`, which a write other than apply has made of `before` (null: it is
// new). `sent` is what the writer says about it: one empty entry forgets all managers, a valid list
// replaces them, anything else is ignored, as is all that is sent through a subresource. An object
// that has no managers gets none until it is applied.
void RecordOwnership(const meta::Scheme& scheme,
                     const meta::Object* before,
                     const std::vector<meta::ManagedFieldsEntry>& sent,
                     const WriteContext& context,
                     WallTime now,
                     meta::Object& after);

// The manager of a write whose sender names none: the first word of its User-Agent, or "unknown".
std::string ManagerOf(std::string_view user_agent);

struct ApplyRequest {
  std::string manager;
  std::string subresource;
  meta::Conflicts conflicts = meta::Conflicts::kRefused;
  meta::Value configuration;  // has been decoded as the kind; with apiVersion and kind
};

// The object that an apply makes of the live one (null: there is none yet), with its managers. To
// be written with Ownership::kApplied.
Result<meta::Object> ApplyTo(const meta::Scheme& scheme,
                             const meta::KindInfo& kind,
                             const meta::Object* live,
                             const ApplyRequest& request,
                             WallTime now);

}  // namespace berth::apiserver
