// SPDX-License-Identifier: Apache-2.0
#include "store/sealed/key_file.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "pki/private_file.h"

namespace berth::store {
namespace {

Result<Keyring> Read(const std::string& path) {
  TRY(const std::string text, pki::ReadPrivateFile(path));
  Result<Keyring> ring = Keyring::Parse(text);
  if (!ring.ok()) return ring.status().Wrap("encryption keys " + path);
  return ring;
}

Status Write(const std::string& path, std::vector<SealingKey> keys) {
  return pki::WritePrivateFile(path, Keyring(std::move(keys)).Format());
}

}  // namespace

Result<std::unique_ptr<KeyFile>> KeyFile::Open(std::string path, MissingKeys missing) {
  Result<Keyring> ring = Read(path);
  if (!ring.ok() && ring.status().Is(Reason::kNotFound) && missing == MissingKeys::kMake) {
    TRY_STATUS(Write(path, {NewSealingKey(pki::SystemEntropy())}));
    ring = Read(path);
  }
  if (!ring.ok()) return ring.status();
  return std::unique_ptr<KeyFile>(new KeyFile(std::move(path), *std::move(ring)));
}

Result<std::string> KeyFile::Add(const std::string& path, Place place) {
  TRY(const Keyring ring, Read(path));
  if (ring.keys().size() >= kKeysMax) {
    return Conflict("encryption keys " + path + " holds " + std::to_string(kKeysMax) +
                    " keys, which is the limit: retire the old ones first");
  }
  std::vector<SealingKey> keys = ring.keys();
  SealingKey added = NewSealingKey(pki::SystemEntropy());
  const std::string id = added.id;
  keys.insert(place == Place::kFirst ? keys.begin() : keys.end(), std::move(added));
  TRY_STATUS(Write(path, std::move(keys)));
  return id;
}

Result<std::string> KeyFile::PromoteLast(const std::string& path) {
  TRY(const Keyring ring, Read(path));
  std::vector<SealingKey> keys = ring.keys();
  if (keys.size() < 2) return Conflict("encryption keys " + path + " holds one key only");
  std::ranges::rotate(keys, keys.end() - 1);
  const std::string id = keys.front().id;
  TRY_STATUS(Write(path, std::move(keys)));
  return id;
}

Status KeyFile::Merge(const std::string& path, const Keyring& ring) {
  const Result<Keyring> present = Read(path);
  if (!present.ok() && !present.status().Is(Reason::kNotFound)) return present.status();
  std::vector<SealingKey> keys;
  if (present.ok()) keys = present->keys();
  const size_t before = keys.size();
  for (const SealingKey& key : ring.keys()) {
    if (std::ranges::find(keys, key.id, &SealingKey::id) == keys.end()) keys.push_back(key);
  }
  if (keys.size() == before) return OkStatus();
  if (keys.size() > kKeysMax) {
    return Conflict("encryption keys " + path + " would hold " + std::to_string(keys.size()) +
                    " keys, the limit is " + std::to_string(kKeysMax) + ": retire old ones first");
  }
  return Write(path, std::move(keys));
}

Result<size_t> KeyFile::Retire(const std::string& path) {
  TRY(const Keyring ring, Read(path));
  TRY_STATUS(Write(path, {ring.first()}));
  return ring.keys().size() - 1;
}

Result<Bytes> KeyFile::Open(std::string_view store_key, Bytes value) {
  Result<Bytes> opened = ring_.Open(store_key, value);
  if (opened.ok() || !opened.status().Is(Reason::kNotFound)) return opened;
  // The value is not damaged because its key cannot be looked up now.
  if (const Status read = Reload(); !read.ok()) return Unavailable(std::string(read.message()));
  opened = ring_.Open(store_key, std::move(value));
  if (opened.ok() || !opened.status().Is(Reason::kNotFound)) return opened;
  // Not NotFound: the object is there, and can be read once the key is.
  return Unavailable(std::string(opened.status().message()) + " in " + path_ +
                     ": put back the file that the store was written with");
}

Status KeyFile::Reload() {
  TRY(Keyring ring, Read(path_));
  ring_ = std::move(ring);
  return OkStatus();
}

}  // namespace berth::store
