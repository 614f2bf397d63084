// SPDX-License-Identifier: Apache-2.0
#include "apiserver/http/pass_on.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "apis/adoption.h"
#include "apis/berth/machine_set.h"
#include "apis/berth/placement_review.h"
#include "apis/placement.h"
#include "apiserver/http/guest_streams.h"
#include "apiserver/http/usage_reads.h"
#include "base/strings.h"
#include "fleet/channels/guest_channels.h"
#include "meta/json.h"
#include "rt/event.h"
#include "rt/scope.h"
#include "rt/sleep.h"

namespace berth::apiserver {
namespace {

// At once, conversations included.
constexpr size_t kPassingMax = 512;
constexpr Duration kAnswerLimit = Duration::Seconds(30);
constexpr uint64_t kAnswerBytesMax = 16ULL * 1024 * 1024;
// How soon a conversation through a leader that was lost ends.
constexpr Duration kLookAtLeader = Duration::Seconds(1);
// Below the lifetime of the certificate that this server shows.
constexpr Duration kConnectAnew = Duration::Hours(6);

constexpr std::array<std::string_view, 3> kAsked = {"Accept", "Content-Type", "User-Agent"};
constexpr std::array<std::string_view, 3> kAnswered = {"Content-Type", "Retry-After", "Warning"};

bool IsAdoption(const Call& call) {
  return call.info.verb == "create" && apis::IsPlaceable(*call.info.kind) &&
         call.http.body.find(apis::kAdoptAnnotation) != std::string::npos;
}

// A dry run of something that has a place says where that would be.
bool IsTrial(const Call& call) {
  const meta::KindInfo& kind = *call.info.kind;
  const bool has_place = apis::IsPlaceable(kind) || &kind == &apis::berth_dev::kMachineSetKind;
  return has_place && call.query.Has("dryRun") && call.info.subresource.empty();
}

bool IsAboutHosts(const Call& call) {
  if (!call.info.is_resource || call.info.kind == nullptr) return false;
  return GuestStreams::Serves(call.info) || call.info.subresource == "usage" ||
         UsageReads::IsList(call) || call.info.kind == &apis::berth_dev::kPlacementReviewKind ||
         IsAdoption(call) || IsTrial(call);
}

// A value arrives as it was sent: no end of the line in it, and no space that is taken off.
bool IsPlain(std::string_view value) {
  const bool has_control = std::ranges::any_of(value, [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte < 0x20 || byte == 0x7f;
  });
  return !value.empty() && !has_control && value.front() != ' ' && value.back() != ' ';
}

// Names of headers have no case, and not every character.
std::string EscapeKey(std::string_view key) {
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string out;
  for (const char c : key) {
    const auto byte = static_cast<unsigned char>(c);
    if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_') {
      out += c;
    } else {
      out += '%';
      out += kHex[byte >> 4U];
      out += kHex[byte & 0xfU];
    }
  }
  return out;
}

Result<net::HttpClientRequest> Resend(const Call& call) {
  net::HttpClientRequest request;
  request.method = call.http.method;
  request.target = call.http.target;
  TRY(request.headers, InTheNameOf(call.identity));
  for (const std::string_view name : kAsked) {
    const std::string_view value = call.http.headers.Get(name);
    if (!value.empty()) request.headers.Set(name, std::string(value));
  }
  request.headers.Set(kPassedOnHeader, call.id);
  if (!call.http.body.empty()) request.body.emplace_back(call.http.body);
  return request;
}

net::HttpResponse HeadOf(int status, const net::Headers& headers) {
  net::HttpResponse response;
  response.status = status;
  for (const std::string_view name : kAnswered) {
    for (const std::string_view value : headers.GetAll(name)) {
      response.headers.Add(name, std::string(value));
    }
  }
  return response;
}

Status CannotAsk(const std::string& url, const Status& why) {
  return Unavailable("hosts are connected to the server that leads, " + url +
                     ", which cannot be asked: " + std::string(why.message()));
}

// The leader refuses this server, not the user: no business of the user's.
Status Distrusted(const std::string& url) {
  return CannotAsk(url, Unauthorized("it does not take this server for one of its own"));
}

// What the leader said instead of opening a WebSocket. An error of its Status keeps its words.
Status ReasonOfRefusal(const std::string& url, const Status& status) {
  const std::string_view text = status.message();
  const size_t begin = text.find('{');
  if (status.Is(Reason::kUnauthorized)) return Distrusted(url);
  if (begin == std::string_view::npos) return CannotAsk(url, status);
  const auto body = meta::ParseJson(text.substr(begin));
  const std::string_view said = body.ok() ? body->GetString({"message"}) : std::string_view();
  return said.empty() ? CannotAsk(url, status) : Status(status.reason(), std::string(said));
}

}  // namespace

Result<net::Headers> InTheNameOf(const Identity& identity) {
  net::Headers headers;
  Status refused;
  const auto add = [&](std::string_view name, const std::string& value) {
    if (!IsPlain(value)) {
      refused = Forbidden("a request of " + Quote(identity.user) +
                          " cannot be passed on to the server that leads: " + Quote(value) +
                          " does not fit into a header");
    }
    headers.Add(name, value);
  };
  add("Impersonate-User", identity.user);
  for (const std::string& group : identity.groups) add("Impersonate-Group", group);
  if (!identity.uid.empty()) add("Impersonate-Uid", identity.uid);
  for (const auto& [key, values] : identity.extra) {
    for (const std::string& value : values) add("Impersonate-Extra-" + EscapeKey(key), value);
  }
  if (!refused.ok()) return refused;
  return headers;
}

// One request on its way. Owned by the answer, and by what runs for it.
struct PassOn::Talk {
  Talk(rt::Loop& its_loop,
       const Hosts& its_hosts,
       std::shared_ptr<net::HttpClient> its_client,
       std::string its_url,
       std::shared_ptr<size_t> its_counter)
      : loop(its_loop),
        hosts(its_hosts),
        client(std::move(its_client)),
        url(std::move(its_url)),
        counter(std::move(its_counter)) {
    ++*counter;
  }
  ~Talk() { --*counter; }
  Talk(const Talk&) = delete;
  Talk& operator=(const Talk&) = delete;

  rt::Loop& loop;
  const Hosts& hosts;
  const std::shared_ptr<net::HttpClient> client;
  const std::string url;
  const std::shared_ptr<size_t> counter;
  // Before the client: what it has opened.
  std::unique_ptr<net::HttpStream> stream;
  std::unique_ptr<net::WebSocket> socket;
  rt::Event over;
  Status end;

  void End(Status why) {
    if (!over.is_set()) end = std::move(why);
    over.Set();
  }
  // A connection to a machine that is gone may look well for a long time.
  static rt::Task<Status> WatchLeader(TalkPtr talk) {
    while (talk->hosts.leader == talk->url) CO_TRY_STATUS(co_await rt::Sleep(kLookAtLeader));
    talk->End(Unavailable("another server leads"));
    co_return OkStatus();
  }
  static rt::Task<Status> ToBody(TalkPtr talk, net::BodyWriter* body) {
    for (;;) {
      Result<std::string> read = co_await talk->stream->Read();
      Status status = read.status();
      if (read.ok() && !read->empty()) {
        std::vector<Bytes> parts;
        parts.emplace_back(*std::move(read));
        status = co_await body->Write(std::move(parts));
        if (status.ok()) continue;
      }
      if (status.Is(Reason::kCancelled)) co_return status;
      talk->End(status);
      co_return OkStatus();
    }
  }
  static rt::Task<Status> Pump(TalkPtr talk, net::WebSocket* from, net::WebSocket* to) {
    for (;;) {
      Result<net::WebSocket::Message> message = co_await from->Receive();
      Status status = message.status();
      if (message.ok()) status = co_await to->Send(*std::move(message));
      if (status.ok()) continue;
      if (status.Is(Reason::kCancelled)) co_return status;
      talk->End(OkStatus());
      co_return OkStatus();
    }
  }
  static rt::Task<Status> RunStream(TalkPtr talk, net::BodyWriter* body) {
    rt::TaskScope scope(talk->loop);
    scope.Spawn("apiserver.pass.body", ToBody(talk, body));
    scope.Spawn("apiserver.pass.leader", WatchLeader(talk));
    const Status waited = co_await talk->over.Wait();
    const Status closed = co_await scope.Close();
    CHECK(closed.ok());
    talk->stream.reset();
    co_return waited.ok() ? talk->end : waited;
  }
  static rt::Task<Status> RunSocket(TalkPtr talk, net::WebSocket* client) {
    rt::TaskScope scope(talk->loop);
    scope.Spawn("apiserver.pass.up", Pump(talk, client, talk->socket.get()));
    scope.Spawn("apiserver.pass.down", Pump(talk, talk->socket.get(), client));
    scope.Spawn("apiserver.pass.leader", WatchLeader(talk));
    const Status waited = co_await talk->over.Wait();
    const Status closed = co_await scope.Close();
    CHECK(closed.ok());
    talk->socket.reset();
    if (!waited.ok()) co_return waited;
    constexpr uint16_t kNormal = 1000;
    constexpr uint16_t kGoingAway = 1001;
    std::string why(talk->end.message());
    co_return co_await client->Close(talk->end.ok() ? kNormal : kGoingAway, std::move(why));
  }
};

bool PassOn::Takes(const Call& call) const {
  const Hosts& hosts = deps_.hosts;
  const bool is_elsewhere = hosts.fleet == nullptr && !hosts.leader.empty();
  if (!is_elsewhere || !deps_.connect || call.http.headers.Has(kPassedOnHeader)) return false;
  return IsAboutHosts(call);
}

Result<PassOn::TalkPtr> PassOn::Begin() {
  if (*passing_ >= kPassingMax) {
    return Status(Reason::kTooManyRequests,
                  "this server passes " + std::to_string(kPassingMax) +
                      " requests on to the server that leads already")
        .WithRetryAfter(Duration::Seconds(1));
  }
  const std::string& leader = deps_.hosts.leader;
  const Time now = deps_.loop.Now();
  if (client_ == nullptr || url_ != leader || now - connected_ > kConnectAnew) {
    auto connected = deps_.connect(leader);
    if (!connected.ok()) return CannotAsk(leader, connected.status());
    client_ = *std::move(connected);
    url_ = leader;
    connected_ = now;
  }
  return std::make_shared<Talk>(deps_.loop, deps_.hosts, client_, url_, passing_);
}

rt::Task<Result<net::HttpResponse>> PassOn::Answer(CallPtr call) {
  CO_TRY(const TalkPtr talk, Begin());
  if (GuestStreams::IsConversation(call->info)) co_return co_await Upgrade(call, talk);
  if (GuestStreams::Serves(call->info)) co_return co_await Stream(call, talk);
  co_return co_await Send(call, talk);
}

rt::Task<Result<net::HttpResponse>> PassOn::Send(CallPtr call, TalkPtr talk) {
  const net::SendOptions options{.deadline = kAnswerLimit, .body_max = kAnswerBytesMax};
  // What changes nothing is asked again: a connection may have been closed in the very moment.
  int attempts = IsAdoption(*call) ? 1 : 2;
  Result<net::HttpClientResponse> answer = Unavailable("");
  do {
    CO_TRY(net::HttpClientRequest request, Resend(*call));
    answer = co_await talk->client->Send(std::move(request), options);
  } while (answer.status().Is(Reason::kUnavailable) && --attempts > 0);
  if (answer.status().Is(Reason::kCancelled)) co_return answer.status();
  if (!answer.ok()) co_return CannotAsk(talk->url, answer.status());
  if (answer->status == 401) co_return Distrusted(talk->url);
  net::HttpResponse response = HeadOf(answer->status, answer->headers);
  response.body.emplace_back(std::move(answer->body));
  co_return response;
}

rt::Task<Result<net::HttpResponse>> PassOn::Stream(CallPtr call, TalkPtr talk) {
  CO_TRY(net::HttpClientRequest request, Resend(*call));
  auto opened = co_await talk->client->Open(std::move(request), kAnswerLimit);
  if (opened.status().Is(Reason::kCancelled)) co_return opened.status();
  if (!opened.ok()) co_return CannotAsk(talk->url, opened.status());
  talk->stream = *std::move(opened);
  if (talk->stream->status() == 401) co_return Distrusted(talk->url);
  net::HttpResponse response = HeadOf(talk->stream->status(), talk->stream->headers());
  response.stream = [talk](net::BodyWriter& body) { return Talk::RunStream(talk, &body); };
  co_return response;
}

rt::Task<Result<net::HttpResponse>> PassOn::Upgrade(CallPtr call, TalkPtr talk) {
  CO_TRY_STATUS(GuestStreams::CheckUpgrade(*call));
  CO_TRY(std::string protocol,
         fleet::ChooseChannels(call->http.headers.Get("Sec-WebSocket-Protocol")));
  CO_TRY(net::HttpClientRequest request, Resend(*call));
  if (!protocol.empty()) request.headers.Set("Sec-WebSocket-Protocol", protocol);
  auto opened = co_await talk->client->OpenWebSocket(std::move(request), kAnswerLimit);
  if (opened.status().Is(Reason::kCancelled)) co_return opened.status();
  if (!opened.ok()) co_return ReasonOfRefusal(talk->url, opened.status());
  talk->socket = *std::move(opened);
  net::HttpResponse response;
  response.status = 101;
  if (!protocol.empty()) response.headers.Set("Sec-WebSocket-Protocol", std::move(protocol));
  response.websocket = [talk](net::WebSocket& socket) { return Talk::RunSocket(talk, &socket); };
  co_return response;
}

}  // namespace berth::apiserver
