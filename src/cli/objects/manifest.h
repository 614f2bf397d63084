// SPDX-License-Identifier: Apache-2.0
// Manifests are objects in files: YAML with any number of documents, JSON, folders of both, or
// standard input. Lists are taken apart.
#pragma once

#include <cstdint>
#include <istream>
#include <string>
#include <vector>

#include "base/result.h"
#include "meta/value.h"

namespace berth::cli {

inline constexpr size_t kManifestObjectsMax = 100'000;

struct Manifest {
  meta::Value object;  // has apiVersion, kind and metadata with a name or generateName
  std::string source;  // "web.yaml, document 2": for errors
};

enum class Folders : uint8_t { kTopLevel, kRecursive };

// "-" is `in`. BadRequest with file, document and line on anything that is no object.
Result<std::vector<Manifest>> ReadManifests(const std::vector<std::string>& paths,
                                            Folders folders,
                                            std::istream& in);

// The same for one text.
Result<std::vector<Manifest>> ParseManifests(const std::string& text, const std::string& source);

}  // namespace berth::cli
