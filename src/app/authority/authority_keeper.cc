// SPDX-License-Identifier: Apache-2.0
#include "app/authority/authority_keeper.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "apis/k8s/config_map.h"
#include "app/leading/shared_authority.h"
#include "base/log.h"
#include "client/records/config_record.h"
#include "rt/sleep.h"

namespace berth::app {
namespace {

using client::HeldCertificate;
using client::RecordEntries;

constexpr Duration kLook = Duration::Millis(500);
// Other servers look as often.
constexpr Duration kSettle = Duration::Seconds(5);
// Records of hosts are read while something waits for them: at most a fiftieth of the time.
constexpr Duration kHoldersPause = Duration::Seconds(1);
constexpr int64_t kHoldersShare = 50;
constexpr size_t kPage = 500;
// How often the record says anew when somebody was last seen.
constexpr Duration kSeenPause = Duration::Minutes(5);

// Entries that Describe may write, and takes away.
constexpr std::string_view kOurs[] = {kBundleEntry,
                                      kPhaseEntry,
                                      kServingEntry,
                                      kSigningEntry,
                                      kRetiringEntry,
                                      kSwitchAfterEntry,
                                      kWaitingEntry};

void AddHosts(const client::ObjectList& page, std::vector<HeldCertificate>& hosts) {
  for (const meta::Object& object : page.items) {
    const std::string_view name = object.metadata().name;
    if (!name.starts_with(client::kHostRecordPrefix)) continue;
    const auto record = client::ParseHostRecord(object.as<apis::k8s::ConfigMap>().data);
    if (!record.ok()) continue;
    hosts.push_back({.host = std::string(name.substr(client::kHostRecordPrefix.size())),
                     .pools = {},
                     .certificate = record->certificate});
  }
}

}  // namespace

rt::Task<Status> AuthorityKeeper::Run() {
  std::string last_failure;
  while (true) {
    const Status looked = co_await Look();
    if (looked.Is(Reason::kCancelled)) co_return looked;
    std::string failure = looked.ok() ? "" : looked.ToString();
    if (failure != last_failure && !looked.ok()) LOG_WARNING("authority: {}", failure);
    last_failure = std::move(failure);
    CO_TRY_STATUS(co_await rt::Sleep(kLook));
  }
}

rt::Task<Status> AuthorityKeeper::Look() {
  if (deps_.shared != nullptr) CO_TRY_STATUS(co_await Follow());
  CO_TRY_STATUS(co_await TellSeen());
  if (!connected_) co_return OkStatus();
  CO_TRY(const std::optional<RecordEntries> entries,
         co_await client::ReadRecord(deps_.client, std::string(kAuthorityRecord)));
  auto request = ReadRequest(entries ? *entries : RecordEntries());
  if (!request.ok()) {
    const auto id = entries->find(std::string(kRequestIdEntry));
    co_return co_await Publish(id->second, std::string(request.status().message()));
  }
  const pki::Rotation* rotation = deps_.authority.rotation();
  const bool is_due = rotation != nullptr && deps_.loop.WallNow() >= rotation->switch_after;
  // Whoever asks gets an answer of this moment.
  if (*request) holders_known_ = false;
  CO_TRY_STATUS(co_await FindOldHolders());
  if (!*request && is_due && !holders_known_) co_return OkStatus();
  const Duration settle = deps_.shared != nullptr ? kSettle : Duration();
  const AuthorityStep step =
      NextStep(deps_.authority, *request, old_holders_, settle, deps_.loop.WallNow());
  if (step.text) CO_TRY_STATUS(co_await Take(*step.text));
  if (step.text) CO_TRY_STATUS(co_await FindOldHolders());
  co_return co_await Publish(*request ? (*request)->id : std::string(), step.answer);
}

// What the leading server, or the one before it, has put into the store.
rt::Task<Status> AuthorityKeeper::Follow() {
  store::RangeRequest range;
  range.start = kAuthorityKey;
  CO_TRY(const store::RangeResult found, co_await deps_.shared->Range(std::move(range)));
  if (found.items.empty()) co_return OkStatus();
  const std::string text(found.items[0].value.view());
  if (text == deps_.authority.text()) co_return OkStatus();
  if (pki::CertificateAuthority::Compare(text, deps_.authority.text()) !=
      std::strong_ordering::greater) {
    co_return Conflict("the store has an older authority, or the one of another cluster");
  }
  CO_TRY_STATUS(deps_.authority.Replace(text, deps_.loop.WallNow()));
  LOG_INFO("the authority is now {}", deps_.authority.names().front());
  co_return deps_.on_change();
}

rt::Task<Status> AuthorityKeeper::Take(std::string text) {
  if (deps_.shared != nullptr) {
    store::RangeRequest range;
    range.start = kAuthorityKey;
    CO_TRY(const store::RangeResult found, co_await deps_.shared->Range(std::move(range)));
    if (found.items.empty() || found.items[0].value.view() != deps_.authority.text()) {
      co_return Conflict("another server has changed the authority");
    }
    store::Txn txn;
    txn.conditions.push_back(
        store::Condition::Unchanged(std::string(kAuthorityKey), found.items[0].mod_revision));
    txn.ops.push_back(store::Op::Put(std::string(kAuthorityKey), Bytes(text)));
    CO_TRY(const store::TxnResult result, co_await deps_.shared->Commit(std::move(txn)));
    if (!result.committed) co_return Conflict("another server has changed the authority");
  }
  CO_TRY_STATUS(deps_.authority.Replace(text, deps_.loop.WallNow()));
  LOG_INFO("authorities: {} trusted, {} has signed the server's certificate",
           deps_.authority.names().size(),
           deps_.authority.names().front());
  holders_known_ = false;
  co_return deps_.on_change();
}

rt::Task<Status> AuthorityKeeper::FindOldHolders() {
  if (deps_.authority.names().size() < 2) {
    old_holders_.clear();
    co_return OkStatus();
  }
  const Time begin = deps_.loop.Now();
  if (holders_known_ && begin < holders_at_) co_return OkStatus();
  std::vector<HeldCertificate> records;
  client::ListOptions options;
  options.namespace_ = client::kRecordNamespace;
  options.limit = kPage;
  do {
    CO_TRY(const client::ObjectList page,
           co_await deps_.client.List(apis::k8s::kConfigMapKind, options));
    AddHosts(page, records);
    options.continue_token = page.continue_token;
  } while (!options.continue_token.empty());
  old_holders_ = OldHolders(deps_.authority, records, connected_(), deps_.loop.WallNow());
  holders_known_ = true;
  holders_at_ =
      deps_.loop.Now() + std::max(kHoldersPause, (deps_.loop.Now() - begin) * kHoldersShare);
  co_return OkStatus();
}

// Every server tells of its own. The times are those of the last telling.
rt::Task<Status> AuthorityKeeper::TellSeen() {
  const std::string retiring = RetiringName(deps_.authority);
  if (!deps_.seen) co_return OkStatus();
  std::vector<OldUser> users;
  if (!retiring.empty()) users = deps_.seen(retiring);
  std::vector<std::string> names;
  for (const OldUser& user : users) names.push_back(user.user);
  std::ranges::sort(names);
  const bool is_old = !names.empty() && deps_.loop.Now() - seen_at_ > kSeenPause;
  if (names == seen_ && !is_old) co_return OkStatus();
  const std::string entry = std::string(kSeenPrefix) + deps_.id;
  const std::string text = ShowUsers(std::move(users));
  const std::function<bool(RecordEntries&)> edit = [&entry, &text](RecordEntries& entries) {
    const RecordEntries before = entries;
    entries.erase(entry);
    if (!text.empty()) entries[entry] = text;
    return entries != before;
  };
  CO_TRY_STATUS(co_await client::EditRecord(deps_.client, std::string(kAuthorityRecord), edit));
  seen_ = std::move(names);
  seen_at_ = deps_.loop.Now();
  co_return OkStatus();
}

rt::Task<Status> AuthorityKeeper::Publish(std::string id, std::string answer) {
  RecordEntries ours = Describe(deps_.authority, old_holders_, deps_.loop.WallNow());
  if (!answer.empty()) {
    ours[std::string(kAnswerIdEntry)] = id;
    ours[std::string(kAnswerEntry)] = answer;
  } else if (ours == published_) {
    co_return OkStatus();
  }
  const std::function<bool(RecordEntries&)> edit = [&ours](RecordEntries& entries) {
    const RecordEntries before = entries;
    for (const std::string_view name : kOurs) entries.erase(std::string(name));
    // Of servers that are gone, too.
    if (!ours.contains(std::string(kRetiringEntry))) {
      std::erase_if(entries,
                    [](const auto& entry) { return entry.first.starts_with(kSeenPrefix); });
    }
    for (const auto& [name, value] : ours) entries[name] = value;
    return entries != before;
  };
  CO_TRY_STATUS(co_await client::EditRecord(deps_.client, std::string(kAuthorityRecord), edit));
  ours.erase(std::string(kAnswerIdEntry));
  ours.erase(std::string(kAnswerEntry));
  published_ = std::move(ours);
  co_return OkStatus();
}

}  // namespace berth::app
