// SPDX-License-Identifier: Apache-2.0
// Servers are those of one cluster, any of which may be asked: the one that was used last, and
// another one when it is gone or silent.
//
// Invariants: 1. Nothing is sent to a server before a connection to it stands. 2. What was sent to
// one is sent to another only if it may happen twice (MayRepeat). 3. With one server nothing
// differs from talking to it directly.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "cli/https/signed_requests.h"
#include "cli/kubeconfig/connection.h"
#include "cli/transport.h"
#include "net/http_client.h"
#include "rt/asio/asio_loop.h"
#include "rt/channel.h"
#include "rt/deadline.h"
#include "rt/scope.h"
#include "rt/task.h"

namespace berth::cli {

// Whether it makes no difference that a request is carried out twice: reads, dry runs, server-side
// apply. (PUT and DELETE would end with the second one's Conflict or NotFound.)
bool MayRepeat(const Request& request);

struct ServerTimes {
  Duration head_start = Duration::Millis(500);  // before the next one is dialled as well
  Duration silence = Duration::Seconds(5);      // before a server is asked whether it is there
  Duration sign_of_life = Duration::Seconds(3);
};

class Servers {
 public:
  struct Server {
    std::string url;
    SignedRequests requests;
    std::unique_ptr<net::HttpClient> client;
  };

  // BadRequest for certificates, keys or a URL that cannot be used. Connects with the first
  // request. The loop outlives it.
  static Result<std::unique_ptr<Servers>> New(rt::AsioLoop& loop,
                                              const Connection& connection,
                                              ServerTimes times = {});

  size_t size() const { return order_.size(); }

  // The server to ask; of several one to which a connection stands. Unavailable with the reason of
  // each.
  rt::Task<Result<Server*>> Reach();
  // Asked last from now on.
  void PassOver(const Server* server);

  // Does `work` with a server as long as it shows signs of life; of one server nothing is asked.
  // Unavailable once it shows none.
  template <class T>
  rt::Task<Result<T>> While(Server* server, rt::Task<Result<T>> work) {
    if (size() == 1) co_return co_await std::move(work);
    rt::TaskScope scope(loop_);
    rt::Channel<Result<T>> answers(1);
    scope.Spawn("cli.ask", Ask(std::move(work), &answers));
    Result<Result<T>> answer = Unavailable("");
    for (;;) {
      answer = co_await rt::WithDeadline(answers.Receive(), times_.silence);
      if (!answer.status().Is(Reason::kTimeout)) break;
      const Status alive = co_await LooksAlive(server);
      if (alive.ok()) continue;
      answer = alive;
      break;
    }
    CO_TRY_STATUS(co_await scope.Close());
    if (!answer.ok()) co_return answer.status();
    co_return *std::move(answer);
  }

 private:
  struct Dialled {
    Server* server = nullptr;
    Status status;
  };
  Servers(rt::AsioLoop& loop, ServerTimes times) : loop_(loop), times_(times) {}
  rt::Task<Status> Dial(Server* server, rt::Channel<Dialled>* ended);
  rt::Task<Result<Server*>> DialAll(rt::TaskScope* dials, rt::Channel<Dialled>* ended);
  rt::Task<Status> LooksAlive(Server* server);

  template <class T>
  static rt::Task<Status> Ask(rt::Task<Result<T>> work, rt::Channel<Result<T>>* answers) {
    Result<T> answer = co_await std::move(work);
    co_return co_await answers->Send(std::move(answer));
  }

  rt::AsioLoop& loop_;
  const ServerTimes times_;
  std::vector<std::unique_ptr<Server>> order_;  // the one to ask first
};

}  // namespace berth::cli
