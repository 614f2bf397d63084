// SPDX-License-Identifier: Apache-2.0
#include "cli/objects/manifest.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/strings.h"
#include "cli/failure.h"
#include "cli/files.h"
#include "meta/yaml.h"

namespace berth::cli {
namespace {

using meta::Value;

Status CheckObject(const Value& object) {
  if (!object.is_object()) return BadRequest("not an object");
  if (object.GetString({"apiVersion"}).empty()) return BadRequest("apiVersion is missing");
  if (object.GetString({"kind"}).empty()) return BadRequest("kind is missing");
  return OkStatus();
}

Status CheckNamed(const Value& object) {
  if (object.GetString({"metadata", "name"}).empty() &&
      object.GetString({"metadata", "generateName"}).empty()) {
    return BadRequest(
        fmt::format("{}: metadata.name is missing", Printable(object.GetString({"kind"}))));
  }
  return OkStatus();
}

Status Add(Value object, std::string source, std::vector<Manifest>& out) {
  TRY_STATUS(CheckObject(object).Wrap(source));
  Value* items = object.Find("items");
  if (object.GetString({"kind"}).ends_with("List") && items != nullptr && items->is_array()) {
    for (size_t i = 0; i < items->items().size(); ++i) {
      TRY_STATUS(Add(std::move(items->items()[i]), fmt::format("{}, item {}", source, i + 1), out));
    }
    return OkStatus();
  }
  TRY_STATUS(CheckNamed(object).Wrap(source));
  if (out.size() >= kManifestObjectsMax) {
    return BadRequest(fmt::format("{}: more than {} objects", source, kManifestObjectsMax));
  }
  out.push_back({.object = std::move(object), .source = std::move(source)});
  return OkStatus();
}

bool IsManifestName(const std::filesystem::path& path) {
  return path.extension() == ".yaml" || path.extension() == ".yml" || path.extension() == ".json";
}

// The files of a folder, in the order of their names, so that two runs do the same.
Result<std::vector<std::string>> FilesBelow(const std::string& folder, Folders folders) {
  std::vector<std::string> out;
  std::error_code error;
  const auto visit = [&out](const std::filesystem::directory_entry& entry) {
    std::error_code ignored;
    if (entry.is_regular_file(ignored) && IsManifestName(entry.path())) {
      out.push_back(entry.path().string());
    }
  };
  if (folders == Folders::kRecursive) {
    std::filesystem::recursive_directory_iterator at(folder, error);
    for (; !error && at != std::filesystem::end(at); at.increment(error)) visit(*at);
  } else {
    std::filesystem::directory_iterator at(folder, error);
    for (; !error && at != std::filesystem::end(at); at.increment(error)) visit(*at);
  }
  if (error) return Internal(fmt::format("read {}: {}", Printable(folder), error.message()));
  std::ranges::sort(out);
  if (out.empty()) {
    return Advise(NotFound(fmt::format("{}: no .yaml, .yml or .json file", Printable(folder))),
                  "-R also reads the folders below");
  }
  return out;
}

Result<std::string> ReadAll(std::istream& in) {
  std::string out;
  std::array<char, 65536> buffer{};
  while (in.read(buffer.data(), buffer.size()) || in.gcount() > 0) {
    out.append(buffer.data(), static_cast<size_t>(in.gcount()));
    if (out.size() > kFileBytesMax) {
      return BadRequest(fmt::format("standard input: more than {} MiB", kFileBytesMax >> 20));
    }
  }
  return out;
}

Status AddText(const std::string& text, const std::string& source, std::vector<Manifest>& out) {
  // What is too large for one request may still be many objects, each of which is one.
  auto documents =
      meta::ParseYamlDocuments(text, {.bytes = kFileBytesMax, .documents = kManifestObjectsMax});
  if (!documents.ok()) return documents.status().Wrap(source);
  const bool single = documents->size() == 1;
  for (size_t i = 0; i < documents->size(); ++i) {
    if ((*documents)[i].is_null()) continue;  // only comments between two separators
    const std::string where = single ? source : fmt::format("{}, document {}", source, i + 1);
    TRY_STATUS(Add(std::move((*documents)[i]), where, out));
  }
  return OkStatus();
}

Status AddPath(const std::string& path,
               Folders folders,
               std::istream& in,
               std::vector<Manifest>& out) {
  if (path == "-") {
    TRY(const std::string text, ReadAll(in));
    return AddText(text, "standard input", out);
  }
  if (path.starts_with("http://") || path.starts_with("https://")) {
    return Advise(BadRequest(fmt::format("{}: URLs are not fetched", Printable(path))),
                  "download it, look at it, then give the file");
  }
  std::error_code ignored;
  if (!std::filesystem::is_directory(path, ignored)) {
    TRY(const std::string text, ReadFile(path));
    return AddText(text, Printable(path), out);
  }
  TRY(const std::vector<std::string> files, FilesBelow(path, folders));
  for (const std::string& file : files) {
    TRY(const std::string text, ReadFile(file));
    TRY_STATUS(AddText(text, Printable(file), out));
  }
  return OkStatus();
}

}  // namespace

Result<std::vector<Manifest>> ParseManifests(const std::string& text, const std::string& source) {
  std::vector<Manifest> out;
  TRY_STATUS(AddText(text, source, out));
  return out;
}

Result<std::vector<Manifest>> ReadManifests(const std::vector<std::string>& paths,
                                            Folders folders,
                                            std::istream& in) {
  std::vector<Manifest> out;
  for (const std::string& path : paths) TRY_STATUS(AddPath(path, folders, in, out));
  if (out.empty()) return BadRequest("no objects were given");
  return out;
}

}  // namespace berth::cli
