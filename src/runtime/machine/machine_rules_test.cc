// SPDX-License-Identifier: Apache-2.0
// What libvirt is told and what comes back from it: pure rules, as tables.
#include <gtest/gtest.h>

#include <functional>

#include "iri/labels.h"
#include "runtime/machine/domain_xml.h"
#include "runtime/machine/machine_record.h"
#include "runtime/machine/xml_writer.h"

namespace berth::runtime {
namespace {

DomainPlan Plan() {
  DomainPlan plan;
  plan.name = "berth-m-1";
  plan.uuid = "6f0c9a1e-0000-4000-8000-000000000001";
  plan.cpus = 2;
  plan.memory_bytes = int64_t{128} << 20;
  plan.console_socket = "/run/m-1/console.sock";
  plan.console_log = "/run/m-1/console.log";
  plan.record = "{}";
  return plan;
}

DomainDisk Disk(const std::string& target = "vda") {
  DomainDisk disk;
  disk.target = target;
  disk.serial = "data";
  disk.file = {.path = "/disks/v-1/disk.qcow2", .format = DiskFormat::kQcow2};
  return disk;
}

bool Has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

TEST(XmlText, IsWellFormedWhateverItIsGiven) {
  const struct {
    std::string_view text;
    std::string_view xml;
  } kCases[] = {
      {"plain", "plain"},
      {"<a b='c' d=\"e\">&", "&lt;a b=&apos;c&apos; d=&quot;e&quot;&gt;&amp;"},
      {"]]>", "]]&gt;"},
      {"a\tb\nc\rd", "a&#9;b&#10;c&#13;d"},
      {{"\0\x1b[31m", 6}, "\xEF\xBF\xBD\xEF\xBF\xBD[31m"},
      {"\xff\xfe", "\xEF\xBF\xBD\xEF\xBF\xBD"},
      {"\xEF\xBF\xBF!", "\xEF\xBF\xBD!"},
      {"gr\xC3\xBC\xC3\x9F", "gr\xC3\xBC\xC3\x9F"},
  };
  for (const auto& c : kCases) EXPECT_EQ(XmlText(c.text), c.xml) << c.xml;
}

TEST(XmlText, SaysWhatComesBackAsItIs) {
  EXPECT_TRUE(IsXmlText("a\n<&\xC3\xBC"));
  for (const std::string_view text : {std::string_view("\0", 1),
                                      std::string_view("\x1b"),
                                      std::string_view("\xff"),
                                      std::string_view("\xEF\xBF\xBE")}) {
    EXPECT_FALSE(IsXmlText(text));
  }
}

TEST(DomainXml, P9_NeverLeavesAFormatToBeGuessed) {
  for (const DiskFormat format : {DiskFormat::kQcow2, DiskFormat::kRaw, DiskFormat::kLuks}) {
    DomainDisk disk = Disk();
    disk.file.format = format;
    if (format == DiskFormat::kLuks) disk.secret_uuid = Plan().uuid;
    const std::string xml = DiskXml(disk);
    const bool is_qcow2 = format == DiskFormat::kQcow2;
    EXPECT_TRUE(Has(xml, is_qcow2 ? "type=\"qcow2\"" : "type=\"raw\"")) << xml;
    EXPECT_EQ(Has(xml, "<encryption format=\"luks\"><secret type=\"passphrase\" uuid=\"6f0c"),
              format == DiskFormat::kLuks);
  }
}

TEST(DomainXml, ADiskHasItsNameItsSerialAndTheLimitsOfItsClass) {
  DomainDisk disk = Disk("vdb");
  EXPECT_FALSE(Has(DiskXml(disk), "iotune"));
  disk.tps = 1000;
  disk.iops = 50;
  EXPECT_EQ(DiskXml(disk),
            "<disk type=\"file\" device=\"disk\">"
            "<driver name=\"qemu\" type=\"qcow2\" discard=\"unmap\"/>"
            "<source file=\"/disks/v-1/disk.qcow2\"/>"
            "<target dev=\"vdb\" bus=\"virtio\"/>"
            "<iotune><total_bytes_sec>1000</total_bytes_sec>"
            "<total_iops_sec>50</total_iops_sec></iotune>"
            "<serial>data</serial></disk>");
  disk.access = DomainDisk::Access::kReadOnly;
  EXPECT_TRUE(Has(DiskXml(disk), "<readonly/>"));
}

TEST(DomainXml, AnInterfaceIsPluggedInWhereItsNetworkIs) {
  DomainNic nic;
  nic.source = "br-1";
  nic.mac = "52:54:00:00:00:01";
  EXPECT_TRUE(Has(NicXml(nic), "<interface type=\"bridge\"><source bridge=\"br-1\"/>"));
  nic.filter = "clean-traffic";
  EXPECT_TRUE(Has(NicXml(nic), "<filterref filter=\"clean-traffic\"/>"));
  nic.kind = DomainNic::Kind::kNetwork;
  EXPECT_TRUE(Has(NicXml(nic), "<source network=\"br-1\"/>"));
  nic.kind = DomainNic::Kind::kTap;
  nic.device = "tap0";
  EXPECT_TRUE(Has(NicXml(nic), "<target dev=\"tap0\" managed=\"no\"/>"));
}

TEST(DomainXml, BootsTheFirstWritableDiskUnlessAKernelIsGiven) {
  DomainPlan plan = Plan();
  DomainDisk seed = Disk(std::string(kSeedTarget));
  seed.access = DomainDisk::Access::kReadOnly;
  plan.disks = {seed, Disk("vda"), Disk("vdb")};
  const std::string from_disk = DomainXml(plan);
  const size_t first = from_disk.find("<boot order=\"1\"/>");
  ASSERT_NE(first, std::string::npos);
  EXPECT_EQ(from_disk.find("<boot", first + 1), std::string::npos);
  EXPECT_GT(first, from_disk.find("\"vda\""));
  EXPECT_LT(first, from_disk.find("\"vdb\""));
  plan.kernel = KernelBoot{.kernel = "/k", .initramfs = "/i", .command_line = "console=ttyS0 a<b"};
  const std::string from_kernel = DomainXml(plan);
  EXPECT_FALSE(Has(from_kernel, "<boot"));
  EXPECT_TRUE(Has(from_kernel,
                  "<kernel>/k</kernel><initrd>/i</initrd>"
                  "<cmdline>console=ttyS0 a&lt;b</cmdline>"));
}

TEST(DomainXml, NamesFirmwareProcessorMemoryConsoleAndIgnition) {
  DomainPlan plan = Plan();
  plan.acceleration = Acceleration::kKvm;
  plan.efi = EfiFirmware{.code = "/code", .variables_template = "/vars", .variables = "/m-1/vars"};
  plan.ignition_file = "/run/m-1/ignition";
  const std::string xml = DomainXml(plan);
  for (const std::string_view part :
       {"<domain type=\"kvm\">",
        "<cpu mode=\"host-passthrough\"/>",
        "<vcpu>2</vcpu>",
        "<memory unit=\"bytes\">134217728</memory>",
        "<loader readonly=\"yes\" type=\"pflash\">/code</loader>",
        "<nvram template=\"/vars\">/m-1/vars</nvram>",
        "<serial type=\"unix\"><source mode=\"bind\" path=\"/run/m-1/console.sock\"/>"
        "<log file=\"/run/m-1/console.log\" append=\"on\"/>",
        "<entry name=\"opt/com.coreos/config\" file=\"/run/m-1/ignition\"/>",
        "<on_crash>destroy</on_crash>"}) {
    EXPECT_TRUE(Has(xml, part)) << part << "\n" << xml;
  }
  plan.acceleration = Acceleration::kTcg;
  EXPECT_TRUE(Has(DomainXml(plan), "<domain type=\"qemu\">"));
}

TEST(DomainXml, AnAgentHasALineThatLibvirtDoesNotTake) {
  DomainPlan plan = Plan();
  EXPECT_FALSE(Has(DomainXml(plan), "virtio-serial"));
  plan.agent_socket = "/run/m-1/agent.sock";
  ASSERT_TRUE(CheckPlan(plan).ok());
  const std::string xml = DomainXml(plan);
  for (const std::string_view part :
       {"<controller type=\"virtio-serial\" index=\"0\"><address type=\"pci\" bus=\"0\" "
        "slot=\"31\"/></controller>",
        "<channel type=\"unix\"><source mode=\"bind\" path=\"/run/m-1/agent.sock\"/>"
        "<target type=\"virtio\" name=\"dev.berth.agent.0\"/><alias name=\"ua-agent\"/></channel>",
        "<qemu:device alias=\"ua-agent\"><qemu:frontend><qemu:property name=\"name\" "
        "type=\"string\" value=\"org.qemu.guest_agent.0\"/></qemu:frontend></qemu:device>"}) {
    EXPECT_TRUE(Has(xml, part)) << part << "\n" << xml;
  }
}

TEST(DomainXml, HostileNamesStayText) {
  DomainPlan plan = Plan();
  plan.title = "a</title><devices>\n\x1b[2J";
  plan.disks = {Disk()};
  plan.disks[0].file.path = "/d/'\"/><evil & co.qcow2";
  ASSERT_TRUE(CheckPlan(plan).ok());
  const std::string xml = DomainXml(plan);
  EXPECT_TRUE(Has(xml, "<title>a&lt;/title&gt;&lt;devices&gt;\\n\\x1b[2J</title>")) << xml;
  EXPECT_TRUE(Has(xml, "file=\"/d/&apos;&quot;/&gt;&lt;evil &amp; co.qcow2\"")) << xml;
}

TEST(DomainXml, WhatWouldBeTakenForSomethingElseIsRefused) {
  const struct {
    std::string_view says;
    std::function<void(DomainPlan&)> spoil;
  } kCases[] = {
      {"name", [](DomainPlan& p) { p.name = "a/b"; }},
      {"uuid", [](DomainPlan& p) { p.uuid = "no"; }},
      {"cpus 0", [](DomainPlan& p) { p.cpus = 0; }},
      {"memory 0", [](DomainPlan& p) { p.memory_bytes = 0; }},
      {"console socket", [](DomainPlan& p) { p.console_socket = "relative"; }},
      {"agent socket", [](DomainPlan& p) { p.agent_socket = "relative"; }},
      {"kernel",
       [](DomainPlan& p) {
         p.kernel = KernelBoot{.kernel = "k", .initramfs = {}, .command_line = {}};
       }},
      {"command line",
       [](DomainPlan& p) {
         p.kernel = KernelBoot{.kernel = "/k", .initramfs = {}, .command_line = "\x01"};
       }},
      {"absolute path", [](DomainPlan& p) { p.disks[0].file.path = "/a\nb"; }},
      {"absolute path", [](DomainPlan& p) { p.disks[0].file.path = "json:{}"; }},
      {"serial", [](DomainPlan& p) { p.disks[0].serial = "a,b"; }},
      {"serial", [](DomainPlan& p) { p.disks[0].serial = std::string(21, 'a'); }},
      {"has a secret", [](DomainPlan& p) { p.disks[0].file.format = DiskFormat::kLuks; }},
      {"taken", [](DomainPlan& p) { p.disks.push_back(p.disks[0]); }},
      {"target", [](DomainPlan& p) { p.disks[0].target = "sda"; }},
      {"17 disks", [](DomainPlan& p) { p.disks.resize(kDomainDisksMax + 1); }},
      {"9 interfaces", [](DomainPlan& p) { p.nics.resize(kDomainNicsMax + 1); }},
      {"interface", [](DomainPlan& p) { p.nics.resize(1); }},
  };
  for (const auto& c : kCases) {
    DomainPlan plan = Plan();
    plan.disks = {Disk()};
    ASSERT_TRUE(CheckPlan(plan).ok());
    c.spoil(plan);
    const Status refused = CheckPlan(plan);
    EXPECT_EQ(refused.reason(), Reason::kBadRequest) << c.says;
    EXPECT_NE(refused.message().find(c.says), std::string_view::npos) << refused;
  }
}

TEST(DomainXml, P9_ASecretIsPrivateAndInMemoryOnly) {
  EXPECT_EQ(SecretXml("u-1", "a<b"),
            "<secret ephemeral=\"yes\" private=\"yes\"><uuid>u-1</uuid>"
            "<description>a&lt;b</description></secret>");
}

TEST(DomainXml, TheRecordComesBackFromTheMetadata) {
  DomainPlan plan = Plan();
  plan.record = std::string("\0<record>\xff", 10);
  const std::string xml = DomainXml(plan);
  const size_t begin = xml.find("<berth:machine");
  const size_t end = xml.find("</metadata>");
  const auto record = RecordInMetadata(xml.substr(begin, end - begin));
  ASSERT_TRUE(record.ok()) << record.status();
  EXPECT_EQ(*record, plan.record);
  EXPECT_EQ(*RecordInMetadata("<machine xmlns=\"x\">\n  aGk=\n</machine>"), "hi");
  for (const std::string_view text : {"", "<a/>", "<a></a>", "<a>***</a>", "aGk="}) {
    EXPECT_EQ(RecordInMetadata(text).status().reason(), Reason::kBadRequest) << text;
  }
}

TEST(DeviceNames, AreThoseOfTheInterfaceWithAnotherFirstLetter) {
  EXPECT_EQ(*TargetOf("oda"), "vda");
  EXPECT_EQ(*TargetOf("ody"), "vdy");
  for (const std::string_view device : {"", "odz", "od", "odaa", "vda", "od1"}) {
    EXPECT_EQ(TargetOf(device).status().reason(), Reason::kBadRequest) << device;
  }
}

TEST(DeviceNames, ASerialIsTheNameOrStandsForIt) {
  EXPECT_EQ(SerialOf("data-1.x_y"), "data-1.x_y");
  const std::string long_one = SerialOf("a-name-of-more-than-twenty-bytes");
  EXPECT_LE(long_one.size(), kSerialBytesMax);
  EXPECT_TRUE(long_one.starts_with("a-name-of-")) << long_one;
  EXPECT_NE(long_one, SerialOf("a-name-of-more-than-twenty-Bytes"));
  for (const std::string_view name : {"", "a b", "\x1b,<", "gr\xC3\xBC\xC3\x9F"}) {
    EXPECT_TRUE(IsPlainName(SerialOf(name))) << SerialOf(name);
    EXPECT_LE(SerialOf(name).size(), kSerialBytesMax);
    EXPECT_FALSE(SerialOf(name).empty());
  }
}

TEST(DeviceNames, AddressesAndUuidsAreAlwaysTheSame) {
  EXPECT_EQ(MacOf("a"), MacOf("a"));
  EXPECT_NE(MacOf("a"), MacOf("b"));
  EXPECT_TRUE(MacOf("a").starts_with("52:54:"));
  EXPECT_EQ(MacOf("a").size(), 17U);
  EXPECT_EQ(UuidOf("a"), UuidOf("a"));
  EXPECT_NE(UuidOf("a"), UuidOf("b"));
  EXPECT_EQ(UuidOf("a").size(), 36U);
  EXPECT_EQ(UuidOf("a")[14], '8');
}

MachineRecord Record() {
  MachineRecord record;
  record.owner = "/var/lib/berth/machines";
  iri::ObjectMetadata& metadata = record.object.metadata;
  metadata.id = "m-1";
  metadata.labels = {{std::string(iri::kMachineUidLabel), "u-1"}, {"odd", "<&\x1b\n"}};
  metadata.annotations = {{"note", "]]>"}};
  metadata.generation = 3;
  metadata.created_at = WallTime::FromSeconds(1000);
  record.object.spec.power = iri::Power::kOff;
  record.object.spec.class_name = "small";
  record.object.spec.hostname = "web";
  iri::MachineVolume volume;
  volume.name = "data";
  volume.device = "oda";
  volume.connection.emplace();
  volume.connection->driver = "file";
  volume.connection->attributes = {{"path", "/d"}};
  record.object.spec.volumes = {volume};
  record.resources = {{"cpu", 1000}, {"memory", 1 << 20}};
  record.started_in = "boot-1";
  record.end = {.kind = GuestEnd::Kind::kFailed,
                .reason = "Crashed",
                .message = "it is dead",
                .time = WallTime::FromSeconds(2000)};
  return record;
}

TEST(MachineRecord, ComesBackWhole) {
  const MachineRecord record = Record();
  const auto back = MachineRecordOf(ToText(record));
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(*back, record);
}

TEST(MachineRecord, OfAnotherVersionOrShapeIsRefused) {
  const std::string whole = ToText(Record());
  const struct {
    std::string_view part;
    std::string_view instead;
  } kCases[] = {{"\"version\":1", "\"version\":2"},
                {"\"machine\":", "\"other\":"},
                {"\"id\":\"m-1\"", "\"id\":\"\""},
                {"\"failed\"", "\"exploded\""},
                {"\"cpu\":1000", "\"cpu\":-1"}};
  for (const auto& c : kCases) {
    std::string text = whole;
    const size_t at = text.find(c.part);
    ASSERT_NE(at, std::string::npos) << c.part << " in " << whole;
    text.replace(at, c.part.size(), c.instead);
    EXPECT_EQ(MachineRecordOf(text).status().reason(), Reason::kBadRequest) << c.part;
  }
  EXPECT_FALSE(MachineRecordOf("").ok());
}

TEST(MachineRecord, P9_SecretsAreTakenOutAndPutBackWhereTheirPartsStillAre) {
  iri::MachineSpec spec = Record().object.spec;
  EXPECT_FALSE(HasSecrets(spec));
  spec.ignition_data = "top";
  spec.volumes[0].connection->encryption_data = {{"encryptionKey", "secret"}};
  spec.volumes.push_back(spec.volumes[0]);
  spec.volumes[1].name = "other";
  const iri::MachineSpec whole = spec;
  EXPECT_TRUE(HasSecrets(spec));
  const iri::MachineSpec secrets = TakeSecrets(spec);
  EXPECT_FALSE(HasSecrets(spec));
  EXPECT_EQ(WithSecrets(spec, secrets), whole);
  spec.volumes.erase(spec.volumes.begin());
  EXPECT_EQ(WithSecrets(spec, secrets).volumes[0], whole.volumes[1]);
}

}  // namespace
}  // namespace berth::runtime
