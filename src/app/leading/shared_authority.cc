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

// Takes over what the store has, unless the folder has a later state of it: true.
Result<bool> Adopt(const std::string& folder, std::string_view authority) {
  const std::string path = KeyFile(folder);
  const Result<std::string> own = pki::ReadPrivateFile(path);
  if (own.status().Is(Reason::kNotFound)) {
    TRY_STATUS(pki::EnsurePrivateFolder(folder));
    TRY_STATUS(pki::WritePrivateFile(path, authority));
    return false;
  }
  TRY_STATUS(own);
  if (*own == authority) return false;
  // It was changed while this server was away, or the store is of before (docs/adr/0031).
  if (const auto order = pki::CertificateAuthority::Compare(*own, authority)) {
    if (*order == std::strong_ordering::greater) return true;
    if (*order == std::strong_ordering::less) {
      TRY_STATUS(pki::WritePrivateFile(path, authority));
      return false;
    }
  }
  return Conflict(path +
                  " is not the authority of this store's servers: use another data folder, "
                  "or move the folder " +
                  folder + " away");
}

// What the first server of a store brings.
Status EnsureOwn(const std::string& folder, WallTime now, pki::NoAuthority none) {
  const Status own = pki::CertificateAuthority::LoadOrCreate(folder, now, none).status();
  return own.Is(Reason::kNotFound) ? own.Wrap("the store has no certificate authority") : own;
}

store::RangeRequest AuthorityRequest() {
  store::RangeRequest request;
  request.start = kAuthorityKey;
  return request;
}

rt::Task<Status> PutBack(store::Store* store, std::string folder, store::Revision at) {
  CO_TRY(const std::string own, pki::ReadPrivateFile(KeyFile(folder)));
  store::Txn txn;
  txn.conditions.push_back(store::Condition::Unchanged(std::string(kAuthorityKey), at));
  txn.ops.push_back(store::Op::Put(std::string(kAuthorityKey), Bytes(own)));
  CO_TRY(const store::TxnResult result, co_await store->Commit(std::move(txn)));
  if (!result.committed) co_return Unavailable("another server changes the authority: start again");
  co_return OkStatus();
}

}  // namespace

rt::Task<Status> ShareAuthority(store::Store* store,
                                std::string folder,
                                WallTime now,
                                pki::NoAuthority none) {
  CO_TRY(const store::RangeResult found, co_await store->Range(AuthorityRequest()));
  if (!found.items.empty()) {
    CO_TRY(const bool is_later, Adopt(folder, found.items[0].value.view()));
    if (!is_later) co_return OkStatus();
    co_return co_await PutBack(store, std::move(folder), found.items[0].mod_revision);
  }
  std::error_code ignored;
  const bool is_new = !std::filesystem::exists(KeyFile(folder), ignored);
  CO_TRY_STATUS(EnsureOwn(folder, now, none));
  CO_TRY(const std::string own, pki::ReadPrivateFile(KeyFile(folder)));
  store::Txn txn;
  txn.conditions.push_back(store::Condition::Absent(std::string(kAuthorityKey)));
  txn.ops.push_back(store::Op::Put(std::string(kAuthorityKey), Bytes(own)));
  CO_TRY(const store::TxnResult result, co_await store->Commit(std::move(txn)));
  if (result.committed) co_return OkStatus();
  // Another server was faster. What was made here just now has signed nothing yet.
  if (is_new) std::filesystem::remove(KeyFile(folder), ignored);
  CO_TRY(const store::RangeResult theirs, co_await store->Range(AuthorityRequest()));
  if (theirs.items.empty()) co_return Unavailable("the authority has left the store");
  co_return Adopt(folder, theirs.items[0].value.view()).status();
}

rt::Task<Status> CheckSharedAuthority(store::Store* store, std::string folder, WallTime now) {
  CO_TRY(const store::RangeResult found, co_await store->Range(AuthorityRequest()));
  if (!found.items.empty()) co_return OkStatus();
  co_return EnsureOwn(folder, now, pki::NoAuthority::kIsRefused);
}

}  // namespace berth::app
