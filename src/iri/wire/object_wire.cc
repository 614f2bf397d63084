// SPDX-License-Identifier: Apache-2.0
#include "iri/wire/common_wire.h"
#include "iri/wire/wire.h"

namespace berth::iri {

meta_pb::ObjectMetadata ToProto(const ObjectMetadata& metadata) {
  meta_pb::ObjectMetadata message;
  message.set_id(metadata.id);
  CopyTo(metadata.annotations, message.mutable_annotations());
  CopyTo(metadata.labels, message.mutable_labels());
  message.set_generation(metadata.generation);
  message.set_created_at(ToNanos(metadata.created_at));
  message.set_deleted_at(ToNanos(metadata.deleted_at));
  return message;
}

ObjectMetadata FromProto(const meta_pb::ObjectMetadata& message) {
  ObjectMetadata metadata;
  metadata.id = message.id();
  CopyFrom(message.annotations(), metadata.annotations);
  CopyFrom(message.labels(), metadata.labels);
  metadata.generation = message.generation();
  metadata.created_at = FromNanos(message.created_at());
  metadata.deleted_at = FromNanos(message.deleted_at());
  return metadata;
}

event_pb::Event ToProto(const Event& event) {
  event_pb::Event message;
  event_pb::EventSpec& spec = *message.mutable_spec();
  *spec.mutable_involved_object_meta() = ToProto(event.involved);
  spec.set_reason(event.reason);
  spec.set_message(event.message);
  spec.set_type(event.type == EventType::kWarning ? "Warning" : "Normal");
  spec.set_event_time(event.time.seconds());
  spec.set_action(event.action);
  return message;
}

Event FromProto(const event_pb::Event& message) {
  const event_pb::EventSpec& spec = message.spec();
  Event event;
  event.involved = FromProto(spec.involved_object_meta());
  event.reason = spec.reason();
  event.message = spec.message();
  event.type = spec.type() == "Warning" ? EventType::kWarning : EventType::kNormal;
  event.time = WallTime::FromSeconds(spec.event_time());
  event.action = spec.action();
  return event;
}

}  // namespace berth::iri
