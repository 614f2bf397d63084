// SPDX-License-Identifier: Apache-2.0
#include "apiserver/registry/copy_encoder.h"

#include <algorithm>
#include <array>

#include "apiserver/registry/placement_rules.h"
#include "apiserver/registry/write_parts.h"
#include "meta/at_rest.h"

namespace berth::apiserver {
namespace {

// In the place of name, UID, pool and the pool's UID. None is a part of another.
constexpr std::array<std::string_view, 4> kMarks = {
    "#copy-name#", "#copy-uid#", "#copy-pool#", "#copy-pool-uid#"};

bool HasMark(const meta::Object& object) {
  const Bytes bytes = meta::EncodeAtRest(object);
  return std::ranges::any_of(kMarks,
                             [&](std::string_view mark) { return bytes.view().contains(mark); });
}

}  // namespace

void CopyEncoder::Bind(meta::Object& copy,
                       const client::BindItem& item,
                       const std::string& mode) const {
  BecomeBound(copy, item, mode, now_);
  copy.metadata().generation = 1;
}

Result<Bytes> CopyEncoder::Seal(meta::Object& copy,
                                const client::BindItem& item,
                                const std::string& mode) {
  Bind(copy, item, mode);
  if (!is_made_ || mode_ != mode || resources_ != item.resources) MakeStencil(copy, item, mode);
  std::optional<Bytes> stamped = Stamp(copy, item);
  if (!stamped) return Encode(scheme_, copy);
  TRY_STATUS(CheckSize(scheme_, copy, *stamped));
  return *std::move(stamped);
}

void CopyEncoder::MakeStencil(const meta::Object& copy,
                              const client::BindItem& item,
                              const std::string& mode) {
  is_made_ = true;
  mode_ = mode;
  resources_ = item.resources;
  stencil_.reset();
  // Somebody wrote a mark into the object itself.
  if (HasMark(pattern_)) return;
  meta::Object marked = pattern_;
  marked.metadata().name = kMarks[0];
  marked.metadata().uid = kMarks[1];
  client::BindItem marked_item = item;
  marked_item.pool = kMarks[2];
  marked_item.pool_uid = kMarks[3];
  Bind(marked, marked_item, mode);
  stencil_.emplace(marked, kMarks);
  // What else may depend on the copy is not foreseen here; then each is encoded by itself.
  const std::optional<Bytes> stamped = Stamp(copy, item);
  if (stamped && stamped->view() != meta::EncodeAtRest(copy).view()) stencil_.reset();
}

std::optional<Bytes> CopyEncoder::Stamp(const meta::Object& copy,
                                        const client::BindItem& item) const {
  if (!stencil_) return std::nullopt;
  const std::array<std::string_view, kMarks.size()> texts = {
      copy.metadata().name, copy.metadata().uid, item.pool, item.pool_uid};
  if (!std::ranges::all_of(texts, meta::AtRestStencil::FitsIn)) return std::nullopt;
  return stencil_->Encode(copy, texts);
}

}  // namespace berth::apiserver
