// SPDX-License-Identifier: Apache-2.0
#include "client/cache/informer.h"

#include <utility>

namespace berth::client {

ObjectKey KeyOf(const meta::Object& object) {
  return {.namespace_ = object.metadata().namespace_, .name = object.metadata().name};
}

const meta::Object* Informer::Find(const ObjectKey& key) const {
  const auto found = objects_.find(key);
  return found == objects_.end() ? nullptr : &found->second;
}

rt::Task<Status> Informer::LookAtUnread() {
  const std::set<ObjectKey> keys = unread_;
  for (const ObjectKey& key : keys) {
    const Result<meta::Object> found = co_await client_.Get(kind_, key);
    if (found.status().Is(Reason::kCancelled)) co_return found.status();
    if (found.status().Is(Reason::kNotFound)) unread_.erase(key);
  }
  co_return OkStatus();
}

void Informer::OnListBegin() {
  unread_now_.clear();
  unseen_.clear();
  for (const auto& [key, object] : objects_) unseen_.insert(key);
}

void Informer::OnListed(meta::Object object) {
  unseen_.erase(KeyOf(object));
  Put(std::move(object));
}

void Informer::OnUnread(Unread object) { unread_now_.insert(std::move(object.key)); }

void Informer::OnListEnd() {
  // Before anybody hears that one of these is gone.
  unread_ = std::exchange(unread_now_, {});
  for (const ObjectKey& key : std::exchange(unseen_, {})) Remove(key);
}

void Informer::OnEvent(WatchEvent event) {
  if (!unread_.empty()) unread_.erase(KeyOf(event.object));
  if (event.type == WatchEvent::Type::kDeleted) {
    Remove(KeyOf(event.object));
  } else {
    Put(event.object);
  }
}

void Informer::Put(meta::Object object) {
  ObjectKey key = KeyOf(object);
  auto found = objects_.find(key);
  if (found == objects_.end()) {
    found = objects_.emplace(std::move(key), std::move(object)).first;
    on_change_(nullptr, &found->second);
  } else {
    if (found->second.metadata().resource_version == object.metadata().resource_version) return;
    const meta::Object before = std::exchange(found->second, std::move(object));
    // Another object of the same name: the first one is gone, which somebody may wait for.
    if (before.metadata().uid != found->second.metadata().uid) {
      on_change_(&before, nullptr);
      on_change_(nullptr, &found->second);
    } else {
      on_change_(&before, &found->second);
    }
  }
  if (forget_) forget_(found->second);
}

void Informer::Remove(const ObjectKey& key) {
  const auto node = objects_.extract(key);
  if (!node.empty()) on_change_(&node.mapped(), nullptr);
}

}  // namespace berth::client
