// SPDX-License-Identifier: Apache-2.0
#include "app/bench/machine_template.h"

#include "apis/compute/machine.h"
#include "bench_machine_yaml.h"  // made from bench/machine.yaml by the build
#include "meta/json.h"
#include "meta/yaml.h"

namespace berth::app {

Result<MachineTemplate> MachineTemplate::Load() {
  TRY(auto value, meta::ParseYaml(kBenchMachineYaml));
  constexpr std::string_view kPlaceholder = "@NAME@";
  value.Find("metadata")->Set("name", kPlaceholder);
  value.Find("metadata")->Remove("namespace");
  const std::string json = meta::WriteJson(value);
  const size_t at = json.find(kPlaceholder);
  meta::Object object(apis::compute::kMachineKind);
  meta::TypeMeta type_meta;
  const meta::DecodeOptions options{.type_meta = &type_meta};
  TRY_STATUS(meta::FromValue(value, *object.kind().type, object.data(), options));
  return MachineTemplate(Bytes(std::string_view(json).substr(0, at)),
                         Bytes(std::string_view(json).substr(at + kPlaceholder.size())),
                         std::move(object));
}

std::vector<Bytes> MachineTemplate::Body(std::string_view name) const {
  return {Bytes::Concat({head_.view(), name, tail_.view()})};
}

}  // namespace berth::app
