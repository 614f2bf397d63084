// SPDX-License-Identifier: Apache-2.0
// Unmodified gRPC at the other end: a grpc++ client, grpcio in Python, and a grpc++ server.
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server_builder.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/strings.h"
#include "echo.grpc.pb.h"
#include "net/grpc_status.h"
#include "net/h2/h2_dialer.h"
#include "net/h2/h2_server.h"
#include "net/testing/test_pki.h"
#include "rt/asio/loop_thread.h"
#include "rt/deadline.h"
#include "rt/event.h"
#include "rt/sleep.h"

namespace berth::net {
namespace {

using testdata::EchoRequest;
using testdata::EchoResponse;
using testdata::EchoService;

constexpr char kService[] = "/berth.net.testdata.EchoService/";
constexpr Duration kLimit = Duration::Seconds(30);

std::string Encode(const std::string& text) {
  EchoResponse response;
  response.set_text(text);
  return response.SerializeAsString();
}
Result<std::string> Decode(const std::string& bytes) {
  EchoRequest request;
  if (!request.ParseFromString(bytes)) return BadRequest("not an EchoRequest");
  return request.text();
}

// The service of echo.proto on our own server.
class OurServer {
 public:
  OurServer() : thread_("interop") {
    const Status started = thread_.Await(Start());
    EXPECT_EQ(started, OkStatus());
  }
  ~OurServer() { Stop(); }
  OurServer(const OurServer&) = delete;
  OurServer& operator=(const OurServer&) = delete;

  void Stop() { EXPECT_EQ(thread_.Await(StopTask()), OkStatus()); }
  uint16_t port() const { return port_; }
  TestPki& pki() { return pki_; }
  // Until a handler was cancelled.
  Status WaitCancelled() { return thread_.Await(rt::WithDeadline(cancelled_.Wait(), kLimit)); }

 private:
  rt::Task<Status> Start() {
    const TestIdentity identity = pki_.IssueServer({"localhost", "127.0.0.1"});
    TlsServerOptions tls;
    tls.certificate_pem = identity.certificate_pem;
    tls.key_pem = identity.key_pem;
    tls.client_certificates = ClientCertificates::kRequired;
    tls.client_ca_pem = pki_.ca_pem();
    H2ServerOptions options;
    CO_TRY(options.tls, NewH2ServerTls(tls));
    options.drain_timeout = Duration::Millis(100);
    RpcRoutes routes;
    const std::string service = kService;
    routes.unary[service + "Echo"] = {.handler = [this](RpcCall call, std::string request) {
      return Echo(std::move(call), std::move(request));
    }};
    routes.streams[service + "Chat"] = {
        .handler = [this](RpcCall, MessageStream& stream) { return Chat(&stream); }};
    routes.streams[service + "Repeat"] = {
        .handler = [](RpcCall, MessageStream& stream) { return Repeat(&stream); },
        .limits = {.outbox_bytes_max = 2'000}};
    routes.streams[service + "Join"] = {
        .handler = [](RpcCall, MessageStream& stream) { return Join(&stream); }};
    CO_TRY(server_, H2Server::Start(thread_.loop(), std::move(options), std::move(routes)));
    port_ = server_->port();
    co_return OkStatus();
  }
  rt::Task<Status> StopTask() { co_return co_await server_->Stop(); }

  rt::Task<Result<std::string>> Echo(RpcCall call, std::string request) {
    CO_TRY(const std::string text, Decode(request));
    if (text == "missing") co_return NotFound("no such thing: 100 % ü");
    if (text == "metadata") {
      co_return Encode(call.metadata["x-word"] + " " + HexEncode(call.metadata["x-raw-bin"]));
    }
    if (text == "slow") {
      const Status slept = co_await rt::Sleep(Duration::Hours(1));
      if (slept.Is(Reason::kCancelled)) cancelled_.Set();
      if (!slept.ok()) co_return slept;
    }
    co_return Encode(text);
  }
  rt::Task<Status> Chat(MessageStream* stream) {
    for (;;) {
      const Result<std::optional<std::string>> message = co_await stream->Read();
      if (!message.ok()) cancelled_.Set();
      CO_TRY_STATUS(message);
      if (!message->has_value()) co_return OkStatus();
      CO_TRY(const std::string text, Decode(**message));
      if (text == "fail") co_return Conflict("someone was faster");
      CO_TRY_STATUS(co_await stream->Write(Encode(text)));
    }
  }
  static rt::Task<Status> Repeat(MessageStream* stream) {
    CO_TRY(const std::optional<std::string> request, co_await stream->Read());
    CO_TRY(const std::string text, Decode(request.value_or("")));
    for (int i = 0; i < 1'000; ++i) {
      CO_TRY_STATUS(co_await stream->Write(Encode(text + std::to_string(i))));
    }
    co_return OkStatus();
  }
  static rt::Task<Status> Join(MessageStream* stream) {
    std::string all;
    for (;;) {
      CO_TRY(const std::optional<std::string> message, co_await stream->Read());
      if (!message.has_value()) break;
      CO_TRY(const std::string text, Decode(*message));
      all += text;
    }
    co_return co_await stream->Write(Encode(all));
  }

  TestPki pki_;
  rt::LoopThread thread_;
  rt::Event cancelled_;
  std::unique_ptr<H2Server> server_;
  uint16_t port_ = 0;
};

class GrpcInterop : public testing::Test {
 protected:
  GrpcInterop() {
    InitGrpcProcess();
    const TestIdentity identity = server.pki().IssueClient("host-1");
    grpc::SslCredentialsOptions options;
    options.pem_root_certs = server.pki().ca_pem();
    options.pem_cert_chain = identity.certificate_pem;
    options.pem_private_key = identity.key_pem;
    stub = EchoService::NewStub(grpc::CreateChannel("localhost:" + std::to_string(server.port()),
                                                    grpc::SslCredentials(options)));
  }
  grpc::Status Echo(grpc::ClientContext& context, const std::string& text, std::string* answer) {
    EchoRequest request;
    EchoResponse response;
    request.set_text(text);
    const grpc::Status status = stub->Echo(&context, request, &response);
    *answer = response.text();
    return status;
  }
  static EchoRequest Say(const std::string& text) {
    EchoRequest request;
    request.set_text(text);
    return request;
  }

  OurServer server;
  std::unique_ptr<EchoService::Stub> stub;
};

TEST_F(GrpcInterop, AUnaryCallIsAnswered) {
  for (const std::string& text :
       {std::string("hello"), std::string(), std::string(3'000'000, 'x')}) {
    grpc::ClientContext context;
    std::string answer;
    const grpc::Status status = Echo(context, text, &answer);
    EXPECT_TRUE(status.ok()) << status.error_message();
    EXPECT_TRUE(answer == text);
  }
}

TEST_F(GrpcInterop, AnErrorHasItsCodeAndText) {
  grpc::ClientContext context;
  std::string answer;
  const grpc::Status status = Echo(context, "missing", &answer);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(status.error_message(), "no such thing: 100 % ü");
  EXPECT_EQ(context.GetServerTrailingMetadata().count("berth-status-bin"), 1U);
}

TEST_F(GrpcInterop, MetadataArrives) {
  grpc::ClientContext context;
  context.AddMetadata("x-word", "one");
  context.AddMetadata("x-raw-bin", std::string("\x00\xff", 2));
  std::string answer;
  EXPECT_TRUE(Echo(context, "metadata", &answer).ok());
  EXPECT_EQ(answer, "one 00ff");
}

TEST_F(GrpcInterop, ADeadlineEndsTheCallAndItsHandler) {
  std::string answer;
  grpc::ClientContext connecting;  // which may take longer than the deadline
  EXPECT_TRUE(Echo(connecting, "hello", &answer).ok());
  grpc::ClientContext context;
  context.set_deadline(GrpcDeadline(Duration::Seconds(1)));
  EXPECT_EQ(Echo(context, "slow", &answer).error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_EQ(server.WaitCancelled(), OkStatus());
}

TEST_F(GrpcInterop, ACancellationReachesTheHandler) {
  grpc::ClientContext context;
  const auto chat = stub->Chat(&context);
  EchoResponse response;
  ASSERT_TRUE(chat->Write(Say("one")));
  ASSERT_TRUE(chat->Read(&response));
  context.TryCancel();
  EXPECT_FALSE(chat->Read(&response));
  EXPECT_EQ(chat->Finish().error_code(), grpc::StatusCode::CANCELLED);
  EXPECT_EQ(server.WaitCancelled(), OkStatus());
}

TEST_F(GrpcInterop, MessagesGoBothWays) {
  grpc::ClientContext context;
  const auto chat = stub->Chat(&context);
  EchoResponse response;
  for (int i = 0; i < 200; ++i) {
    ASSERT_TRUE(chat->Write(Say(std::to_string(i))));
    ASSERT_TRUE(chat->Read(&response));
    EXPECT_EQ(response.text(), std::to_string(i));
  }
  const std::string big(2'000'000, 'b');
  ASSERT_TRUE(chat->Write(Say(big)));
  ASSERT_TRUE(chat->Read(&response));
  EXPECT_TRUE(response.text() == big) << "more than any window, both ways";
  ASSERT_TRUE(chat->WritesDone());
  EXPECT_FALSE(chat->Read(&response));
  EXPECT_TRUE(chat->Finish().ok());
}

TEST_F(GrpcInterop, AStreamEndsWithAnError) {
  grpc::ClientContext context;
  const auto chat = stub->Chat(&context);
  EchoResponse response;
  ASSERT_TRUE(chat->Write(Say("fail")));
  EXPECT_FALSE(chat->Read(&response));
  const grpc::Status status = chat->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::ABORTED);
  EXPECT_EQ(status.error_message(), "someone was faster");
}

TEST_F(GrpcInterop, AServerStreamsAndAClientStreams) {
  grpc::ClientContext reading;
  const auto repeat = stub->Repeat(&reading, Say("x"));
  EchoResponse response;
  int count = 0;
  while (repeat->Read(&response)) EXPECT_EQ(response.text(), "x" + std::to_string(count++));
  EXPECT_EQ(count, 1'000);
  EXPECT_TRUE(repeat->Finish().ok());

  grpc::ClientContext writing;
  const auto join = stub->Join(&writing, &response);
  for (int i = 0; i < 300; ++i) ASSERT_TRUE(join->Write(Say(std::string(10'000, 'j'))));
  ASSERT_TRUE(join->WritesDone());
  EXPECT_TRUE(join->Finish().ok());
  EXPECT_EQ(response.text().size(), 3'000'000U);
}

TEST_F(GrpcInterop, AStoppedServerIsUnavailable) {
  grpc::ClientContext context;
  const auto chat = stub->Chat(&context);
  EchoResponse response;
  ASSERT_TRUE(chat->Write(Say("one")));
  ASSERT_TRUE(chat->Read(&response));
  server.Stop();
  EXPECT_FALSE(chat->Read(&response));
  EXPECT_EQ(chat->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
}

TEST_F(GrpcInterop, AClientWithoutACertificateIsRefused) {
  grpc::SslCredentialsOptions options;
  options.pem_root_certs = server.pki().ca_pem();
  stub = EchoService::NewStub(grpc::CreateChannel("localhost:" + std::to_string(server.port()),
                                                  grpc::SslCredentials(options)));
  grpc::ClientContext context;
  context.set_deadline(GrpcDeadline(Duration::Seconds(5)));
  std::string answer;
  EXPECT_FALSE(Echo(context, "hello", &answer).ok());
}

// Debian's package python3-grpcio belongs to Debian's own interpreter.
TEST_F(GrpcInterop, PythonsClientIsServed) {
  const TestIdentity identity = server.pki().IssueClient("host-2");
  std::vector<std::string> words = {"/usr/bin/python3",
                                    BERTH_NET_TESTDATA "/echo_client.py",
                                    std::to_string(server.port()),
                                    server.pki().ca_pem(),
                                    identity.certificate_pem,
                                    identity.key_pem};
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  pid_t child = 0;
  ASSERT_EQ(posix_spawn(&child, words[0].c_str(), nullptr, nullptr, arguments.data(), environ), 0);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0) << "scripts/packages.txt names what it needs: python3-grpcio";
}

// grpc++'s server, as it comes.
class TheirServer final : public EchoService::Service {
 public:
  TheirServer() {
    const TestIdentity identity = pki.IssueServer({"127.0.0.1"});
    grpc::SslServerCredentialsOptions options(
        GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
    options.pem_root_certs = pki.ca_pem();
    options.pem_key_cert_pairs.push_back({identity.key_pem, identity.certificate_pem});
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::SslServerCredentials(options), &port);
    builder.RegisterService(this);
    server = builder.BuildAndStart();
  }
  grpc::Status Echo(grpc::ServerContext* context,
                    const EchoRequest* request,
                    EchoResponse* response) override {
    if (request->text() == "missing") return {grpc::StatusCode::NOT_FOUND, "nö"};
    if (request->text() == "slow") {
      while (!context->IsCancelled()) {
        gpr_sleep_until(
            gpr_time_add(gpr_now(GPR_CLOCK_REALTIME), gpr_time_from_millis(1, GPR_TIMESPAN)));
      }
    }
    response->set_text(request->text());
    return grpc::Status::OK;
  }
  grpc::Status Chat(grpc::ServerContext*,
                    grpc::ServerReaderWriter<EchoResponse, EchoRequest>* stream) override {
    EchoRequest request;
    while (stream->Read(&request)) {
      EchoResponse response;
      response.set_text(request.text());
      stream->Write(response);
    }
    return grpc::Status::OK;
  }

  TestPki pki;
  int port = 0;
  std::unique_ptr<grpc::Server> server;
};

rt::Task<Status> CallTheirs(RpcChannel* channel) {
  const std::string service = kService;
  RpcOptions options;
  options.deadline = kLimit;
  for (const std::string& text : {std::string("hello"), std::string(3'000'000, 'x')}) {
    CO_TRY(const std::string answer,
           co_await channel->Call(service + "Echo", Encode(text), options));
    EXPECT_TRUE(answer == Encode(text));
  }
  const auto missing = co_await channel->Call(service + "Echo", Encode("missing"), options);
  EXPECT_EQ(missing.status(), NotFound("nö"));
  const auto nothing = co_await channel->Call(service + "Nothing", "", options);
  EXPECT_EQ(nothing.status().reason(), Reason::kMethodNotSupported);
  CO_TRY(auto stream, co_await channel->Open(service + "Chat", options));
  for (int i = 0; i < 300; ++i) {
    CO_TRY_STATUS(co_await stream->Write(Encode(std::to_string(i))));
  }
  stream->WritesDone();
  for (int i = 0; i < 300; ++i) {
    CO_TRY(const std::optional<std::string> answer, co_await stream->Read());
    EXPECT_EQ(answer, Encode(std::to_string(i)));
  }
  CO_TRY(const std::optional<std::string> end, co_await stream->Read());
  EXPECT_EQ(end, std::nullopt);
  options.deadline = Duration::Millis(200);
  const auto late = co_await channel->Call(service + "Echo", Encode("slow"), options);
  EXPECT_EQ(late.status().reason(), Reason::kTimeout) << late.status();
  co_return OkStatus();
}

rt::Task<Status> DialTheirs(rt::AsioLoop* loop, TheirServer* theirs) {
  H2Dialer dialer(*loop);
  const TestIdentity identity = theirs->pki.IssueClient("host-1");
  const RpcCredentials credentials{.ca_pem = theirs->pki.ca_pem(),
                                   .certificate_pem = identity.certificate_pem,
                                   .key_pem = identity.key_pem};
  CO_TRY(auto channel,
         co_await dialer.Dial("127.0.0.1:" + std::to_string(theirs->port), credentials, kLimit));
  const Status status = co_await CallTheirs(channel.get());
  CO_TRY_STATUS(co_await channel->Close());
  co_return status;
}

TEST(GrpcInteropClient, OurClientIsServedByTheirServer) {
  InitGrpcProcess();
  TheirServer theirs;
  rt::AsioLoop loop;
  EXPECT_EQ(rt::RunTask(loop, DialTheirs(&loop, &theirs)), OkStatus());
  theirs.server->Shutdown(GrpcDeadline(Duration()));
}

}  // namespace
}  // namespace berth::net
