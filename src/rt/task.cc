// SPDX-License-Identifier: Apache-2.0
#include "rt/task.h"

namespace berth::rt {

Context::~Context() { CHECK(first_ == nullptr) << "a context outlives its leaves"; }

void Context::Cancel() {
  cancelled_ = true;
  // A hook may unregister others while it runs, so always take the first one anew.
  while (first_ != nullptr) {
    CancelHook* hook = first_;
    Unregister(*hook);
    hook->Cancel();
  }
}

void Context::Register(CancelHook& hook) {
  CHECK(!hook.registered_);
  hook.registered_ = true;
  hook.previous_ = nullptr;
  hook.next_ = first_;
  if (first_ != nullptr) first_->previous_ = &hook;
  first_ = &hook;
}

void Context::Unregister(CancelHook& hook) {
  if (!hook.registered_) return;
  hook.registered_ = false;
  if (hook.previous_ != nullptr) hook.previous_->next_ = hook.next_;
  if (hook.next_ != nullptr) hook.next_->previous_ = hook.previous_;
  if (first_ == &hook) first_ = hook.next_;
}

}  // namespace berth::rt
