// SPDX-License-Identifier: Apache-2.0
// The rules that hold for objects of every kind, as pure functions: what the server sets, what a
// writer cannot change, when the generation grows, and what keeps a deleted object.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "apiserver/identity.h"
#include "base/time.h"
#include "client/client.h"
#include "meta/object.h"
#include "meta/type.h"

namespace berth::apiserver {

// Finalizers that the garbage collector works off.
constexpr std::string_view kOrphanFinalizer = "orphan";
constexpr std::string_view kForegroundFinalizer = "foregroundDeletion";

// Copies a top-level field ("status") from another object of the same kind; no effect if the kind
// has no such field.
void CopyField(meta::Object& to, const meta::Object& from, std::string_view name);

// Whether anything but metadata and status differs.
bool DesiredStateDiffers(const meta::Object& a, const meta::Object& b);

// Makes the object a new one: identity, times and generation are the server's, status is empty.
void BecomeNew(meta::Object& object, std::string uid, WallTime now);
// A certificate request says who has sent it, whatever the sender says. No effect on other kinds.
void NoteRequestor(const Identity& sender, meta::Object& object);

// What an update may not touch comes from `current`; what the subresource does not cover, too.
void KeepWhatIsFixed(meta::Object& next,
                     const meta::Object& current,
                     client::Subresource subresource);

// Counts a change of the desired state.
void UpdateGeneration(meta::Object& next, const meta::Object& current);

// Sets the finalizer that makes the garbage collector follow `propagation`; not set: the object's
// own finalizers decide.
void SetPropagation(meta::Object& object, std::optional<client::Propagation> propagation);

// The object is asked to go. No effect if it was before.
void MarkDeleted(meta::Object& object, WallTime now);

// Whether a deleted object has to stay: it has finalizers, or it is a namespace that is not empty.
bool IsKept(const meta::Object& object);

}  // namespace berth::apiserver
