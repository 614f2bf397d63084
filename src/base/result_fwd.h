// SPDX-License-Identifier: Apache-2.0
// Names Result for headers that Result itself needs.
#pragma once

namespace berth {
template <class T>
class [[nodiscard]] Result;
class [[nodiscard]] Status;
}  // namespace berth
