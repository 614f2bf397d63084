// SPDX-License-Identifier: Apache-2.0
// An Informer keeps the objects of one kind in memory and tells what changes: for kinds with few
// objects (namespaces, classes, quotas), or of which little is kept.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <utility>

#include "client/cache/reflector.h"
#include "client/client.h"

namespace berth::client {

class Informer final : private Sink {
 public:
  using Objects = std::map<ObjectKey, meta::Object>;
  // `before` is null for a new object, `now` for one that is gone.
  using OnChange = std::function<void(const meta::Object* before, const meta::Object* now)>;

  // Takes out of an object what its owner does not need; not its metadata.
  using Forget = std::function<void(meta::Object& object)>;

  // A change shows `now` whole. What was forgotten is missing in `before`, in objects() and Find().
  Informer(rt::Loop& loop,
           Client& client,
           const meta::KindInfo& kind,
           OnChange on_change,
           Forget forget = nullptr,
           Unreadable unreadable = Unreadable::kSkip)
      : client_(client),
        kind_(kind),
        on_change_(std::move(on_change)),
        forget_(std::move(forget)),
        reflector_(loop, client, kind, *this, OptionsWith(unreadable)) {}

  rt::Task<Status> Run() { return reflector_.Run(); }
  bool synced() const { return reflector_.synced(); }
  const Reflector& reflector() const { return reflector_; }
  const Objects& objects() const { return objects_; }
  // Null if there is none. Valid until the loop's next turn.
  const meta::Object* Find(const ObjectKey& key) const;

  // With Unreadable::kName: what the last list could not show and no change has shown since.
  const std::set<ObjectKey>& unread() const { return unread_; }
  // Asks for each of these and forgets those that are gone: nobody is told of the end of what
  // nobody was shown. One read per object.
  rt::Task<Status> LookAtUnread();

 private:
  static ReflectorOptions OptionsWith(Unreadable unreadable) {
    ReflectorOptions options;
    options.unreadable = unreadable;
    return options;
  }
  void OnListBegin() override;
  void OnListed(meta::Object object) override;
  void OnUnread(Unread object) override;
  void OnListEnd() override;
  void OnEvent(WatchEvent event) override;
  void Put(meta::Object object);
  void Remove(const ObjectKey& key);

  Client& client_;
  const meta::KindInfo& kind_;
  const OnChange on_change_;
  const Forget forget_;
  Objects objects_;
  std::set<ObjectKey> unseen_;  // during a list: what it has not told yet
  std::set<ObjectKey> unread_;
  std::set<ObjectKey> unread_now_;  // of the list that is being told
  Reflector reflector_;
};

// The key of an object.
ObjectKey KeyOf(const meta::Object& object);

}  // namespace berth::client
