// SPDX-License-Identifier: Apache-2.0
// Adds to an OCI image layout, and removes from it. A file gets its name when it is whole and
// durable; after a crash at any moment the layout is the old or the new one, and what was left half
// done is removed by the next sweep. All calls block.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/time.h"
#include "image/file_reader.h"
#include "image/layout.h"
#include "image/manifest.h"

namespace berth::image {

class LayoutWriter {
 public:
  // Makes the folder with an empty index if there is none, and holds it.
  static Result<LayoutWriter> Open(const std::string& folder);

  const Layout& layout() const { return layout_; }
  Result<Descriptor> AddText(std::string_view media_type, std::string_view text);
  // A copy of the file. `copied` is told how much came since it was told the last time.
  Result<Descriptor> AddFile(std::string_view media_type,
                             const std::string& path,
                             const std::function<void(int64_t bytes)>& copied = {});
  // The same of one that was opened by somebody who may.
  Result<Descriptor> AddFile(std::string_view media_type,
                             FileReader file,
                             const std::function<void(int64_t bytes)>& copied = {});
  // Writes a manifest, and gives it a tag; who had that for the architecture loses it.
  Result<Descriptor> AddManifest(const Manifest& manifest,
                                 std::string_view tag,
                                 std::string_view architecture);
  // An entry of the index, in the place of the one of the same tag and architecture.
  Status SetEntry(const Descriptor& entry);

 private:
  LayoutWriter(std::string folder, LayoutHold hold)
      : layout_(std::move(folder)), hold_(std::move(hold)) {}

  Layout layout_;
  LayoutHold hold_;
};

// Removes the entries that `is_unwanted`. Their blobs stay until a sweep.
Status RemoveEntries(const Layout& layout,
                     const std::function<bool(const Descriptor& entry)>& is_unwanted);
// Removes whatever no entry leads to, and says how many bytes that were: blobs, and parts that
// nobody has written to for a day, which is how long a download may be resumed. Conflict if
// somebody uses the layout: later, then.
Result<int64_t> Sweep(const Layout& layout, WallTime now);

// What blobs are made of before they have their name: FOLDER/parts/<name>.
std::string PartFile(const Layout& layout, std::string_view name);
// A part that is whole becomes the blob of this digest.
Status SettlePart(const Layout& layout, const std::string& part, const std::string& digest);

}  // namespace berth::image
