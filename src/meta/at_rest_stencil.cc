// SPDX-License-Identifier: Apache-2.0
#include "meta/at_rest_stencil.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "meta/at_rest.h"
#include "meta/internal/at_rest_parts.h"

namespace berth::meta {

AtRestStencil::AtRestStencil(const Object& marked, std::span<const std::string_view> marks) {
  const Bytes bytes = EncodeAtRest(marked);
  const Result<AtRestView> view = AtRestView::Parse(bytes.view());
  CHECK(view.ok()) << view.status();
  metadata_ = Cut(view->metadata_body(), marks);
  rest_ = Cut(view->body().substr(view->metadata_body().size()), marks);
  size_ = bytes.size();
}

AtRestStencil::Part AtRestStencil::Cut(std::string_view text,
                                       std::span<const std::string_view> marks) {
  Part part;
  for (;;) {
    size_t at = std::string_view::npos;
    size_t which = 0;
    for (size_t i = 0; i < marks.size(); ++i) {
      const size_t found = text.find(marks[i]);
      if (found >= at) continue;
      at = found;
      which = i;
    }
    if (at == std::string_view::npos) break;
    part.pieces.push_back({.common = std::string(text.substr(0, at)), .text = which});
    text.remove_prefix(at + marks[which].size());
  }
  part.end = text;
  return part;
}

void AtRestStencil::Append(const Part& part,
                           std::span<const std::string_view> texts,
                           std::string& out) {
  for (const Piece& piece : part.pieces) out.append(piece.common).append(texts[piece.text]);
  out += part.end;
}

Bytes AtRestStencil::Encode(const Object& object, std::span<const std::string_view> texts) const {
  std::string out;
  out.reserve(size_ + size_ / 4);
  internal::BeginAtRest(object, out);
  const size_t header_size = out.size();
  Append(metadata_, texts, out);
  const size_t metadata_size = out.size() - header_size;
  Append(rest_, texts, out);
  return internal::EndAtRest(object, header_size, metadata_size, out);
}

bool AtRestStencil::FitsIn(std::string_view text) {
  return std::ranges::all_of(text, [](char c) {
    return c >= 0x20 && c < 0x7f && c != '"' && c != '\\' && c != '<' && c != '>' && c != '&';
  });
}

}  // namespace berth::meta
