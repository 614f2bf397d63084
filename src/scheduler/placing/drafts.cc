// SPDX-License-Identifier: Apache-2.0
#include "scheduler/placing/drafts.h"

namespace berth::scheduler {

std::string Drafts::UidFor(const meta::KindInfo& kind, const client::ObjectKey& key) {
  return "draft/" + std::string(kind.kind) + '/' + key.namespace_ + '/' + key.name;
}

void Drafts::Add(const meta::Object& object, ObjectRecord record) {
  record.uid = UidFor(*record.kind, record.key);
  const Name name{record.kind->kind, record.key};
  objects.try_emplace(name, Draft{.object = &object, .record = std::move(record)});
}

const ObjectRecord* Drafts::Find(const meta::KindInfo& kind, const client::ObjectKey& key) const {
  const auto found = objects.find(Name{kind.kind, key});
  return found == objects.end() ? nullptr : &found->second.record;
}

}  // namespace berth::scheduler
