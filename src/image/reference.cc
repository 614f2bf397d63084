// SPDX-License-Identifier: Apache-2.0
#include "image/reference.h"

#include <algorithm>

#include "base/strings.h"

namespace berth::image {
namespace {

constexpr size_t kReferenceMax = 512;
constexpr size_t kTagMax = 128;
constexpr size_t kDigestLength = 64;
constexpr uint64_t kPortMax = 65535;

bool IsLower(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }
bool IsLetterOrDigit(char c) { return IsLower(c) || (c >= 'A' && c <= 'Z'); }
bool IsWord(std::string_view text) {
  if (text.empty() || !(IsLetterOrDigit(text.front()) || text.front() == '_')) return false;
  return std::ranges::all_of(
      text, [](char c) { return IsLetterOrDigit(c) || c == '.' || c == '_' || c == '-'; });
}

bool LooksLikeHost(std::string_view part) {
  return part == "localhost" || part.find_first_of(".:") != std::string_view::npos;
}

bool IsHost(std::string_view text) {
  const size_t colon = text.find(':');
  if (colon != std::string_view::npos) {
    const auto port = ParseUint(text.substr(colon + 1));
    if (!port.has_value() || *port == 0 || *port > kPortMax) return false;
    text = text.substr(0, colon);
  }
  if (text.empty() || !IsLetterOrDigit(text.front())) return false;
  return std::ranges::all_of(text,
                             [](char c) { return IsLetterOrDigit(c) || c == '.' || c == '-'; });
}

// Registries know lower case alone: another case would be a second name for the same.
bool IsRepositoryPart(std::string_view text) {
  return IsWord(text) && IsLower(text.front()) &&
         std::ranges::none_of(text, [](char c) { return c >= 'A' && c <= 'Z'; });
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

Result<Reference> ParseReference(std::string_view text) {
  const std::string quoted = "image " + Quote(text.substr(0, kReferenceMax));
  if (text.size() > kReferenceMax) {
    return BadRequest(quoted + ": longer than " + std::to_string(kReferenceMax) + " characters");
  }
  Reference reference;
  if (const size_t at = text.find('@'); at != std::string_view::npos) {
    reference.digest = Sha256Of(text.substr(at + 1));
    if (reference.digest.empty()) {
      return BadRequest(quoted + ": expected @sha256: and 64 hexadecimal characters");
    }
    text = text.substr(0, at);
  }
  if (const size_t slash = text.find('/');
      slash != std::string_view::npos && LooksLikeHost(text.substr(0, slash))) {
    reference.registry = ToLower(text.substr(0, slash));
    if (!IsHost(reference.registry)) {
      return BadRequest(quoted + ": " + Quote(reference.registry) + " is no host of a registry");
    }
    text = text.substr(slash + 1);
  }
  if (const size_t colon = text.rfind(':'); colon != std::string_view::npos) {
    reference.tag = text.substr(colon + 1);
    if (!IsWord(reference.tag) || reference.tag.size() > kTagMax) {
      return BadRequest(quoted + ": " + Quote(reference.tag) + " is no tag");
    }
    text = text.substr(0, colon);
  }
  for (const std::string_view part : Split(text, '/')) {
    const bool fits = reference.registry.empty() ? IsWord(part) : IsRepositoryPart(part);
    if (!fits) return BadRequest(quoted + ": " + Quote(text) + " is no name of an image");
  }
  reference.name = text;
  return reference;
}

std::string ToText(const Reference& reference) {
  std::string text;
  if (!reference.registry.empty()) text += reference.registry + "/";
  text += reference.name;
  if (!reference.tag.empty()) text += ":" + reference.tag;
  if (!reference.digest.empty()) text += "@sha256:" + reference.digest;
  return text;
}

}  // namespace berth::image
