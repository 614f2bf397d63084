// SPDX-License-Identifier: Apache-2.0
// A Reflector brings the objects of one kind, and every later change, to a Sink: it lists, watches,
// and lists again when the watch cannot go on. What the sink keeps is its own affair, so a sink
// that needs little keeps little.
#pragma once

#include <span>
#include <string>

#include "base/result.h"
#include "client/cache/follow_state.h"
#include "client/client.h"
#include "meta/kind.h"
#include "rt/loop.h"
#include "rt/task.h"

namespace berth::client {

class Sink {
 public:
  virtual ~Sink() = default;
  // A list begins: what is not told between here and OnListEnd does not exist any more.
  virtual void OnListBegin() = 0;
  virtual void OnListed(meta::Object object) = 0;
  // It is there and cannot be read; told with Unreadable::kName only, some perhaps repeatedly.
  virtual void OnUnread(Unread /*object*/) {}
  virtual void OnListEnd() = 0;
  // These changes are at hand and will be told next, one by one: memory that they need may be
  // fetched meanwhile.
  virtual void OnComing(std::span<const WatchEvent> /*events*/) {}
  // A change after the list. kDeleted: the last state.
  virtual void OnEvent(WatchEvent event) = 0;
};

struct ReflectorOptions {
  std::string namespace_;
  std::string label_selector;
  std::string field_selector;
  Detail detail = Detail::kFull;
  Unreadable unreadable = Unreadable::kSkip;
};

class Reflector {
 public:
  // Everything outlives the reflector.
  Reflector(rt::Loop& loop,
            Client& client,
            const meta::KindInfo& kind,
            Sink& sink,
            ReflectorOptions options);

  // Runs until it is cancelled; errors are tried again with growing pauses.
  rt::Task<Status> Run();
  // The first list is complete.
  bool synced() const { return state_.synced(); }
  const FollowState& state() const { return state_; }

 private:
  rt::Task<Status> List();
  rt::Task<Status> Watch();

  rt::Loop& loop_;
  Client& client_;
  const meta::KindInfo& kind_;
  Sink& sink_;
  const ReflectorOptions options_;
  std::string resource_version_;  // "": a list is needed
  FollowState state_;
};

}  // namespace berth::client
