// SPDX-License-Identifier: Apache-2.0
// Where the next page of a list begins, as the opaque text that clients send back.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "store/store.h"

namespace berth::apiserver {

struct ContinueToken {
  // Of the state that all pages show. Zero: the rest is of whatever state there is, because the
  // first pages' is forgotten.
  store::Revision revision;
  std::string after;  // the last key suffix that was delivered

  std::string Encode() const;
  // BadRequest for anything that Encode could not have made. Whose list it is of is not in it:
  // whoever uses `after` checks that it lies in what the request may read.
  static Result<ContinueToken> Decode(std::string_view text);
};

// For a client that would rather have the rest of a list, of the present, than begin again: the
// token that goes on where `expired` does. BadRequest as Decode.
Result<std::string> TokenOfThePresent(std::string_view expired);

}  // namespace berth::apiserver
