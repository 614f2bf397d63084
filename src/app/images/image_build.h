// SPDX-License-Identifier: Apache-2.0
// Puts an image together from files of this host, and adds it to a folder of images. Blocks.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "image/demo/demo_guest.h"
#include "image/file_reader.h"
#include "image/manifest.h"
#include "image/reference.h"

namespace berth::app {

// Parts that are named are used; if none is, it is the demo guest with a small disk.
struct ImageRecipe {
  std::string kernel;
  std::string initramfs;
  std::string command_line;
  std::string disk;  // a raw disk
  std::string uki = {};
  std::string iso = {};
  std::string squashfs = {};
  std::string architecture;
  bool is_demo() const { return kernel.empty() && disk.empty() && uki.empty() && iso.empty(); }
};

// The files of a recipe. Whoever reads them need not be who opened them.
using OpenedParts = std::map<image::Part, image::FileReader>;
// BadRequest if they make no image, NotFound if one is not there.
Result<OpenedParts> OpenParts(const ImageRecipe& recipe);

struct BuiltImage {
  image::Descriptor entry;
  image::Manifest manifest;
};

using RunProgram = std::function<Status(const std::vector<std::string>& arguments)>;
// Told how much of the parts is written by now, and of how much.
using BuildProgress = std::function<void(int64_t bytes, int64_t of)>;

// BadRequest if the parts make no image. Nothing is left of what fails.
Result<BuiltImage> BuildImage(const std::string& layout_folder,
                              std::string_view tag,
                              const ImageRecipe& recipe,
                              OpenedParts parts,
                              const image::DemoSources& demo,
                              const RunProgram& run_program,
                              const BuildProgress& progress = {});

}  // namespace berth::app
