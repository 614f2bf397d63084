// SPDX-License-Identifier: Apache-2.0
#include "app/leading/shared_authority.h"

#include <filesystem>
#include <string_view>
#include <utility>

#include "pki/certificate_authority.h"
#include "pki/private_file.h"

namespace berth::app {
namespace {

std::string KeyFile(const std::string& folder) { return folder + "/ca.pem"; }

// Takes over what the store has.
Status Adopt(const std::string& folder, std::string_view authority) {
  const std::string path = KeyFile(folder);
  const Result<std::string> own = pki::ReadPrivateFile(path);
  if (own.status().Is(Reason::kNotFound)) {
    TRY_STATUS(pki::EnsurePrivateFolder(folder));
    return pki::WritePrivateFile(path, authority);
  }
  TRY_STATUS(own);
  if (*own == authority) return OkStatus();
  return Conflict(path +
                  " is not the authority of this store's servers: use another data folder, "
                  "or move the folder " +
                  folder + " away");
}

}  // namespace

rt::Task<Status> ShareAuthority(store::Store* store, std::string folder, WallTime now) {
  store::RangeRequest request;
  request.start = kAuthorityKey;
  CO_TRY(const store::RangeResult found, co_await store->Range(request));
  if (!found.items.empty()) co_return Adopt(folder, found.items[0].value.view());
  std::error_code ignored;
  const bool is_new = !std::filesystem::exists(KeyFile(folder), ignored);
  CO_TRY_STATUS(pki::CertificateAuthority::LoadOrCreate(folder, now));
  CO_TRY(const std::string own, pki::ReadPrivateFile(KeyFile(folder)));
  store::Txn txn;
  txn.conditions.push_back(store::Condition::Absent(std::string(kAuthorityKey)));
  txn.ops.push_back(store::Op::Put(std::string(kAuthorityKey), Bytes(own)));
  CO_TRY(const store::TxnResult result, co_await store->Commit(std::move(txn)));
  if (result.committed) co_return OkStatus();
  // Another server was faster. What was made here just now has signed nothing yet.
  if (is_new) std::filesystem::remove(KeyFile(folder), ignored);
  CO_TRY(const store::RangeResult theirs, co_await store->Range(std::move(request)));
  if (theirs.items.empty()) co_return Unavailable("the authority has left the store");
  co_return Adopt(folder, theirs.items[0].value.view());
}

}  // namespace berth::app
