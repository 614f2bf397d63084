// SPDX-License-Identifier: Apache-2.0
// What every cluster has from its first start on: namespaces, default roles and their bindings.
#pragma once

#include "apiserver/registry.h"
#include "base/result.h"
#include "meta/scheme.h"
#include "rt/task.h"

namespace berth::apiserver {

// Makes what is missing and completes what lacks rights; idempotent. Run at every start, before
// requests are served.
rt::Task<Status> EnsureDefaults(Registry& registry, const meta::Scheme& scheme);

}  // namespace berth::apiserver
