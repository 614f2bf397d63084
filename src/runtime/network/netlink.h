// SPDX-License-Identifier: Apache-2.0
// One conversation with the kernel over rtnetlink: a request, and what it answers.
#pragma once

#include <linux/netlink.h>
#include <linux/rtnetlink.h>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace berth::runtime {

// A message about one link, put together.
class LinkRequest {
 public:
  LinkRequest(uint16_t type, unsigned flags, const ifinfomsg& link);

  LinkRequest& Text(uint16_t type, std::string_view value);  // ends with a zero
  LinkRequest& Raw(uint16_t type, std::string_view value);
  LinkRequest& U32(uint16_t type, uint32_t value);
  LinkRequest& U8(uint16_t type, uint8_t value);
  LinkRequest& Open(uint16_t type);
  LinkRequest& Close();

  // The bytes to send, with their length filled in. REQUIRES: everything is closed.
  std::string Bytes(uint32_t sequence) const;

 private:
  std::string bytes_;
  std::string open_;  // where the parts begin that are not closed yet, two bytes each
};

// The attributes of a link, one after another.
using AttributeFn = std::function<void(uint16_t type, std::string_view value)>;
void EachAttribute(std::string_view attributes, const AttributeFn& fn);

class RouteSocket {
 public:
  static Result<RouteSocket> Open();
  RouteSocket(RouteSocket&& other) noexcept;
  RouteSocket& operator=(RouteSocket&& other) noexcept;
  ~RouteSocket();

  // Errno of the kernel's answer, 0 for none; a Status if there was no answer.
  Result<int> Ask(const LinkRequest& request);
  // Calls fn for every link with what follows its ifinfomsg.
  using LinkFn = std::function<void(const ifinfomsg& link, std::string_view attributes)>;
  Status EachLink(const LinkFn& fn);

 private:
  explicit RouteSocket(int fd) : fd_(fd) {}
  Status Send(const LinkRequest& request);
  Result<std::string> Receive() const;

  int fd_ = -1;
  uint32_t sequence_ = 0;
};

}  // namespace berth::runtime
