// SPDX-License-Identifier: Apache-2.0
// HTTP/1.1 and the framing of gRPC: however bytes are cut, they are read as the same messages.
#include <algorithm>
#include <list>
#include <string>

#include "base/check.h"
#include "net/call/message_assembler.h"
#include "net/http1_parser.h"
#include "net/url.h"
#include "test/fuzz/pieces.h"
#include "test/fuzz/targets.h"

namespace berth::fuzz {
namespace {

struct Read {
  bool is_ok = true;
  bool is_done = false;
  int status = 0;
  size_t used = 0;
  std::string head;
  std::string body;
  bool operator==(const Read&) const = default;
};

std::string HeadText(const net::HttpHead& head) {
  std::string text = head.method + "\n" + head.target + "\n" + std::to_string(head.status);
  for (const auto& field : head.headers.all()) text += "\n" + field.name + "=" + field.value;
  return text;
}

// `step` bytes more at a time.
Read ReadIn(net::Http1Parser::Kind kind, std::string_view bytes, size_t step) {
  net::Http1Parser parser(kind, {.header_bytes = 4'096, .body_bytes = 4'096});
  Read read;
  std::string inbox;
  size_t at = 0;
  while (!parser.done()) {
    const auto taken = parser.Feed(inbox);
    if (!taken.ok()) {
      CHECK(parser.error_status() >= 400) << "an error without a status";
      read.is_ok = false;
      break;
    }
    CHECK(*taken <= inbox.size());
    inbox.erase(0, *taken);
    read.used += *taken;
    if (*taken > 0) continue;
    if (parser.done() || at == bytes.size()) break;
    const size_t more = std::min(step, bytes.size() - at);
    inbox += bytes.substr(at, more);
    at += more;
  }
  if (!read.is_ok) return Read{.is_ok = false};
  read.is_done = parser.done();
  if (parser.head_done()) read.head = HeadText(parser.head());
  read.body = parser.body();
  return read;
}

}  // namespace

void Http(std::string_view bytes) {
  const uint8_t choice = TakeByte(bytes);
  const auto kind =
      (choice & 1) != 0 ? net::Http1Parser::Kind::kResponse : net::Http1Parser::Kind::kRequest;
  const Read whole = ReadIn(kind, bytes, std::max<size_t>(bytes.size(), 1));
  const Read cut = ReadIn(kind, bytes, size_t{1} + choice / 2 % 7);
  // What cannot become HTTP may be refused early, or when it is whole: that depends on the cuts.
  if (whole.is_done || cut.is_done) CHECK(whole == cut) << whole.head << "\n---\n" << cut.head;
  (void)net::ParseUrl(bytes);
  (void)net::PercentDecode(bytes);
}

void Frames(std::string_view bytes) {
  const size_t step = size_t{1} + TakeByte(bytes) % 16;
  constexpr size_t kMessageMax = 1'024;
  net::MessageAssembler whole(kMessageMax);
  net::MessageAssembler cut(kMessageMax);
  std::list<std::string> at_once;
  std::list<std::string> in_pieces;
  const Status first = whole.Feed(bytes, &at_once);
  Status second;
  for (size_t at = 0; at < bytes.size() && second.ok(); at += step) {
    second = cut.Feed(bytes.substr(at, step), &in_pieces);
    CHECK(cut.held_bytes() <= kMessageMax + net::kMessagePrefixBytes);
  }
  CHECK(first.ok() == second.ok()) << first << ", " << second;
  CHECK(at_once == in_pieces);
}

}  // namespace berth::fuzz
