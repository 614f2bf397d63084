// SPDX-License-Identifier: Apache-2.0
// A Supposition is a board on which requests have places that nobody gave them. What would be
// possible then is asked as ever.
//
// When it ends they are forgotten, and no change tells that they were there: nobody is woken for
// it. Meanwhile the board is only asked; one that begins while another lives ends before it.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "scheduler/core/answers.h"
#include "scheduler/core/board.h"
#include "scheduler/core/request.h"

namespace berth::scheduler {

class Supposition {
 public:
  explicit Supposition(Board& board) : board_(board), before_(board.TakeChanges()) {}
  Supposition(const Supposition&) = delete;
  Supposition& operator=(const Supposition&) = delete;
  ~Supposition();

  // As Board::PlaceGroup: all get places, or none does. REQUIRES: keys that the board does not
  // know.
  std::optional<std::vector<Candidate>> Place(std::span<const Request> requests);

 private:
  Board& board_;
  const std::vector<Change> before_;
  std::vector<Request> placed_;
};

// Counting costs the logarithm of their number times placing all of them: 256 * 8 * 5 us = 10 ms.
inline constexpr size_t kCountedTogetherMax = 256;

// How many of the requests, from the first one on, could get places together. Leaves no trace.
size_t CountTogether(Board& board, std::span<const Request> requests);

}  // namespace berth::scheduler
