# SPDX-License-Identifier: Apache-2.0
"""The generator of the table of rules, on lists made up here."""

import os
import tempfile
import unittest
import unittest.mock

import rules

TEXT = '''# comment
== Scheduler
S1   one asks
S3a  the object is the one
C2   in order
     missing: nobody wrote it
'''


class Rules(unittest.TestCase):
    def test_a_name_says_which_rules_it_shows(self):
        cases = {
            'S1_OnlyOneAsks': ['S1'],
            'S3a_S3d_Both': ['S3a', 'S3d'],
            'C02_Seq08_LeadingZeros': ['C2', 'Seq8'],
            'R3_3_1_AStep': ['R3_3_1'],
            'R3_4_R3_6_TwoSections': ['R3_4', 'R3_6'],
            'test_C37_after_a_crash': ['C37'],
            'test_seq20_s3a_c4_in_lower_case': ['Seq20', 'S3a', 'C4'],
            'test_5_in_order': [],
            'test_streams_end': [],
            'c4_no_test': [],
            'P4_5_ASectionOfTheProtocol': ['R4_5'],
            'R2_4_21_ASequence': ['Seq21'],
            'P4_ARuleOfThePoollet': ['P4'],
            'Orka12_Iron12_7_OtherSpellings': ['C12', 'D7'],
            'Sha256IsAFunction': [],
            'AMachineC4_InTheMiddle': [],
            'P33_NoSuchRule': [],
        }
        for name, shown in cases.items():
            self.assertEqual(rules.rules_shown_by(name), shown, name)

    def test_programs_list_their_tests(self):
        listing = ('Running main\nBinding.\n  S1_A\n  S2_B\nAll/Contract.\n  G1_C/0  # GetParam() = 1\n  G1_C/1\n'
                   'Typed/0.  # TypeParam = int\n  P1_D\n')
        self.assertEqual(list(rules.names_of_gtest(listing)),
                         ['Binding.S1_A', 'Binding.S2_B', 'Contract.G1_C', 'Contract.G1_C', 'Typed.P1_D'])

    def test_a_row_of_a_contract_is_a_test_of_each_program_that_keeps_it(self):
        listing = ('Fake/FakeContract.\n  Holds/AnOfferReachesItsHost  # GetParam() = x\n'
                   '  Holds/S6_Seq15_Late  # GetParam() = y\nPackings/Unpack.\n  P9_CutShort/gzip\n')
        self.assertEqual(list(rules.names_of_gtest(listing)),
                         ['FakeContract.Holds', 'FakeContract.Holds', 'FakeContract.S6_Seq15_Late', 'Unpack.P9_CutShort'])
        files = {
            'fleet/conformance/contract.cc': 'FleetContract{"S6_Seq15_Late", &Late},\n  FleetContract { "S1_Other",\n&O },\n'
                                             'FleetContract{"AnOfferReachesItsHost", &Offer},',
            'fleet/other/other.cc': 'FleetContract{"S2_NotInATable", &No}',
            'fleet/fake/fake_test.cc': 'class FakeContract : public testing::TestWithParam<fleet::FleetContract> {};\n'
                                       'TEST_P(FakeContract, Holds) {\n',
            'image/unpack_test.cc': 'class Unpack : public testing::TestWithParam<Case> {\n',
        }
        with tempfile.TemporaryDirectory() as root, unittest.mock.patch.object(rules, 'ROOT', root):
            for path, text in files.items():
                path = os.path.join(root, 'src', path)
                os.makedirs(os.path.dirname(path), exist_ok=True)
                with open(path, 'w') as file:
                    file.write(text)
            self.assertEqual(sorted(rules.tests_of_sources()),
                             [rules.Test('fleet/fake', 'FakeContract.Holds'),
                              rules.Test('fleet/fake', 'FakeContract.S1_Other'),
                              rules.Test('fleet/fake', 'FakeContract.S6_Seq15_Late')])

    def test_a_rule_without_a_test_is_a_problem_unless_it_says_so(self):
        sections = rules.read_rules(TEXT)
        shown = rules.group([rules.Test('a', 'T.S1_X'), rules.Test('b', 'T.S1_Y')])
        self.assertEqual(rules.problems_of(sections, shown), ['S3a (the object is the one) has no test'])
        shown = rules.group([rules.Test('a', 'T.S1_S3a_X'), rules.Test('a', 'T.C2_Y')])
        self.assertEqual(rules.problems_of(sections, shown), [])
        self.assertIn('`a` T.C2_Y', rules.render(sections, shown), 'C2 is not missing any more')

    def test_the_table_names_program_and_test(self):
        sections = rules.read_rules(TEXT)
        table = rules.render(sections, rules.group([rules.Test('net/h2', 'T.S1_X')]))
        self.assertIn('| S1 | one asks | `net/h2` T.S1_X |', table)
        self.assertIn('| C2 | in order | **none**: nobody wrote it |', table)
        self.assertIn('3 rules, 1 tests, 2 rules without one.', table)

    def test_a_list_that_cannot_be_read_is_refused(self):
        for text in ('S1 before any heading', '== H\nX9 no such id', '== H\nS1', '== H\n  missing: of nothing'):
            with self.assertRaises(SystemExit):
                rules.read_rules(text)


if __name__ == '__main__':
    unittest.main()
