// SPDX-License-Identifier: Apache-2.0
// SHA-256 of something that comes in parts.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace berth::pki {

class Sha256Stream {
 public:
  Sha256Stream();
  ~Sha256Stream();
  Sha256Stream(const Sha256Stream&) = delete;
  Sha256Stream& operator=(const Sha256Stream&) = delete;
  void Add(std::string_view bytes);
  // 64 characters, lower case. Once, at the end.
  std::string Hex();

 private:
  struct Body;
  std::unique_ptr<Body> body_;
};

}  // namespace berth::pki
