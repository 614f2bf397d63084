// SPDX-License-Identifier: Apache-2.0
// A CopyEncoder makes the bytes of objects that are copies of one, created bound: they differ in
// name, UID and pool only, and the rest is encoded once (meta/at_rest_stencil.h).
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/result.h"
#include "base/time.h"
#include "client/binder.h"
#include "meta/at_rest_stencil.h"
#include "meta/object.h"
#include "meta/scheme.h"

namespace berth::apiserver {

class CopyEncoder {
 public:
  // All copies are bound at `now`. Scheme and pattern outlive the encoder.
  CopyEncoder(const meta::Scheme& scheme, const meta::Object& pattern, WallTime now)
      : scheme_(scheme), pattern_(pattern), now_(now) {}

  // Binds the copy, which has its name and UID already, and encodes it. The same as BecomeBound and
  // Encode.
  Result<Bytes> Seal(meta::Object& copy, const client::BindItem& item, const std::string& mode);

 private:
  void Bind(meta::Object& copy, const client::BindItem& item, const std::string& mode) const;
  // Makes a stencil for copies like this one, if one can be made.
  void MakeStencil(const meta::Object& copy, const client::BindItem& item, const std::string& mode);
  std::optional<Bytes> Stamp(const meta::Object& copy, const client::BindItem& item) const;

  const meta::Scheme& scheme_;
  const meta::Object& pattern_;
  const WallTime now_;
  // What the stencil was made for.
  bool is_made_ = false;
  std::string mode_;
  client::Amounts resources_;
  std::optional<meta::AtRestStencil> stencil_;
};

}  // namespace berth::apiserver
