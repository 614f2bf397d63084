// SPDX-License-Identifier: Apache-2.0
#include "image/registry/registry_session.h"

#include <fmt/core.h>

#include <utility>

#include "base/strings.h"
#include "net/url.h"
#include "rt/deadline.h"

namespace berth::image {
namespace {

constexpr int kRedirectsMax = 5;
constexpr size_t kTokenAnswerBytesMax = 64 << 10;
constexpr uint16_t kHttpsPort = 443;

bool IsRedirect(int status) {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

// As a reference would name it.
std::string HostText(const net::Url& url) {
  return url.port == kHttpsPort ? url.host : url.authority();
}

// Where a redirect leads: a whole URL, or a place on the same server.
Result<std::string> RedirectTarget(const net::Url& from, std::string_view location) {
  if (location.starts_with("/") && !location.starts_with("//")) {
    return "https://" + from.authority() + std::string(location);
  }
  const auto url = net::ParseUrl(location);
  if (!url.ok() || url->scheme != "https") {
    return BadRequest("redirected to " + Quote(location) + ", which is no https URL");
  }
  return std::string(location);
}

}  // namespace

RegistrySession::RegistrySession(rt::AsioLoop& loop,
                                 const RegistryOptions& options,
                                 Reference reference,
                                 Credentials credentials)
    : loop_(loop),
      options_(options),
      reference_(std::move(reference)),
      credentials_(std::move(credentials)) {}

rt::Task<Result<RegistrySession::Answer>> RegistrySession::Open(std::string url,
                                                                net::Headers headers) {
  CO_TRY(const net::Url parsed, net::ParseUrl(url));
  net::HttpClientOptions options;
  options.url = url;
  options.tls = options_.tls;
  options.idle_max = 0;
  options.allows_address = [rules = &options_.addresses, host = HostText(parsed)](
                               std::string_view address) { return rules->Check(host, address); };
  Answer answer;
  CO_TRY(answer.client, net::HttpClient::New(loop_, std::move(options)));
  net::HttpClientRequest request;
  request.target = parsed.target();
  headers.Set("User-Agent", "berth");
  request.headers = std::move(headers);
  CO_TRY(answer.stream, co_await answer.client->Open(std::move(request), options_.answer_limit));
  co_return answer;
}

rt::Task<Result<RegistrySession::Answer>> RegistrySession::Follow(std::string url,
                                                                  net::Headers headers) {
  for (int hops = 0;; ++hops) {
    CO_TRY(Answer answer, co_await Open(url, headers));
    if (!IsRedirect(answer.stream->status())) co_return answer;
    if (hops == kRedirectsMax) {
      co_return BadRequest(fmt::format("more than {} redirects", kRedirectsMax));
    }
    CO_TRY(const net::Url from, net::ParseUrl(url));
    CO_TRY(url, RedirectTarget(from, answer.stream->headers().Get("Location")));
    CO_TRY(const net::Url to, net::ParseUrl(url));
    if (to.authority() != from.authority()) headers.Remove("Authorization");
  }
}

rt::Task<Result<RegistrySession::Answer>> RegistrySession::Get(std::string what,
                                                               net::Headers headers) {
  const std::string url =
      fmt::format("https://{}/v2/{}/{}", reference_.registry, reference_.name, what);
  const std::string name = "registry " + reference_.registry;
  for (bool is_second = false;; is_second = true) {
    if (!authorization_.empty()) headers.Set("Authorization", authorization_);
    Result<Answer> answer = co_await Follow(url, headers);
    if (!answer.ok()) co_return answer.status().Wrap(name);
    const int status = answer->stream->status();
    if (status == 200 || status == 206) co_return answer;
    if (status != 401 || is_second) co_return Refusal(status, what).Wrap(name);
    const Challenge challenge = ParseChallenge(answer->stream->headers().Get("WWW-Authenticate"));
    const Status authenticated = co_await Authenticate(challenge);
    if (!authenticated.ok()) co_return authenticated.Wrap(name);
  }
}

rt::Task<Status> RegistrySession::Authenticate(Challenge challenge) {
  switch (challenge.kind) {
    case Challenge::Kind::kBearer: co_return co_await FetchToken(std::move(challenge));
    case Challenge::Kind::kBasic:
      if (credentials_.empty()) {
        co_return Unauthorized("it wants credentials, and there are none for it");
      }
      authorization_ = credentials_.BasicHeader();
      co_return OkStatus();
    case Challenge::Kind::kUnknown: break;
  }
  co_return Unauthorized("it wants to be asked in a way that is not known here");
}

rt::Task<Status> RegistrySession::FetchToken(Challenge challenge) {
  CO_TRY(const std::string url, TokenUrl(challenge, reference_.name));
  net::Headers headers;
  if (!credentials_.empty()) headers.Set("Authorization", credentials_.BasicHeader());
  CO_TRY(const Answer answer, co_await Open(url, std::move(headers)));
  const int status = answer.stream->status();
  if (status != 200) co_return Refusal(status, "a token");
  CO_TRY(const std::string body, co_await ReadBody(answer.stream.get(), kTokenAnswerBytesMax));
  CO_TRY(const std::string token, ParseToken(body));
  authorization_ = "Bearer " + token;
  co_return OkStatus();
}

Status RegistrySession::Refusal(int status, std::string_view what) const {
  const std::string_view whose =
      credentials_.empty() ? "without credentials" : "with the credentials that there are";
  if (status == 401) {
    return Unauthorized(fmt::format("it refuses {} {}", what, whose));
  }
  if (status == 403) return Forbidden(fmt::format("it refuses {} {}", what, whose));
  // It has fewer bytes than it was asked to go on behind.
  if (status == 416) return Status(Reason::kExpired, fmt::format("it has no more of {}", what));
  if (status == 404) return NotFound(fmt::format("it has no {} of {}", what, reference_.name));
  if (status == 429 || status >= 500) {
    return Unavailable(fmt::format("it answers {} for {}", status, what));
  }
  return BadRequest(fmt::format("it answers {} for {}", status, what));
}

rt::Task<Result<std::string>> RegistrySession::ReadSome(net::HttpStream* stream) {
  Result<std::string> bytes = co_await rt::WithDeadline(stream->Read(), options_.answer_limit);
  if (bytes.status().Is(Reason::kTimeout)) {
    co_return Unavailable(fmt::format("registry {}: nothing came for {} s",
                                      reference_.registry,
                                      options_.answer_limit.micros() / 1'000'000));
  }
  co_return bytes;
}

rt::Task<Result<std::string>> RegistrySession::ReadBody(net::HttpStream* stream, size_t bytes_max) {
  std::string body;
  for (;;) {
    CO_TRY(const std::string part, co_await ReadSome(stream));
    if (part.empty()) co_return body;
    if (body.size() + part.size() > bytes_max) {
      co_return BadRequest(fmt::format(
          "registry {}: an answer of more than {} bytes", reference_.registry, bytes_max));
    }
    body += part;
  }
}

}  // namespace berth::image
