// SPDX-License-Identifier: Apache-2.0
#include "net/http1_parser.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>
#include <variant>

#include <boost/beast/http/basic_parser.hpp>

#include "base/strings.h"
#include "net/url.h"

namespace berth::net {
namespace {

namespace http = boost::beast::http;
using boost::system::error_code;
using BeastView = boost::beast::string_view;

// A first line without an end is looked at again with every piece, up to here.
constexpr size_t kEarlyLook = 256;

// Where Beast's calls put what they found.
struct Sink {
  HttpHead head;
  std::string body;
  bool head_done = false;
  bool too_many_fields = false;
  int length_fields = 0;
  bool has_odd_length = false;
  int encoding_fields = 0;
  int host_fields = 0;
  std::string encoding;
  unsigned version = 11;
};

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

std::string_view View(BeastView text) { return {text.data(), text.size()}; }

template <bool kIsRequest>
class BeastParser final : public http::basic_parser<kIsRequest> {
 public:
  explicit BeastParser(Sink& sink) : sink_(sink) {}
  bool chunked() const { return http::basic_parser<kIsRequest>::chunked(); }

 private:
  void on_request_impl(
      http::verb, BeastView method, BeastView target, int version, error_code&) override {
    sink_.head.method = View(method);
    sink_.head.target = View(target);
    sink_.version = static_cast<unsigned>(version);
  }
  void on_response_impl(int code, BeastView, int version, error_code&) override {
    sink_.head.status = code;
    sink_.version = static_cast<unsigned>(version);
  }
  void on_field_impl(http::field field, BeastView name, BeastView value, error_code& ec) override {
    if (sink_.head_done) return;  // a trailer: nobody here has use for one
    if (sink_.head.headers.all().size() >= kHeaderFieldsMax) {
      sink_.too_many_fields = true;
      ec = http::error::header_limit;
      return;
    }
    if (field == http::field::content_length) {
      ++sink_.length_fields;
      // "5, 5" is read as 5 by some and as nothing by others.
      if (!std::ranges::all_of(View(value), IsDigit)) sink_.has_odd_length = true;
    }
    if (field == http::field::host) ++sink_.host_fields;
    if (field == http::field::transfer_encoding) {
      ++sink_.encoding_fields;
      sink_.encoding = View(value);
    }
    sink_.head.headers.Add(View(name), std::string(View(value)));
  }
  void on_header_impl(error_code&) override { sink_.head_done = true; }
  void on_body_init_impl(const boost::optional<std::uint64_t>&, error_code&) override {}
  std::size_t on_body_impl(BeastView body, error_code&) override {
    sink_.body.append(body.data(), body.size());
    return body.size();
  }
  void on_chunk_header_impl(std::uint64_t, BeastView, error_code&) override {}
  std::size_t on_chunk_body_impl(std::uint64_t, BeastView body, error_code&) override {
    sink_.body.append(body.data(), body.size());
    return body.size();
  }
  void on_finish_impl(error_code&) override {}

  Sink& sink_;
};

// Refuses what proxies and servers are known to read differently: bare CR or LF, folded lines,
// control characters. Returns what is wrong, or "".
std::string_view Suspicious(std::string_view head) {
  for (size_t i = 0; i < head.size(); ++i) {
    const char c = head[i];
    if (static_cast<unsigned char>(c) >= 0x20 && c != 0x7f) continue;
    if (c == '\t') continue;
    if (c != '\r') return c == '\n' ? "a line ends without CR" : "a control character";
    if (i + 1 >= head.size() || head[i + 1] != '\n') return "a CR without LF";
    ++i;
    if (i + 1 < head.size() && (head[i + 1] == ' ' || head[i + 1] == '\t')) return "a folded line";
  }
  return {};
}

}  // namespace

bool HasToken(std::string_view list, std::string_view token) {
  for (const std::string_view part : Split(list, ',')) {
    if (EqualsIgnoreCase(Trim(part), token)) return true;
  }
  return false;
}

class Http1Parser::Body {
 public:
  Body(Kind kind, const HttpLimits& limits) {
    if (kind == Kind::kRequest) {
      SetLimits(beast_.emplace<1>(sink), limits);
    } else {
      auto& parser = beast_.emplace<2>(sink);
      parser.skip(kind == Kind::kResponseWithoutBody);
      SetLimits(parser, limits);
    }
  }

  template <class F>
  auto Visit(F use) {
    return is_request() ? use(std::get<1>(beast_)) : use(std::get<2>(beast_));
  }
  bool is_request() const { return beast_.index() == 1; }

  Sink sink;

 private:
  template <class P>
  static void SetLimits(P& parser, const HttpLimits& limits) {
    parser.eager(true);
    parser.header_limit(static_cast<uint32_t>(limits.header_bytes));
    parser.body_limit(limits.body_bytes);
  }

  std::variant<std::monostate, BeastParser<true>, BeastParser<false>> beast_;
};

Http1Parser::Http1Parser(Kind kind, HttpLimits limits)
    : limits_(limits), parser_(std::make_unique<Body>(kind, limits)) {}
Http1Parser::~Http1Parser() = default;

bool Http1Parser::head_done() const { return parser_->sink.head_done; }
bool Http1Parser::done() const {
  return parser_->Visit([](auto& parser) { return parser.is_done(); });
}
HttpHead& Http1Parser::head() { return parser_->sink.head; }
std::string& Http1Parser::body() { return parser_->sink.body; }

Status Http1Parser::Fail(int status, std::string message) {
  error_status_ = status;
  return BadRequest(std::move(message));
}

Result<size_t> Http1Parser::Feed(std::string_view data) {
  if (!head_done()) return FeedHead(data);
  if (data.empty() || done()) return size_t{0};
  // A last chunk that is the only one, cut here: shown this and then four bytes, Beast asserts.
  // There is more to come in any case.
  if (parser_->sink.head.chunked && data == "0\r\n") return size_t{0};
  error_code ec;
  const size_t taken = parser_->Visit(
      [&](auto& parser) { return parser.put(boost::asio::buffer(data.data(), data.size()), ec); });
  if (ec && ec != http::error::need_more) {
    if (ec == http::error::body_limit) {
      return Fail(413, fmt::format("the body has more than {} bytes", limits_.body_bytes));
    }
    return Fail(400, "chunked body: " + ec.message());
  }
  // What is left is part of a chunk's head or of the trailers; neither may grow without end.
  if (taken == 0 && data.size() > limits_.header_bytes) {
    return Fail(400, "chunked body: a chunk's head has no end");
  }
  return taken;
}

// The whole head at once: only then can it be looked at before it is believed.
Result<size_t> Http1Parser::FeedHead(std::string_view data) {
  const size_t from = scanned_ < 3 ? 0 : scanned_ - 3;
  const size_t end = data.find("\r\n\r\n", from);
  if (end == std::string_view::npos || end + 4 > limits_.header_bytes) {
    if (data.size() >= limits_.header_bytes) {
      return Fail(431, fmt::format("the head has more than {} bytes", limits_.header_bytes));
    }
    scanned_ = data.size();
    return LookEarly(data);
  }
  const std::string_view head = data.substr(0, end + 4);
  if (const auto wrong = Suspicious(head); !wrong.empty()) {
    return Fail(400, fmt::format("malformed head: {}", wrong));
  }
  error_code ec;
  Sink& sink = parser_->sink;
  const size_t taken = parser_->Visit(
      [&](auto& parser) { return parser.put(boost::asio::buffer(head.data(), head.size()), ec); });
  if (ec && !(ec == http::error::need_more && sink.head_done)) {
    if (sink.too_many_fields || ec == http::error::header_limit) {
      return Fail(431, fmt::format("more than {} header fields", kHeaderFieldsMax));
    }
    if (ec == http::error::body_limit) {
      return Fail(413, fmt::format("the body has more than {} bytes", limits_.body_bytes));
    }
    if (ec == http::error::bad_version) return Fail(505, "only HTTP/1.1 is spoken here");
    return Fail(400, "malformed head: " + ec.message());
  }
  if (sink.version != 10 && sink.version != 11) return Fail(505, "only HTTP/1.1 is spoken here");
  if (sink.length_fields > 1) return Fail(400, "more than one Content-Length");
  if (sink.has_odd_length) return Fail(400, "the Content-Length is no number");
  if (sink.encoding_fields > 1) return Fail(400, "more than one Transfer-Encoding");
  if (sink.encoding_fields > 0) {
    if (sink.length_fields > 0) return Fail(400, "both Content-Length and Transfer-Encoding");
    if (sink.version == 10) return Fail(400, "Transfer-Encoding in HTTP/1.0");
    if (!EqualsIgnoreCase(Trim(sink.encoding), "chunked")) {
      return Fail(501, fmt::format("Transfer-Encoding {} is not chunked", Quote(sink.encoding)));
    }
  }
  HttpHead& result = sink.head;
  result.is_http10 = sink.version == 10;
  parser_->Visit([&](auto& parser) {
    result.keep_alive = parser.keep_alive();
    result.chunked = parser.chunked();
    if (const auto length = parser.content_length()) result.content_length = *length;
  });
  if (parser_->is_request()) {
    if (sink.host_fields > 1 || (sink.host_fields == 0 && sink.version == 11)) {
      return Fail(400, "a request has exactly one Host");
    }
    if (!result.target.starts_with('/') && result.target != "*") {
      const auto url = ParseUrl(result.target);
      if (!url.ok()) return Fail(400, "the request's target is neither a path nor a url");
      result.target = url->target();
    }
  }
  return taken;
}

// Something that is no HTTP at all is refused at once, not after a timeout. Every line is looked at
// once, however small the pieces in which it comes.
Result<size_t> Http1Parser::LookEarly(std::string_view data) {
  const size_t last = data.rfind("\r\n");
  std::string_view lines;
  if (last != std::string_view::npos && last > looked_at_) {
    lines = data.substr(looked_at_, last + 2 - looked_at_);
    looked_at_ = last;
  } else if (looked_at_ == 0 && data.size() <= kEarlyLook) {
    lines = data.substr(0, data.rfind('\r'));
  }
  if (const auto wrong = Suspicious(lines); !wrong.empty()) {
    return Fail(400, fmt::format("malformed head: {}", wrong));
  }
  const size_t first = data.find("\r\n");
  if (parser_->is_request() && last != std::string_view::npos && first > 0 &&
      data.substr(0, first).find(" HTTP/") == std::string_view::npos) {
    return Fail(400, "malformed head: the first line is none of HTTP");
  }
  return size_t{0};
}

Status Http1Parser::FinishAtEnd() {
  if (done()) return OkStatus();
  if (!head_done()) return Unavailable("the connection ended before the answer");
  error_code ec;
  parser_->Visit([&](auto& parser) { parser.put_eof(ec); });
  if (ec) return Unavailable("the connection ended in the middle of the body");
  return OkStatus();
}

}  // namespace berth::net
