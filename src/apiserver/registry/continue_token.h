// SPDX-License-Identifier: Apache-2.0
// Where the next page of a list begins, as the opaque text that clients send back.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "store/store.h"

namespace berth::apiserver {

struct ContinueToken {
  store::Revision revision;  // of the state that all pages show
  std::string after;         // the last key suffix that was delivered

  std::string Encode() const;
  // BadRequest for anything that Encode did not make.
  static Result<ContinueToken> Decode(std::string_view text);
};

}  // namespace berth::apiserver
