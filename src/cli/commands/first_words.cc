// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/first_words.h"

#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "base/strings.h"
#include "cli/failure.h"

namespace berth::cli {
namespace {

// A guest that writes more than this without the line is not listened to any longer.
constexpr size_t kHeardMax = size_t{8} << 20;

// The first whole line of `text` with the beginning, cleaned.
std::optional<std::string> LineIn(std::string_view text, std::string_view beginning) {
  while (true) {
    const size_t end = text.find('\n');
    if (end == std::string_view::npos) return std::nullopt;
    const std::string_view line = Trim(text.substr(0, end));
    text.remove_prefix(end + 1);
    if (!line.empty() && line.starts_with(beginning)) return Printable(line);
  }
}

// Of each beginning of `text`, how long the longest other beginning is that it ends with.
std::vector<size_t> Borders(std::string_view text) {
  std::vector<size_t> borders(text.size());
  for (size_t at = 1, length = 0; at < text.size(); ++at) {
    while (length > 0 && text[at] != text[length]) length = borders[length - 1];
    if (text[at] == text[length]) ++length;
    borders[at] = length;
  }
  return borders;
}

}  // namespace

std::optional<size_t> KnownWords(std::string_view before, std::string_view heard) {
  // Less in common than this may be chance, if it is not all.
  constexpr size_t kCommonMin = size_t{4} << 10;
  if (heard.starts_with(before)) return before.size();
  if (before.starts_with(heard)) return std::nullopt;
  if (before.size() < kCommonMin) return 0;
  // As in Knuth, Morris and Pratt: a guest may well repeat itself.
  const std::string_view beginning = heard.substr(0, before.size());
  const std::vector<size_t> borders = Borders(beginning);
  size_t common = 0;
  for (const char c : before) {
    if (common == beginning.size()) common = borders[common - 1];
    while (common > 0 && c != beginning[common]) common = borders[common - 1];
    if (c == beginning[common]) ++common;
    // All of it was there, and the rest of what was there is to come.
    if (common == heard.size() && common >= kCommonMin) return std::nullopt;
  }
  return common < kCommonMin ? 0 : common;
}

std::string FirstWords::path() const {
  return PathOf(address_.resource, address_.namespace_, address_.name, "log");
}

void FirstWords::NoteBefore() {
  Result<std::string> text = api_.GetText(path());
  before_ = text.ok() ? *std::move(text) : std::string();
}

Result<std::string> FirstWords::Await(const Patience& patience) {
  const std::string advice = "berth logs " + address_.name;
  Request request;
  request.path = path();
  request.query.emplace_back("follow", "true");
  TRY(const std::unique_ptr<Streams> streams, api_.Open({std::move(request)}));
  std::string heard;
  std::optional<size_t> known;
  while (heard.size() <= kHeardMax) {
    const auto left = patience.left();
    auto chunk = streams->Next(left);
    const bool is_late =
        (left && *left == Duration()) || (!chunk.ok() && chunk.status().Is(Reason::kTimeout));
    if (is_late) {
      return Advise(Timeout("timed out waiting for the console of " + address_.name + " to say " +
                            (beginning_.empty() ? "anything" : Quote(beginning_))),
                    advice);
    }
    if (!chunk.ok()) return chunk.status();
    if (chunk->bytes.empty()) {
      return Advise(Unavailable("the console of " + address_.name + " ended before that"), advice);
    }
    // Behind as much as there was it does not change any more.
    const bool is_settled = known.has_value() && heard.size() > before_.size();
    heard += chunk->bytes;
    if (!is_settled) known = KnownWords(before_, heard);
    if (!known.has_value()) continue;
    const std::string_view text = std::string_view(heard).substr(*known);
    if (auto line = LineIn(text, beginning_)) return *std::move(line);
  }
  return Advise(Unavailable("the console of " + address_.name + " says other things"), advice);
}

}  // namespace berth::cli
