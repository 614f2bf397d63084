// SPDX-License-Identifier: Apache-2.0
#include "apiserver/scheduling/cursor.h"

#include "apiserver/cache/watch_cache.h"
#include "base/strings.h"

namespace berth::apiserver {
namespace {

// Two revisions of 64 bits with their letters.
constexpr size_t kTextMax = 44;

}  // namespace

std::string Cursor::ToString() const {
  std::string text;
  if (machines) text += "m" + FormatResourceVersion(*machines);
  if (machines && pools) text += ".";
  if (pools) text += "p" + FormatResourceVersion(*pools);
  return text;
}

Result<Cursor> Cursor::Parse(std::string_view text) {
  Cursor cursor;
  if (text.empty()) return cursor;
  const Status wrong =
      BadRequest("cursor: " + Quote(text.substr(0, kTextMax)) + " is not one of this service");
  if (text.size() > kTextMax) return wrong;
  for (const std::string_view part : Split(text, '.')) {
    if (part.size() < 2 || part[1] == '0') return wrong;
    std::optional<store::Revision>& seen = part[0] == 'm' ? cursor.machines : cursor.pools;
    if ((part[0] != 'm' && part[0] != 'p') || seen) return wrong;
    const auto revision = ParseResourceVersion(part.substr(1));
    if (!revision.ok()) return wrong;
    seen = *revision;
  }
  return cursor;
}

}  // namespace berth::apiserver
