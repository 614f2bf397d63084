#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The table of rules and the tests that show them, docs/rules.md.

    rules.py --build DIR          compare the table with what ctest of that build knows; the test `rules`
    rules.py --build DIR --write  write the table
    rules.py --sources --write    the same from the sources, without a build

ctest lists the programs, each program lists its tests, and scripts are read. A test shows a rule by its name (rules.txt).
"""

import argparse
import ast
import collections
import json
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
RULES = os.path.join(ROOT, 'tools/rules/rules.txt')
TABLE = os.path.join(ROOT, 'docs/rules.md')

# P4_5 is section 4.5 of the protocol like R4_5, P4 is a rule of the poollet.
ID = r'(?:Seq\d+|S\d[a-d]?|[RP]\d+(?:_\d+)+|R\d+|P\d|G\d|(?:C|Orka)\d+|(?:D|Iron12_)\d+)'
PREFIX = re.compile(rf'((?:{ID}_)+)')
SCRIPT_PREFIX = re.compile(rf'test_((?:{ID}_)+)', re.IGNORECASE)  # Python's names are in lower case

Test = collections.namedtuple('Test', 'program name')
Rule = collections.namedtuple('Rule', 'id title missing')
Section = collections.namedtuple('Section', 'title rules')


def canonical(rule):
    rule = rule[0].upper() + rule[1:]
    rule = rule.replace('Orka', 'C').replace('Iron12_', 'D')
    rule = re.sub(r'^P(\d+_)', r'R\1', rule)
    rule = re.sub(r'^R2_4_(\d+)$', r'Seq\1', rule)
    return re.sub(r'^(Seq|C|D)0*(\d)', r'\1\2', rule)


def rules_shown_by(name):
    """The rules in a test's name: its own part, without suite or parameters."""
    found = SCRIPT_PREFIX.match(name) or PREFIX.match(name)
    return [canonical(rule) for rule in re.findall(ID, found.group(1), re.IGNORECASE)] if found else []


def read_rules(text):
    sections = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith('#'):
            continue
        if line.startswith('== '):
            sections.append(Section(line[3:].strip(), []))
        elif line[0] == ' ':
            word, _, reason = line.strip().partition(':')
            if word != 'missing' or not sections or not sections[-1].rules:
                raise SystemExit(f'rules.txt:{number}: not "missing: reason" behind a rule')
            sections[-1].rules[-1] = sections[-1].rules[-1]._replace(missing=reason.strip())
        else:
            rule, _, title = line.partition(' ')
            if not re.fullmatch(ID, rule) or not title.strip() or not sections:
                raise SystemExit(f'rules.txt:{number}: not a rule with a title')
            sections[-1].rules.append(Rule(rule, title.strip(), ''))
    return sections


# ---------------------------------------------------------------------------------------------------------------------
# What tests there are


def names_of_gtest(listing):
    """From --gtest_list_tests: Suite.Name without what an instance or a parameter adds, and Suite.Parameter for a parameter
    that shows a rule: a row of a contract's table."""
    suite = ''
    for line in listing.splitlines():
        line = line.split('#')[0].rstrip()
        if line.endswith('.') and not line.startswith(' '):
            suite = [part for part in line[:-1].split('/') if not part.isdigit()][-1]
        elif line.startswith('  ') and suite:
            name, _, parameter = line.strip().partition('/')
            yield f'{suite}.{name}'
            if rules_shown_by(parameter):
                yield f'{suite}.{parameter}'


def tests_of_build(build):
    listed = subprocess.run(['ctest', '--show-only=json-v1'], cwd=build, check=True, stdout=subprocess.PIPE, text=True)
    for test in json.loads(listed.stdout)['tests']:
        labels = [label for known in test.get('properties', []) if known['name'] == 'LABELS' for label in known['value']]
        if 'unit' not in labels:
            continue
        command = test.get('command')  # absent while the program is
        if not command:
            raise SystemExit(f'rules: the program of {test["name"]} is not built')
        listing = subprocess.run([command[0], '--gtest_list_tests'], check=True, stdout=subprocess.PIPE, text=True)
        for name in names_of_gtest(listing.stdout):
            yield Test(test['name'], name)


def sources():
    """(folder below src/, file name, text) of every .cc."""
    top = os.path.join(ROOT, 'src')
    for folder, _, files in os.walk(top):
        for file in files:
            if file.endswith('.cc'):
                with open(os.path.join(folder, file)) as source:
                    yield os.path.relpath(folder, top), file, source.read()


def rows_of_contracts(texts):
    """{type: names} of the tables in conformance/, of the rows that show a rule. Such a row is written out: T{"S6_Name", …}."""
    row = re.compile(r'\b(\w+Contract)\s*\{\s*"(\w+)"')
    rows = collections.defaultdict(list)
    for folder, _, text in texts:
        if os.path.basename(folder) == 'conformance':
            for contract, name in row.findall(text):
                if rules_shown_by(name):
                    rows[contract].append(name)
    return rows


def tests_of_sources():
    macro = re.compile(r'^(?:TYPED_TEST|TEST(?:_F|_P)?)\(\s*(\w+),\s*(\w+)\s*\)', re.MULTILINE)
    of_contract = re.compile(r'^class (\w+) : public testing::TestWithParam<(?:\w+::)*(\w+)>', re.MULTILINE)
    texts = list(sources())
    rows = rows_of_contracts(texts)
    for folder, file, text in texts:
        if file.endswith('_test.cc'):
            found = macro.findall(text)
            found += [(suite, name) for suite, contract in of_contract.findall(text) for name in rows.get(contract, ())]
            for suite, name in found:
                yield Test(folder, f'{suite}.{name}')


def tests_of_scripts():
    """What test/CMakeLists.txt registers is the same in every build."""
    with open(os.path.join(ROOT, 'test/CMakeLists.txt')) as file:
        registered = re.findall(r'berth_script_test\((\w+) \w+\s+SCRIPT \$\{CMAKE_CURRENT_SOURCE_DIR\}/(\S+\.py)',
                                file.read())
    for program, script in registered:
        with open(os.path.join(ROOT, 'test', script)) as source:
            tree = ast.parse(source.read())
        for suite in (node for node in tree.body if isinstance(node, ast.ClassDef)):
            for node in suite.body:
                if isinstance(node, ast.FunctionDef) and node.name.startswith('test_'):
                    yield Test(program, f'{suite.name}.{node.name}')


# ---------------------------------------------------------------------------------------------------------------------
# The table


def group(tests):
    """Tests by the rule that they show, each once."""
    shown = collections.defaultdict(set)
    for test in tests:
        for rule in rules_shown_by(test.name.rpartition('.')[2]):
            shown[rule].add(test)
    return shown


def render(sections, shown):
    rules = [rule for section in sections for rule in section.rules]
    missing = [rule for rule in rules if not shown.get(rule.id)]
    lines = ['# Rules and the tests that show them',
             '',
             'Made by `tools/rules/rules.py --build build/dev --write` from the list of ctest; the test `rules` fails when it is out of',
             'date or when a rule has no test. The rules are in [protocol.md](protocol.md); C rows are what orka and RIK promised, D rows are',
             'defects of IronCore. `tools/rules/rules.txt` has the list.',
             '',
             f'{len(rules)} rules, {len({t for rule in rules for t in shown.get(rule.id, ())})} tests, {len(missing)} rules '
             'without one.']
    for section in sections:
        lines += ['', f'## {section.title}', '', '| rule | | tests |', '| --- | --- | --- |']
        for rule in section.rules:
            tests = sorted(shown.get(rule.id, ()))
            cell = '<br>'.join(f'`{test.program}` {test.name}' for test in tests)
            if rule.missing and not tests:
                cell = f'**none**: {rule.missing}'
            lines.append(f'| {rule.id} | {rule.title} | {cell} |')
    return '\n'.join(lines) + '\n'


def problems_of(sections, shown):
    """Rules that nobody shows and that do not say why."""
    return [f'{rule.id} ({rule.title}) has no test' for section in sections for rule in section.rules
            if not rule.missing and not shown.get(rule.id)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument('--build', help='a build folder; its test programs are built')
    where.add_argument('--sources', action='store_true', help='read the sources instead')
    parser.add_argument('--write', action='store_true', help='write the table instead of comparing it')
    options = parser.parse_args()
    with open(RULES) as file:
        sections = read_rules(file.read())
    tests = tests_of_sources() if options.sources else tests_of_build(options.build)
    shown = group([*tests, *tests_of_scripts()])
    table, problems = render(sections, shown), problems_of(sections, shown)
    if options.write:
        with open(TABLE, 'w') as file:
            file.write(table)
    elif not os.path.exists(TABLE) or open(TABLE).read() != table:
        problems.append('docs/rules.md is out of date: tools/rules/rules.py --sources --write')
    for problem in problems:
        print(f'rules: {problem}', file=sys.stderr)
    return 1 if problems else 0


if __name__ == '__main__':
    sys.exit(main())
