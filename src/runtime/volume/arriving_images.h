// SPDX-License-Identifier: Apache-2.0
// Images on their way to this host, and what is unpacked of them: bytes that are claimed of its
// disk before they are written. They are claimed until their fetch has ended; what came is measured
// in the folder of images from then on. Meanwhile both count: too much, and never too little.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>

namespace berth::runtime {

// Files that are about to be written, by their digests.
using ArrivingPieces = std::map<std::string, int64_t>;

class ArrivingImages {
 public:
  // Of one more fetch. What another brings already counts once.
  void Add(const ArrivingPieces& pieces) {
    for (const auto& [digest, bytes] : pieces) {
      Piece& piece = pieces_[digest];
      piece.bytes = std::max(piece.bytes, bytes);
      ++piece.fetches;
    }
  }
  // REQUIRES: they were added.
  void Remove(const ArrivingPieces& pieces) {
    for (const auto& [digest, bytes] : pieces) {
      const auto found = pieces_.find(digest);
      if (--found->second.fetches == 0) pieces_.erase(found);
    }
  }

  ArrivingPieces pieces() const {
    ArrivingPieces all;
    for (const auto& [digest, piece] : pieces_) all[digest] = piece.bytes;
    return all;
  }
  int64_t bytes() const {
    int64_t sum = 0;
    for (const auto& [digest, piece] : pieces_) sum += piece.bytes;
    return sum;
  }

 private:
  struct Piece {
    int64_t bytes = 0;
    int fetches = 0;
  };
  std::map<std::string, Piece> pieces_;
};

}  // namespace berth::runtime
