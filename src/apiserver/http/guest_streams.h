// SPDX-License-Identifier: Apache-2.0
// The subresources exec, console, portforward and log of machines: conversations with guests. They
// go through the tunnel that the guest's host opens (fleet/fleet.h); there is no other way to it.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "apiserver/audit/audit_log.h"
#include "apiserver/http/call.h"
#include "apiserver/http/hosts.h"
#include "apiserver/registry.h"
#include "base/result.h"
#include "fleet/fleet.h"
#include "net/http.h"
#include "rt/loop.h"
#include "rt/task.h"

namespace berth::apiserver {

class GuestStreams {
 public:
  struct Deps {
    rt::Loop& loop;
    Registry& registry;
    AuditLog& audit;
    const Hosts& hosts;
  };
  explicit GuestStreams(Deps deps) : deps_(deps) {}

  // Whether the request is for one of these.
  static bool Serves(const RequestInfo& info);
  // Whoever may talk to a guest may change it: such a request counts as a create, although a
  // WebSocket begins with a GET.
  static bool IsConversation(const RequestInfo& info);

  // BadRequest if it is no WebSocket, Forbidden if a page of another site opens it. Of a
  // conversation.
  static Status CheckUpgrade(const Call& call);

  // Opens the tunnel first, so that what cannot be is an answer and not a broken stream. BadRequest
  // without an upgrade to WebSocket (but for log), if the machine is nowhere or off, or for options
  // that make no sense; Unavailable if its host is not connected.
  rt::Task<Result<net::HttpResponse>> Answer(CallPtr call) const;

 private:
  struct Talk;
  using TalkPtr = std::shared_ptr<Talk>;
  using Options = std::map<std::string, std::string>;

  rt::Task<Result<std::unique_ptr<fleet::Tunnel>>> Open(CallPtr call,
                                                        std::string what,
                                                        Options options) const;
  rt::Task<Result<net::HttpResponse>> Log(CallPtr call) const;
  static rt::Task<Status> Converse(TalkPtr talk, net::WebSocket* socket);
  static rt::Task<Status> ToGuest(TalkPtr talk, net::WebSocket* socket);
  static rt::Task<Status> ToClient(TalkPtr talk, net::WebSocket* socket);
  static rt::Task<Status> WatchIdle(TalkPtr talk);
  static rt::Task<Status> WriteLog(TalkPtr talk, net::BodyWriter* body);

  const Deps deps_;
};

}  // namespace berth::apiserver
