// SPDX-License-Identifier: Apache-2.0
// An AtRestStencil encodes objects that are alike but for a few texts, such as the copies of a set:
// one of them is encoded with marks in the place of those texts, and then only the marks change.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "meta/object.h"

namespace berth::meta {

class AtRestStencil {
 public:
  // `marked` has marks[i] wherever the objects have their i-th text, and nowhere else.
  AtRestStencil(const Object& marked, std::span<const std::string_view> marks);

  // The same bytes as EncodeAtRest(object). REQUIRES: the object is the marked one with the texts
  // in the place of the marks, as many, and each FitsIn.
  Bytes Encode(const Object& object, std::span<const std::string_view> texts) const;

  // Whether JSON writes the text as it is.
  static bool FitsIn(std::string_view text);

 private:
  // Something that all have, and behind it one of the texts.
  struct Piece {
    std::string common;
    size_t text = 0;
  };
  struct Part {
    std::vector<Piece> pieces;
    std::string end;
  };
  static Part Cut(std::string_view text, std::span<const std::string_view> marks);
  static void Append(const Part& part, std::span<const std::string_view> texts, std::string& out);

  Part metadata_;
  Part rest_;
  size_t size_ = 0;  // of the marked one: about that of the others
};

}  // namespace berth::meta
