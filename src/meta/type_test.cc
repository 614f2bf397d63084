// SPDX-License-Identifier: Apache-2.0
// Defends the description of structs: names, offsets, element types and container access.
#include "meta/type.h"

#include <gtest/gtest.h>

namespace berth::meta {
namespace {

struct Leaf {
  std::string name;
  std::optional<int32_t> port;
  bool operator==(const Leaf&) const = default;
};
BERTH_DESCRIBE(Leaf,
               "test.Leaf",
               "A leaf.",
               BERTH_FIELD(name, "name", "Its name.", {.required = true}),
               BERTH_FIELD(port, "port", "Its port.", {.fallback = "80"}))

struct Tree {
  std::vector<Leaf> leaves;
  std::map<std::string, std::string> labels;
  std::string mode;
  Leaf root;
};
BERTH_DESCRIBE(Tree,
               "test.Tree",
               "A tree.",
               BERTH_FIELD(leaves, "leaves", "Leaves.", {.merge_key = "name"}),
               BERTH_FIELD(labels, "labels", "Labels."),
               BERTH_FIELD(mode, "mode", "Mode.", {.values = {"On", "Off"}}),
               BERTH_FIELD(root, "root", "Root."))

TEST(TypeInfo, DescribesEveryMemberOfAStruct) {
  constexpr const TypeInfo& info = TypeInfoOf<Tree>();
  ASSERT_EQ(info.fields.size(), 4U);
  EXPECT_EQ(info.name, "test.Tree");
  EXPECT_EQ(info.fields[0].type->kind, TypeKind::kList);
  EXPECT_EQ(info.fields[0].type->element, &TypeInfoOf<Leaf>());
  EXPECT_EQ(info.fields[1].type->kind, TypeKind::kMap);
  EXPECT_EQ(info.fields[2].options.values[1], "Off");
  EXPECT_EQ(info.fields[3].offset, offsetof(Tree, root));
}

TEST(TypeInfo, ReachesContainersThroughTheirOps) {
  Tree tree;
  const auto fields = TypeInfoOf<Tree>().fields;
  void* leaves = FieldAt(&tree, fields[0]);
  auto* leaf = static_cast<Leaf*>(fields[0].type->list->append(leaves));
  leaf->name = "a";
  EXPECT_EQ(fields[0].type->list->size(leaves), 1U);
  EXPECT_EQ(tree.leaves[0].name, "a");
  const auto& port = TypeInfoOf<Leaf>().fields[1];
  EXPECT_EQ(port.type->optional->get(FieldAt(leaf, port)), nullptr);
  *static_cast<int32_t*>(port.type->optional->emplace(FieldAt(leaf, port))) = 7;
  EXPECT_EQ(tree.leaves[0].port, 7);
  *static_cast<std::string*>(fields[1].type->map->insert(FieldAt(&tree, fields[1]), "k")) = "v";
  EXPECT_EQ(tree.labels.at("k"), "v");
}

TEST(TypeInfo, AssignsAFieldOfAnyTypeByItsDescription) {
  const Tree from{.leaves = {{.name = "a", .port = 7}}, .labels = {}, .mode = "On", .root = {}};
  Tree to;
  for (const Field& field : TypeInfoOf<Tree>().fields) {
    field.type->ops->assign(FieldAt(&to, field), FieldAt(&from, field));
  }
  EXPECT_EQ(to.leaves, from.leaves);
  EXPECT_EQ(to.mode, "On");
}

}  // namespace
}  // namespace berth::meta
