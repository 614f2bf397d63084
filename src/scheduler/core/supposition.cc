// SPDX-License-Identifier: Apache-2.0
#include "scheduler/core/supposition.h"

#include <ranges>

namespace berth::scheduler {

Supposition::~Supposition() {
  // Who lives in a reservation goes before it.
  for (const Request& request : std::views::reverse(placed_)) board_.ForgetAll(request);
  board_.TakeChanges();
  board_.TellAgain(before_);
}

std::optional<std::vector<Candidate>> Supposition::Place(std::span<const Request> requests) {
  std::optional<std::vector<Candidate>> places = board_.PlaceGroup(requests);
  if (places) placed_.insert(placed_.end(), requests.begin(), requests.end());
  return places;
}

size_t CountTogether(Board& board, std::span<const Request> requests) {
  size_t fits = 0;
  size_t fails = requests.size() + 1;
  // All of them first: that is what whoever asks hopes for.
  for (size_t next = requests.size(); fails - fits > 1; next = (fits + fails) / 2) {
    Supposition trial(board);
    (trial.Place(requests.first(next)) ? fits : fails) = next;
  }
  return fits;
}

}  // namespace berth::scheduler
