// SPDX-License-Identifier: Apache-2.0
// The Store interface on an Engine. Any number of handles share one engine.
#pragma once

#include <memory>

#include "store/mvcc/engine.h"
#include "store/store.h"

namespace berth::store {

std::unique_ptr<Store> MakeHandle(std::shared_ptr<Engine> engine);

// Waits for Engine::Recover and Engine::Close.
rt::Task<Status> RecoverEngine(std::shared_ptr<Engine> engine);
rt::Task<Status> CloseEngine(std::shared_ptr<Engine> engine);

}  // namespace berth::store
