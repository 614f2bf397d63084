// SPDX-License-Identifier: Apache-2.0
// A start runs through code that is never needed again: parsing flags, finding runtimes, making
// certificates, and the initialisers of libraries that a poollet does not use.
#pragma once

namespace berth::app {

// Unmaps the pages of code that this process has touched so far; those that are needed come back
// from the page cache with a soft fault each. Changes nothing but the resident size.
void GiveBackStartPages();

}  // namespace berth::app
