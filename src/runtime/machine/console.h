// SPDX-License-Identifier: Apache-2.0
// A Console is one guest's serial line for as many as want to look at it: all see what the guest
// says, and what each types goes to the guest in order. The line is held while somebody looks.
//
// A guest waits for its viewers, which is how much they can be behind; one who does not read for
// kPatience is sent away, so that the others and the guest go on.
#pragma once

#include <list>
#include <memory>
#include <string>

#include "base/time.h"
#include "iri/attach.h"
#include "rt/channel.h"
#include "rt/loop.h"
#include "rt/scope.h"
#include "runtime/machine/serial_line.h"

namespace berth::runtime {

class Console {
 public:
  static constexpr Duration kPatience = Duration::Seconds(10);
  static constexpr size_t kViewersMax = 16;

  // The loop outlives the console.
  static std::shared_ptr<Console> On(rt::Loop& loop, std::unique_ptr<SerialLine> line);
  Console(const Console&) = delete;
  Console& operator=(const Console&) = delete;

  // The line is gone, or nobody looks any more: the next viewer needs another console.
  bool is_over() const { return over_; }
  // One more viewer, which keeps the console. TooManyRequests beyond kViewersMax.
  // REQUIRES: !console->is_over().
  static Result<std::unique_ptr<iri::AttachStream>> Join(const std::shared_ptr<Console>& console);
  // Everybody leaves; `why` is what they hear last, "0" for a good end.
  void End(const std::string& why);

 private:
  class Viewer;
  // Frames that a viewer has not read, and pieces that the guest has not.
  static constexpr size_t kFramesMax = 16;

  Console(rt::Loop& loop, std::unique_ptr<SerialLine> line);
  rt::Task<Status> Listen();
  rt::Task<Status> Type();
  rt::Task<Status> Show(std::string bytes);
  rt::Task<Status> Leave(Viewer* viewer);

  const std::unique_ptr<SerialLine> line_;
  bool over_ = false;
  std::list<Viewer*> viewers_;
  rt::Channel<std::string> typed_{kFramesMax};
  rt::TaskScope pumps_;
};

}  // namespace berth::runtime
