// SPDX-License-Identifier: Apache-2.0
#include "apiserver/http/api_server.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apis/berth/placement_review.h"
#include "apiserver/authz/impersonation.h"
#include "apiserver/fairness/brief_seat.h"
#include "apiserver/http/answers.h"
#include "apiserver/http/router.h"
#include "apiserver/http/version.h"
#include "base/log.h"
#include "base/strings.h"
#include "base/uid.h"
#include "net/url.h"
#include "rt/child_context.h"
#include "rt/sleep.h"

namespace berth::apiserver {
namespace {

bool IsRead(std::string_view method) { return method == "GET" || method == "HEAD"; }

Status NoSuchResource() { return NotFound("the server could not find the requested resource"); }

Status MethodNotAllowed(const Call& call) {
  return {Reason::kMethodNotSupported,
          "the server does not allow the method " + Quote(call.http.method) + " on " +
              (call.info.is_resource ? Quote(call.info.resource) : Quote(call.info.path))};
}

bool ServesSubresource(const meta::KindInfo& kind, std::string_view subresource) {
  if (subresource.empty()) return true;
  if (subresource == "status") return kind.has_status;
  if (subresource == "scale") return kind.scale != nullptr;
  return std::ranges::find(kind.subresources, subresource) != kind.subresources.end();
}

// Here the first would count, elsewhere the last: a proxy that looks at what passes would see
// another request than the one that is answered. The values may be secrets.
Status CheckUnambiguous(const net::Headers& headers, std::string_view name) {
  const std::vector<std::string_view> values = headers.GetAll(name);
  if (values.empty() || std::ranges::count(values, values.front()) == std::ssize(values)) {
    return OkStatus();
  }
  return BadRequest("the request has " + std::to_string(values.size()) + " headers " +
                    std::string(name) + " that differ; send one");
}

size_t BodySize(const net::HttpResponse& response) {
  size_t size = 0;
  for (const Bytes& part : response.body) size += part.size();
  return size;
}

// For the audit log, which tells the size of what is too large.
std::string AuditedBody(const net::HttpResponse& response) {
  std::string whole;
  if (BodySize(response) > kAuditBodyMax) return whole;
  for (const Bytes& part : response.body) whole += part.view();
  return whole;
}

// A document that is larger goes out in pieces of this size, as a large list does.
constexpr size_t kPieceBytes = 256 * 1024;

rt::Task<Status> SendPieces(std::vector<Bytes> document, net::BodyWriter* body) {
  for (const Bytes& part : document) {
    for (size_t at = 0; at < part.size(); at += kPieceBytes) {
      std::vector<Bytes> piece;
      piece.emplace_back(part.view().substr(at, kPieceBytes));
      CO_TRY_STATUS(co_await body->Write(std::move(piece)));
      CO_TRY_STATUS(co_await rt::Yield());
    }
  }
  co_return OkStatus();
}

template <class Wire>
rt::Task<Status> WhileGood(CallPtr call, std::function<rt::Task<Status>(Wire&)> talk, Wire* wire) {
  rt::ChildContext child(co_await rt::CurrentContext());
  call->hold->OnVoid([&child] { child.Cancel(); });
  auto talking = talk(*wire);
  const Status ended = co_await talking.In(child.context());
  call->hold->OnVoid({});
  co_return call->hold->is_void() ? Unauthorized("the credentials are void") : ended;
}

// A conversation is cut off when the credentials are void that it was opened with.
void EndWithCredentials(const CallPtr& call, net::HttpResponse& response) {
  if (response.stream) {
    response.stream = [call, talk = std::move(response.stream)](net::BodyWriter& body) {
      return WhileGood(call, talk, &body);
    };
  }
  if (response.websocket) {
    response.websocket = [call, talk = std::move(response.websocket)](net::WebSocket& socket) {
      return WhileGood(call, talk, &socket);
    };
  }
}

}  // namespace

ApiServer::ApiServer(Deps deps)
    : loop_(deps.loop),
      scheme_(deps.scheme),
      authenticator_(deps.authenticator),
      authorizer_(deps.authorizer),
      limiter_(deps.limiter),
      gate_(deps.gate),
      audit_(deps.audit),
      metrics_(deps.metrics),
      measure_(std::move(deps.measure)),
      health_({{.name = "store", .look = std::move(deps.readiness)}}),
      hosts_(std::move(deps.hosts)),
      placement_reviews_({.scheme = deps.scheme,
                          .registry = deps.registry,
                          .authorizer = deps.authorizer,
                          .hosts = hosts_}),
      usage_reads_({.loop = deps.loop,
                    .registry = deps.registry,
                    .authorizer = deps.authorizer,
                    .hosts = hosts_}),
      handlers_({.loop = deps.loop,
                 .scheme = deps.scheme,
                 .registry = deps.registry,
                 .authorizer = deps.authorizer,
                 .metrics = deps.metrics,
                 .placement = placement_reviews_,
                 .hosts = hosts_}),
      guest_streams_(
          {.loop = deps.loop, .registry = deps.registry, .audit = deps.audit, .hosts = hosts_}),
      pass_on_({.loop = deps.loop, .hosts = hosts_, .connect = std::move(deps.connect)}),
      discovery_(deps.scheme),
      openapi_(deps.scheme),
      reviews_({.loop = deps.loop,
                .scheme = deps.scheme,
                .authenticator = deps.authenticator,
                .authorizer = deps.authorizer}),
      request_metrics_(deps.metrics) {}

rt::Task<net::HttpResponse> ApiServer::Handle(net::HttpRequest request) {
  const Time start = loop_.Now();
  auto call = std::make_shared<Call>();
  call->http = std::move(request);
  call->id = NewUid(loop_.random());
  const Status prepared = Prepare(*call);
  auto answer = prepared.ok() ? co_await Dispatch(call) : Result<net::HttpResponse>(prepared);
  net::HttpResponse response = answer.ok() ? *std::move(answer) : StatusAnswer(answer.status());
  Finish(*call, start, response);
  co_return response;
}

Status ApiServer::Prepare(Call& call) {
  const auto target = net::SplitTarget(call.http.target);
  // Whoever is nobody learns nothing about how paths are read.
  call.info.path = target.path;
  call.info.verb = ToLower(call.http.method);
  TRY_STATUS(CheckUnambiguous(call.http.headers, "Authorization"));
  TRY_STATUS(CheckUnambiguous(call.http.headers, "Content-Type"));
  TRY(call.identity,
      authenticator_.Authenticate(
          call.http.peer, call.http.headers.Get("Authorization"), target.path, loop_.WallNow()));
  TRY(call.query, Query::Parse(target.query));
  TRY(call.info, ParseRequest(scheme_, call.http.method, target.path, call.query));
  if (call.info.verb == "get" && GuestStreams::IsConversation(call.info)) call.info.verb = "create";
  TRY(auto impersonated, Impersonate(authorizer_, call.identity, call.http.headers.all()));
  if (impersonated.has_value()) {
    call.impersonator = std::exchange(call.identity, *std::move(impersonated)).user;
  }
  return authorizer_.Check(call.identity, call.info);
}

rt::Task<Result<net::HttpResponse>> ApiServer::Dispatch(CallPtr call) {
  // Health is told at once and costs nothing: it must not wait behind what it is about.
  if (!call->info.is_resource && IsPublicPath(call->info.path)) co_return DispatchPath(*call);
  const bool is_long = call->info.verb == "watch" || GuestStreams::Serves(call->info);
  const auto length = is_long ? RequestLength::kStream : RequestLength::kShort;
  const PriorityLevel level = LevelOf(call->identity, call->info);
  CO_TRY(RequestGate::Seat seat, co_await gate_.Enter(level, call->identity.user));
  CO_TRY(auto ticket, limiter_.Enter(call->identity.user, length));
  auto held = std::make_shared<RequestLimiter::Ticket>(std::move(ticket));
  if (is_long) {
    call->hold = std::make_unique<CredentialHold>(
        authenticator_, call->http.peer, std::string(call->http.headers.Get("Authorization")));
  }
  auto answering = call->info.is_resource ? DispatchResource(call) : DispatchDocument(call);
  CO_TRY(auto response, co_await std::move(answering));
  if (GuestStreams::Serves(call->info)) EndWithCredentials(call, response);
  if (response.stream) {
    // A stream is counted for as long as it runs. Its seat is for the beginning, or for as long as
    // it takes to send something large to somebody who reads.
    std::shared_ptr<BriefSeat> sent_from;
    if (!is_long) sent_from = std::make_shared<BriefSeat>(loop_, std::move(seat));
    response.stream = [held, sent_from, stream = std::move(response.stream)](
                          net::BodyWriter& body) { return stream(body); };
  }
  if (response.websocket) {
    response.websocket = [held, talk = std::move(response.websocket)](net::WebSocket& socket) {
      return talk(socket);
    };
  }
  co_return response;
}

rt::Task<Result<net::HttpResponse>> ApiServer::DispatchResource(CallPtr call) {
  const RequestInfo& info = call->info;
  if (info.kind == nullptr || !ServesSubresource(*info.kind, info.subresource)) {
    co_return NoSuchResource();
  }
  if (pass_on_.Takes(*call)) co_return co_await pass_on_.Answer(call);
  if (info.kind->storage == meta::Storage::kReview) {
    if (info.verb != "create") co_return MethodNotAllowed(*call);
    if (info.kind == &apis::berth_dev::kPlacementReviewKind) {
      co_return co_await placement_reviews_.Answer(call);
    }
    co_return reviews_.Answer(*call);
  }
  if (info.subresource == "scale") {
    if (info.verb != "get" && info.verb != "update" && info.verb != "patch") {
      co_return MethodNotAllowed(*call);
    }
    co_return co_await handlers_.Scale(call);
  }
  if (info.subresource == "binding") {
    if (info.verb == "create") co_return co_await handlers_.Bind(call);
    if (info.verb == "delete") co_return co_await handlers_.Unbind(call);
    co_return MethodNotAllowed(*call);
  }
  if (info.subresource == "usage") {
    if (info.verb != "get") co_return MethodNotAllowed(*call);
    co_return co_await usage_reads_.Answer(call);
  }
  if (GuestStreams::Serves(info)) {
    if (info.verb != "create" && info.verb != "get") co_return MethodNotAllowed(*call);
    co_return co_await guest_streams_.Answer(call);
  }
  if (UsageReads::IsList(*call)) co_return co_await usage_reads_.AnswerList(call);
  const bool on_main = info.subresource.empty();
  const bool is_of_object = info.verb == "update" || info.verb == "patch";
  if (is_of_object && info.name.empty()) co_return MethodNotAllowed(*call);
  if (info.verb == "get") co_return co_await handlers_.Get(call);
  if (info.verb == "list") co_return co_await handlers_.List(call);
  if (info.verb == "watch") co_return co_await handlers_.Watch(call);
  if (info.verb == "create" && on_main && info.name.empty())
    co_return co_await handlers_.Create(call);
  if (info.verb == "update") co_return co_await handlers_.Update(call);
  if (info.verb == "patch") co_return co_await handlers_.Patch(call);
  if (info.verb == "delete" && on_main) co_return co_await handlers_.Delete(call);
  if (info.verb == "deletecollection") co_return co_await handlers_.DeleteCollection(call);
  co_return MethodNotAllowed(*call);
}

// Discovery, OpenAPI, metrics. Each is made in one turn of the loop: whoever asks for many at once
// has the seats of one user for them, and others have their turns in between.
rt::Task<Result<net::HttpResponse>> ApiServer::DispatchDocument(CallPtr call) {
  CO_TRY_STATUS(co_await rt::Yield());
  CO_TRY(net::HttpResponse response, DispatchPath(*call));
  if (call->http.method == "GET" && BodySize(response) > kPieceBytes) {
    response.stream = [document = std::move(response.body)](net::BodyWriter& body) {
      return SendPieces(document, &body);
    };
    response.body.clear();
  }
  co_return response;
}

Result<net::HttpResponse> ApiServer::DispatchPath(const Call& call) {
  const auto path = net::SplitTarget(call.http.target).path;
  if (!IsRead(call.http.method)) return MethodNotAllowed(call);
  if (auto health = health_.Answer(path, call.query)) return *std::move(health);
  if (path == "/version") return JsonAnswer(200, VersionDocument());
  if (path == "/metrics") {
    if (measure_) measure_();
    auto answer = TextAnswer(200, metrics_.Text());
    answer.headers.Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8");
    return answer;
  }
  if (path.starts_with("/openapi/")) return openapi_.Answer(path, call.http.headers.Get("Accept"));
  if (path == "/") return JsonAnswer(200, discovery_.Paths());
  const std::string whole = AcceptedDiscovery(call.http.headers.Get("Accept"));
  if (!whole.empty()) {
    if (const auto document = discovery_.FindWhole(path, whole)) {
      auto answer = JsonAnswer(200, *document);
      answer.headers.Set(
          "Content-Type",
          "application/json;g=apidiscovery.k8s.io;v=" + whole + ";as=APIGroupDiscoveryList");
      answer.headers.Set("Vary", "Accept");
      return answer;
    }
  }
  if (const auto document = discovery_.Find(path)) return JsonAnswer(200, *document);
  return NoSuchResource();
}

void ApiServer::Finish(const Call& call, Time start, net::HttpResponse& response) {
  const Duration took = loop_.Now() - start;
  AddWarnings(response, call.warnings);
  response.headers.Set("Audit-Id", call.id);
  response.headers.Set("Cache-Control", "no-cache, private");
  request_metrics_.Record(call.info, response.status, took);
  // A talk with a guest has begun; how it ended is a line of its own.
  const bool is_talk =
      GuestStreams::Serves(call.info) && (response.websocket != nullptr || response.stream);
  const AuditLevel level = audit_.LevelOf(call.identity, call.info);
  if (level != AuditLevel::kNone) {
    const bool shows = MayShowBodies(call.info);
    const bool shows_answer = shows && level == AuditLevel::kRequestResponse && !response.stream;
    const std::string answer = shows_answer ? AuditedBody(response) : std::string();
    audit_.Record({.time = loop_.WallNow() - took,
                   .request_id = call.id,
                   .identity = call.identity,
                   .impersonator = call.impersonator,
                   .source = call.http.peer.address,
                   .user_agent = call.http.headers.Get("User-Agent"),
                   .request = call.info,
                   .name = call.created_name,
                   .code = response.status,
                   .duration = took,
                   .stage = is_talk ? kAuditStarted : std::string_view(),
                   .request_body = shows && level >= AuditLevel::kRequest
                                       ? std::string_view(call.http.body)
                                       : std::string_view(),
                   .response_body = answer,
                   .response_bytes = shows_answer ? BodySize(response) : 0});
  }
  if (response.status >= 500) {
    LOG_WARNING("{} {} was answered with {}, id={}",
                call.http.method,
                call.info.path,
                response.status,
                call.id);
  }
  LOG_DEBUG("{} {} {} {} user={} {}us id={}",
            response.status,
            call.info.verb,
            call.http.method,
            call.info.path,
            call.identity.user,
            took.micros(),
            call.id);
}

}  // namespace berth::apiserver
