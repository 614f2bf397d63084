// SPDX-License-Identifier: Apache-2.0
// What the writer and the reader of a backup must agree on (app/backup/backup_file.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "pki/aes_gcm.h"
#include "store/mvcc/record.h"
#include "store/store.h"

namespace berth::app {

inline constexpr std::string_view kBackupMagic = "BERTHBAK";
inline constexpr uint32_t kBackupVersion = 1;
inline constexpr size_t kBackupSaltBytes = 16;
inline constexpr size_t kBackupFrontBytes = kBackupMagic.size() + 4 + kBackupSaltBytes;
// A private file is at most 1 MiB, a value a little more.
inline constexpr size_t kBackupEntryBytesMax = store::kMaxValueBytes + store::kMaxKeyBytes + 64;

inline constexpr char kHeadEntry = 'H';
inline constexpr char kFileEntry = 'F';
inline constexpr char kValueEntry = 'K';
inline constexpr char kEndEntry = 'E';

// Of the chunk of that number.
inline std::string BackupNonce(uint64_t number) {
  std::string nonce(pki::kAesNonceBytes, '\0');
  for (size_t i = 0; i < 8; ++i) {
    nonce[nonce.size() - 1 - i] = static_cast<char>((number >> (8 * i)) & 0xff);
  }
  return nonce;
}

inline void PutText(std::string& out, std::string_view text) {
  store::PutVarint(out, text.size());
  out += text;
}

}  // namespace berth::app
