// SPDX-License-Identifier: Apache-2.0
// The columns and cells of metav1.Table, from a kind's declaration.
#pragma once

#include <string>
#include <vector>

#include "base/time.h"
#include "meta/kind.h"

namespace berth::apiserver {

// All columns of a kind in order, Name and Age included where the kind wants them.
std::vector<meta::Column> TableColumns(const meta::KindInfo& kind);
// JSON array of column definitions.
std::string ColumnDefinitions(const meta::KindInfo& kind);
// JSON array of one row's cells.
std::string Cells(const meta::KindInfo& kind, const void* object, WallTime now);

}  // namespace berth::apiserver
