// SPDX-License-Identifier: Apache-2.0
// A KeyFile is a keyring in a private file that may change while it is used: a key that is added
// there is taken over.
#pragma once

#include <memory>
#include <string>

#include "base/bytes.h"
#include "base/result.h"
#include "store/sealed/keyring.h"

namespace berth::store {

enum class MissingKeys : uint8_t { kMake, kRefuse };

class KeyFile {
 public:
  // kMake: a file that is not there is made with one new key. Errors name the file.
  static Result<std::unique_ptr<KeyFile>> Open(std::string path, MissingKeys missing);
  // Adds a new key. kFirst: it encrypts from now on. kLast: it only decrypts until PromoteLast().
  // The id of the new key.
  enum class Place : uint8_t { kFirst, kLast };
  static Result<std::string> Add(const std::string& path, Place place);
  // What was added last with kLast encrypts from now on. Conflict if there is only one key.
  static Result<std::string> PromoteLast(const std::string& path);
  // Adds those of `ring` that the file lacks, at the end; makes the file if it is not there.
  static Status Merge(const std::string& path, const Keyring& ring);
  // Leaves nothing but the first key. How many are gone.
  static Result<size_t> Retire(const std::string& path);

  const std::string& path() const { return path_; }
  const Keyring& ring() const { return ring_; }
  Bytes Seal(std::string_view store_key, std::string_view value) const {
    return ring_.Seal(store_key, value);
  }
  // Looks into the file again for a key that is not known.
  Result<Bytes> Open(std::string_view store_key, Bytes value);
  // Takes over what the file holds now; if it cannot be read the keys stay as they are.
  Status Reload();

 private:
  KeyFile(std::string path, Keyring ring) : path_(std::move(path)), ring_(std::move(ring)) {}
  const std::string path_;
  Keyring ring_;
};

}  // namespace berth::store
