// SPDX-License-Identifier: Apache-2.0
// The bridge against a real gRPC server: answers and errors, deadlines, cancellation from either
// side, back-pressure, and servers that die.
#include "net/grpc_bridge.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "echo.grpc.pb.h"
#include "net/grpc_client_stream.h"
#include "net/grpc_server.h"
#include "net/grpc_server_stream.h"
#include "rt/asio/asio_loop.h"
#include "rt/event.h"
#include "rt/sleep.h"

namespace berth::net {
namespace {

using testdata::EchoRequest;
using testdata::EchoResponse;
using testdata::EchoService;
using Async = EchoService::StubInterface::async_interface;
using ClientStream = GrpcClientStream<EchoRequest, EchoResponse>;
using ServerStream = GrpcServerStream<EchoRequest, EchoResponse>;

EchoRequest Say(const std::string& text) {
  EchoRequest request;
  request.set_text(text);
  return request;
}
EchoResponse Answer(const std::string& text) {
  EchoResponse response;
  response.set_text(text);
  return response;
}

class EchoServer final : public EchoService::CallbackService {
 public:
  explicit EchoServer(rt::Loop& loop) : scope_(loop) {}

  grpc::ServerUnaryReactor* Echo(grpc::CallbackServerContext*,
                                 const EchoRequest* request,
                                 EchoResponse* response) override {
    return ServeUnary<EchoRequest, EchoResponse>(
        scope_, request, response, [this](const EchoRequest& r) { return HandleEcho(&r); });
  }
  grpc::ServerBidiReactor<EchoRequest, EchoResponse>* Chat(grpc::CallbackServerContext*) override {
    return ServeBidi<EchoRequest, EchoResponse>(
        scope_, [this](ServerStream& stream) { return HandleChat(&stream); });
  }

  rt::TaskScope& scope() { return scope_; }
  rt::Event reached;
  rt::Event cancelled;
  rt::Event chat_ended;

 private:
  rt::Task<Result<EchoResponse>> HandleEcho(const EchoRequest* request) {
    scope_.loop().Assert();
    if (request->text() == "missing") co_return NotFound("no such thing");
    if (request->text() == "wait") {
      reached.Set();
      const Status status = co_await rt::Sleep(Duration::Hours(1));
      if (status.Is(Reason::kCancelled)) cancelled.Set();
      co_return status;
    }
    co_return Answer("echo " + request->text());
  }

  rt::Task<Status> HandleChat(ServerStream* stream) {
    scope_.loop().Assert();
    for (;;) {
      Result<std::optional<EchoRequest>> request = co_await stream->Read();
      const bool has_message = request.ok() && request->has_value();
      if (!has_message) chat_ended.Set();
      if (!request.ok()) co_return request.status();
      if (!has_message) co_return OkStatus();
      const std::string text = (*request)->text();
      if (text == "fail") co_return Conflict("someone was faster");
      if (text == "stop reading") {
        reached.Set();
        co_return co_await rt::Sleep(Duration::Hours(1));
      }
      CO_TRY_STATUS(co_await stream->Write(Answer("echo " + text)));
    }
  }

  rt::TaskScope scope_;
};

struct World {
  rt::AsioLoop loop;
  EchoServer service{loop};
  std::unique_ptr<GrpcServer> server;
  std::unique_ptr<EchoService::Stub> stub;
};

using Script = std::function<rt::Task<Status>(World*)>;

rt::Task<Status> RunScript(World* world, Script script) {
  world->server = *GrpcServer::Start("127.0.0.1:0", {&world->service});
  const auto channel =
      grpc::CreateCustomChannel("127.0.0.1:" + std::to_string(world->server->port()),
                                grpc::InsecureChannelCredentials(),
                                GrpcChannelArguments());
  world->stub = EchoService::NewStub(channel);
  const Status status = co_await script(world);
  CO_TRY_STATUS(co_await world->server->Stop(Duration()));
  CO_TRY_STATUS(co_await world->service.scope().Close());
  co_return status;
}

void Serve(Script script) {
  InitGrpcProcess();
  World world;
  EXPECT_EQ(rt::RunTask(world.loop, RunScript(&world, std::move(script))), OkStatus());
}

rt::Task<Result<EchoResponse>> Echo(World* world,
                                    std::string text,
                                    Duration deadline = Duration::Seconds(20)) {
  GrpcCallOptions options;
  options.deadline = deadline;
  co_return co_await CallUnary<Async, EchoRequest, EchoResponse>(
      world->stub->async(), &Async::Echo, Say(text), options);
}

rt::Task<Status> Unary(World* world) {
  CO_TRY(const EchoResponse response, co_await Echo(world, "hello"));
  EXPECT_EQ(response.text(), "echo hello");
  EXPECT_TRUE(world->loop.IsOnLoop());
  const auto missing = co_await Echo(world, "missing");
  EXPECT_EQ(missing.status(), NotFound("no such thing"));
  co_return OkStatus();
}
TEST(GrpcBridge, CarriesAnswersAndErrors) { Serve(Unary); }

rt::Task<Status> Deadline(World* world) {
  const auto late = co_await Echo(world, "wait", Duration::Millis(200));
  EXPECT_EQ(late.status().reason(), Reason::kTimeout);
  co_return co_await world->service.cancelled.Wait();
}
TEST(GrpcBridge, KeepsDeadlinesAndTellsTheServer) { Serve(Deadline); }

rt::Task<Status> EchoInto(World* world, Status* out) {
  const auto answer = co_await Echo(world, "wait");
  *out = answer.status();
  co_return OkStatus();
}

rt::Task<Status> CancelCall(World* world) {
  Status ended;
  rt::TaskScope scope(world->loop);
  scope.Spawn("call", EchoInto(world, &ended));
  CO_TRY_STATUS(co_await world->service.reached.Wait());
  CO_TRY_STATUS(co_await scope.Close());
  EXPECT_EQ(ended.reason(), Reason::kCancelled);
  co_return co_await world->service.cancelled.Wait();
}
TEST(GrpcBridge, CancelsTheCallWithItsTask) { Serve(CancelCall); }

ClientStream::Start StartChat(World* world) {
  return [world](grpc::ClientContext* context, ClientStream::Reactor* reactor) {
    world->stub->async()->Chat(context, reactor);
  };
}

rt::Task<Status> Chat(World* world) {
  ClientStream stream(world->loop, StartChat(world));
  for (int i = 0; i < 200; ++i) {
    CO_TRY_STATUS(co_await stream.Write(Say(std::to_string(i))));
    CO_TRY(const std::optional<EchoResponse> response, co_await stream.Read());
    EXPECT_EQ(response->text(), "echo " + std::to_string(i));
  }
  CO_TRY_STATUS(co_await stream.Finish());
  const Status late = co_await stream.Write(Say("late"));
  EXPECT_EQ(late.reason(), Reason::kUnavailable);
  co_return co_await stream.Close();
}
TEST(GrpcBridge, ChatsInBothDirections) { Serve(Chat); }

rt::Task<Status> WriteAll(ClientStream* stream, int count) {
  for (int i = 0; i < count; ++i) CO_TRY_STATUS(co_await stream->Write(Say(std::to_string(i))));
  stream->WritesDone();
  co_return OkStatus();
}

rt::Task<Status> Pipeline(World* world) {
  ClientStream stream(world->loop, StartChat(world));
  rt::TaskScope scope(world->loop);
  scope.Spawn("write", WriteAll(&stream, 1'000));
  int read = 0;
  for (;; ++read) {
    CO_TRY(const std::optional<EchoResponse> response, co_await stream.Read());
    if (!response.has_value()) break;
    EXPECT_EQ(response->text(), "echo " + std::to_string(read));
  }
  EXPECT_EQ(read, 1'000);
  CO_TRY_STATUS(co_await scope.Join());
  co_return co_await stream.Close();
}
TEST(GrpcBridge, KeepsOrderThroughItsOutbox) { Serve(Pipeline); }

rt::Task<Status> BoundedOutbox(World* world) {
  GrpcStreamOptions options;
  options.outbox_max = 4;
  ClientStream stream(world->loop, StartChat(world), options);
  CO_TRY_STATUS(co_await stream.Write(Say("stop reading")));
  CO_TRY_STATUS(co_await world->service.reached.Wait());
  // Flow control fills up; from then on the outbox does, and no further.
  const std::string large(64 * 1024, 'x');
  int accepted = 0;
  for (; accepted < 10'000; ++accepted) {
    if (stream.TryWrite(Say(large))) continue;
    CO_TRY_STATUS(co_await rt::Sleep(Duration::Millis(20)));
    if (!stream.TryWrite(Say(large))) break;
  }
  EXPECT_LT(accepted, 10'000);
  EXPECT_EQ(stream.outbox_size(), 4U);
  rt::TaskScope scope(world->loop);
  scope.Spawn("write", WriteAll(&stream, 1));
  CO_TRY_STATUS(co_await stream.Close());
  co_return co_await scope.Close();
}
TEST(GrpcBridge, BoundsItsOutbox) { Serve(BoundedOutbox); }

rt::Task<Status> FinalStatus(World* world) {
  ClientStream stream(world->loop, StartChat(world));
  CO_TRY_STATUS(co_await stream.Write(Say("fail")));
  const auto end = co_await stream.Read();
  EXPECT_EQ(end.status(), Conflict("someone was faster"));
  const Status after = co_await stream.Write(Say("x"));
  EXPECT_EQ(after, Conflict("someone was faster"));
  co_return co_await stream.Close();
}
TEST(GrpcBridge, GivesTheServersFinalStatus) { Serve(FinalStatus); }

rt::Task<Status> ReadInto(ClientStream* stream, Status* out) {
  const auto message = co_await stream->Read();
  *out = message.status();
  co_return OkStatus();
}

rt::Task<Status> CancelRead(World* world) {
  ClientStream stream(world->loop, StartChat(world));
  Status ended;
  rt::TaskScope scope(world->loop);
  scope.Spawn("read", ReadInto(&stream, &ended));
  CO_TRY_STATUS(co_await scope.Close());
  EXPECT_EQ(ended.reason(), Reason::kCancelled);
  CO_TRY_STATUS(co_await stream.Write(Say("later")));
  CO_TRY(const std::optional<EchoResponse> response, co_await stream.Read());
  EXPECT_EQ(response->text(), "echo later");
  CO_TRY_STATUS(co_await stream.Close());
  co_return co_await world->service.chat_ended.Wait();
}
TEST(GrpcBridge, LosesNothingInACancelledReadAndClosesAtOnce) { Serve(CancelRead); }

rt::Task<Status> ServerDies(World* world) {
  ClientStream stream(world->loop, StartChat(world));
  CO_TRY_STATUS(co_await stream.Write(Say("hello")));
  CO_TRY_STATUS(co_await stream.Read());
  Status ended;
  rt::TaskScope scope(world->loop);
  scope.Spawn("read", ReadInto(&stream, &ended));
  CO_TRY_STATUS(co_await world->server->Stop(Duration()));
  CO_TRY_STATUS(co_await scope.Join());
  EXPECT_FALSE(ended.ok());
  CO_TRY_STATUS(co_await stream.Close());
  const auto unreachable = co_await Echo(world, "hello", Duration::Seconds(5));
  EXPECT_EQ(unreachable.status().reason(), Reason::kUnavailable) << unreachable.status();
  co_return OkStatus();
}
TEST(GrpcBridge, NoticesThatTheServerDied) { Serve(ServerDies); }

rt::Task<Status> NobodyThere(World* world) {
  CO_TRY_STATUS(co_await world->server->Stop(Duration()));
  ClientStream stream(world->loop, StartChat(world));
  const auto end = co_await stream.Read();
  EXPECT_EQ(end.status().reason(), Reason::kUnavailable) << end.status();
  co_return co_await stream.Close();
}
TEST(GrpcBridge, FailsAStreamToNobody) { Serve(NobodyThere); }

TEST(GrpcBridge, MapsEveryStatusThere) {
  EXPECT_TRUE(ToGrpc(OkStatus()).ok());
  const grpc::Status conflict = ToGrpc(Conflict("changed"));
  EXPECT_EQ(conflict.error_code(), grpc::StatusCode::ABORTED);
  EXPECT_EQ(FromGrpc(conflict), Conflict("changed"));
  EXPECT_EQ(FromGrpc(grpc::Status::OK), OkStatus());
}

}  // namespace
}  // namespace berth::net
