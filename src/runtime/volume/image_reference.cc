// SPDX-License-Identifier: Apache-2.0
#include "runtime/volume/image_reference.h"

#include <algorithm>

#include "base/strings.h"

namespace berth::runtime {
namespace {

constexpr size_t kReferenceMax = 512;
constexpr size_t kTagMax = 128;
constexpr size_t kDigestLength = 64;

bool IsLetterOrDigit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}
bool IsWord(std::string_view text) {
  if (text.empty() || !(IsLetterOrDigit(text.front()) || text.front() == '_')) return false;
  return std::ranges::all_of(
      text, [](char c) { return IsLetterOrDigit(c) || c == '.' || c == '_' || c == '-'; });
}

}  // namespace

std::string Sha256Of(std::string_view digest) {
  constexpr std::string_view kPrefix = "sha256:";
  if (!digest.starts_with(kPrefix)) return {};
  digest.remove_prefix(kPrefix.size());
  const bool hex = std::ranges::all_of(
      digest, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
  return hex && digest.size() == kDigestLength ? std::string(digest) : std::string();
}

Result<ImageReference> ParseImageReference(std::string_view text) {
  const std::string quoted = "image " + Quote(text.substr(0, kReferenceMax));
  if (text.size() > kReferenceMax) {
    return BadRequest(quoted + ": longer than " + std::to_string(kReferenceMax) + " characters");
  }
  ImageReference reference;
  if (const size_t at = text.find('@'); at != std::string_view::npos) {
    reference.digest = Sha256Of(text.substr(at + 1));
    if (reference.digest.empty()) {
      return BadRequest(quoted + ": expected @sha256: and 64 hexadecimal characters");
    }
    text = text.substr(0, at);
  }
  if (const size_t colon = text.rfind(':'); colon != std::string_view::npos) {
    reference.tag = text.substr(colon + 1);
    if (!IsWord(reference.tag) || reference.tag.size() > kTagMax) {
      return BadRequest(quoted + ": " + Quote(reference.tag) + " is no tag");
    }
    text = text.substr(0, colon);
  }
  for (const std::string_view part : Split(text, '/')) {
    if (!IsWord(part)) return BadRequest(quoted + ": " + Quote(text) + " is no name of an image");
  }
  reference.name = text;
  return reference;
}

}  // namespace berth::runtime
