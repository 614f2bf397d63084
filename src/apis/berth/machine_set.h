// SPDX-License-Identifier: Apache-2.0
// MachineSet: so many machines of one kind, kept at that number.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "apis/compute/machine.h"
#include "meta/kind.h"
#include "meta/label_selector.h"

namespace berth::apis::berth_dev {

inline constexpr std::string_view kNamesRandom = "Random";
inline constexpr std::string_view kNamesOrdinal = "Ordinal";

// On a machine of a set: which template it was made from.
inline constexpr std::string_view kTemplateHashLabel = "berth.dev/template-hash";

// One set has at most this many machines: each is an object of its own.
inline constexpr int32_t kReplicasMax = 100'000;

struct MachineTemplate {
  meta::ObjectMeta metadata;
  compute::MachineSpec spec;
};
BERTH_DESCRIBE(MachineTemplate,
               "dev.berth.api.v1alpha1.MachineTemplate",
               "What every machine of the set looks like.",
               BERTH_FIELD(metadata, "metadata", "Labels and annotations of the machines."),
               BERTH_FIELD(spec, "spec", "Spec of the machines."))

struct RollingUpdate {
  std::optional<int32_t> max_unavailable;
  std::optional<int32_t> max_surge;
  bool operator==(const RollingUpdate&) const = default;
};
BERTH_DESCRIBE(RollingUpdate,
               "dev.berth.api.v1alpha1.RollingUpdate",
               "How machines of an old template are replaced.",
               BERTH_FIELD(max_unavailable,
                           "maxUnavailable",
                           "How many of the wanted machines may be missing meanwhile; 0 unless "
                           "said otherwise."),
               BERTH_FIELD(max_surge,
                           "maxSurge",
                           "How many machines more than wanted there may be meanwhile; 1 unless "
                           "said otherwise."))

struct SetStrategy {
  std::optional<RollingUpdate> rolling_update;
  bool operator==(const SetStrategy&) const = default;
};
BERTH_DESCRIBE(SetStrategy,
               "dev.berth.api.v1alpha1.SetStrategy",
               "How the set follows a new template.",
               BERTH_FIELD(rolling_update,
                           "rollingUpdate",
                           "Step by step, with so many missing or too many at a time."))

struct DisruptionBudget {
  std::optional<int32_t> max_unavailable;
  bool operator==(const DisruptionBudget&) const = default;
};
BERTH_DESCRIBE(DisruptionBudget,
               "dev.berth.api.v1alpha1.DisruptionBudget",
               "How much of the set may be stopped for something more important.",
               BERTH_FIELD(max_unavailable,
                           "maxUnavailable",
                           "How many of the machines may be without a place at a time.",
                           {.required = true}))

struct MachineSetSpec {
  std::optional<int32_t> replicas;
  meta::LabelSelector selector;
  MachineTemplate machine_template;
  std::optional<SetStrategy> strategy;
  std::string names;
  std::string on_pool_loss;
  std::optional<DisruptionBudget> disruption_budget;
};
BERTH_DESCRIBE(
    MachineSetSpec,
    "dev.berth.api.v1alpha1.MachineSetSpec",
    "The machines wanted.",
    BERTH_FIELD(replicas, "replicas", "How many; 1 unless said otherwise.", {.fallback = "1"}),
    BERTH_FIELD(selector,
                "selector",
                "Labels that the machines of the set have; must match the template. Cannot change.",
                {.required = true}),
    BERTH_FIELD(machine_template,
                "template",
                "What every machine of the set looks like.",
                {.required = true}),
    BERTH_FIELD(strategy, "strategy", "How the set follows a new template."),
    BERTH_FIELD(names,
                "names",
                "Random (also when empty): NAME-x7k2p. Ordinal: NAME-0, NAME-1, and so on, each "
                "used again when its machine is gone.",
                {.values = {"Random", "Ordinal"}}),
    BERTH_FIELD(on_pool_loss,
                "onPoolLoss",
                "When the pool of a machine is lost. Replace: another machine takes over, and the "
                "old one goes when its host returns; this is the default unless the machines own "
                "volumes. Keep, Move: as for a single machine.",
                {.values = {"Replace", "Keep", "Move"}}),
    BERTH_FIELD(disruption_budget,
                "disruptionBudget",
                "How much of the set preemption may stop at a time; absent: everything."))

struct MachineSetStatus {
  int32_t replicas = 0;
  int32_t ready = 0;
  int32_t updated = 0;
  int64_t observed_generation = 0;
  std::string selector;
  bool operator==(const MachineSetStatus&) const = default;
};
BERTH_DESCRIBE(MachineSetStatus,
               "dev.berth.api.v1alpha1.MachineSetStatus",
               "The machines that there are.",
               BERTH_FIELD(replicas, "replicas", "How many there are.", {.always = true}),
               BERTH_FIELD(ready, "ready", "How many of them run."),
               BERTH_FIELD(updated, "updated", "How many of them follow the present template."),
               BERTH_FIELD(observed_generation,
                           "observedGeneration",
                           "Generation of the set that was last acted on."),
               BERTH_FIELD(selector,
                           "selector",
                           "The selector as text, for kubectl scale.",
                           {.longest = meta::kNoLimit}))

struct MachineSet {
  meta::ObjectMeta metadata;
  MachineSetSpec spec;
  MachineSetStatus status;
};
BERTH_DESCRIBE(MachineSet,
               "dev.berth.api.v1alpha1.MachineSet",
               "So many machines of one kind, kept at that number.",
               BERTH_FIELD(metadata, "metadata", "Name, labels and the rest."),
               BERTH_FIELD(spec, "spec", "The machines wanted."),
               BERTH_FIELD(status, "status", "The machines that there are; written by the system."))

extern const meta::KindInfo kMachineSetKind;
inline const meta::KindInfo& BerthKind(meta::Tag<MachineSet>) { return kMachineSetKind; }

// The policy for lost pools, with what absent means: Replace, or Keep for machines with volumes
// that are theirs alone.
std::string_view OnPoolLossOf(const MachineSetSpec& spec);

}  // namespace berth::apis::berth_dev
