// SPDX-License-Identifier: Apache-2.0
// A certificate authority that lives as long as a test.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <optional>
#include <string>

#include "base/check.h"
#include "pki/certificate_authority.h"

namespace berth::gateway {

class TempAuthority {
 public:
  explicit TempAuthority(WallTime now) {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "berth-gateway-XXXXXX").string();
    CHECK(mkdtemp(pattern.data()) != nullptr);
    folder_ = pattern;
    auto made = pki::CertificateAuthority::LoadOrCreate(folder_, now);
    CHECK(made.ok()) << made.status();
    authority_.emplace(*std::move(made));
  }
  ~TempAuthority() { std::filesystem::remove_all(folder_); }
  TempAuthority(const TempAuthority&) = delete;
  TempAuthority& operator=(const TempAuthority&) = delete;

  const pki::CertificateAuthority& get() const { return *authority_; }
  // A second authority, which signs from now on.
  void Rotate(WallTime now) {
    Take(authority_->Rotated({.id = "one", .signs_from = now, .switch_after = now}, now), now);
  }
  void Retire(WallTime now) { Take(authority_->Retired("two"), now); }

 private:
  void Take(const Result<std::string>& text, WallTime now) {
    CHECK(text.ok()) << text.status();
    const Status taken = authority_->Replace(*text, now);
    CHECK(taken.ok()) << taken;
  }

  std::string folder_;
  std::optional<pki::CertificateAuthority> authority_;
};

}  // namespace berth::gateway
