# SPDX-License-Identifier: Apache-2.0
"""Whether what concurrent clients saw of an object could have happened one call after the other, each at some moment
between its begin and its end (Wing and Gong's search, with a memory of what was tried).

An object is absent or has a value; every value is written once. What names a version in the API stands for the value
that it was seen with, so nothing is believed about how versions are made.
"""

import collections
import dataclasses
import math

# A history of some hundred calls by a handful of clients takes a few thousand; 200,000 * 0.2 KiB = 40 MiB.
STATES_MAX = 200_000
ABSENT = None
IMPOSSIBLE = object()


@dataclasses.dataclass(frozen=True)
class Call:
    """One call about one object. `value` is what was read, or is written; `expected` what a write replaces, if that
    is a condition. The answer: done, conflict (it is not as expected), exists, absent, or unknown."""

    key: str
    action: str  # read, create, update, delete
    answer: str
    begun: float
    ended: float
    value: str = ABSENT
    expected: str = ABSENT
    client: str = ''
    version: str = ''  # of what was read or written; '' if it was not told

    def after(self, state):
        """The state that it leaves, or IMPOSSIBLE if this is no answer in this state. Of an unknown answer: if it
        does what it was to do."""
        is_expected = state == self.expected or (self.action == 'delete' and self.expected is ABSENT)
        if self.action == 'read':
            return state if state == self.value else IMPOSSIBLE
        if self.answer == 'absent':
            return ABSENT if state is ABSENT else IMPOSSIBLE
        if self.answer == 'exists':
            return IMPOSSIBLE if state is ABSENT else state
        if self.answer == 'conflict':
            return IMPOSSIBLE if state is ABSENT or is_expected else state
        if self.action == 'create':
            return self.value if state is ABSENT else IMPOSSIBLE
        if state is ABSENT or not is_expected:
            return IMPOSSIBLE
        return ABSENT if self.action == 'delete' else self.value

    def __str__(self):
        ended = '' if math.isinf(self.ended) else f'{self.ended:.6f}'
        replaced = f' of {self.expected}' if self.expected is not ABSENT else ''
        return (f'{self.begun:.6f}..{ended} {self.client}: {self.action} {self.key}{replaced}: '
                f'{self.answer} {self.value or ""} {self.version}')


def violations(history):
    """Empty, or a text for each object whose calls cannot have happened."""
    by_key = collections.defaultdict(list)
    for call in history:
        by_key[call.key].append(call)
    found = [_order(calls) for _, calls in sorted(by_key.items())]
    return [text for text in found if text] + _versions(history)


def _versions(history):
    """A version is of one value, and a value has one version."""
    found = []
    for one, other in (('version', 'value'), ('value', 'version')):
        seen = {}
        for call in history:
            if call.version and call.value is not ABSENT:
                name, fact = (call.key, getattr(call, one)), getattr(call, other)
                if seen.setdefault(name, fact) != fact:
                    found.append(f'{one} {name} has two: {seen[name]} and {fact}')
    return found


class _Search:
    """Of one object. A state of the search is who had his turn, as bits, and the object's state then."""

    def __init__(self, calls):
        # Those with an answer, by their begin; then those that may have their turn at any time, or never.
        self.calls = sorted(calls, key=lambda call: (call.answer == 'unknown', call.begun))
        self.known = sum(call.answer != 'unknown' for call in calls)
        self.all = (1 << self.known) - 1
        self.seen = {(0, ABSENT)}
        self.furthest = 0

    def next(self, had, state):
        """Those whose turn may be next: nobody who has not had his ended before they began."""
        left = self.all & ~had
        first, first_end, turns = (left & -left).bit_length() - 1, math.inf, []
        for i in range(first, self.known):
            if self.calls[i].begun > first_end:
                break
            if left >> i & 1:
                first_end = min(first_end, self.calls[i].ended)
                turns.append(i)
        turns += [i for i in range(self.known, len(self.calls)) if not had >> i & 1]
        for i in turns:
            then = self.calls[i].after(state) if self.calls[i].begun <= first_end else IMPOSSIBLE
            if then is not IMPOSSIBLE:
                yield had | 1 << i, then

    def run(self):
        todo = [(0, ABSENT)]
        while todo:
            had, state = todo.pop()
            if had & self.all == self.all:
                return True
            if (had & self.all).bit_count() > (self.furthest & self.all).bit_count():
                self.furthest = had
            new = [found for found in self.next(had, state) if found not in self.seen]
            self.seen.update(new)
            todo.extend(reversed(new))  # who began first, first: mostly that is how it was
            if len(self.seen) > STATES_MAX:
                raise AssertionError(f'{self.calls[0].key}: not decided after {STATES_MAX} states of the search')
        return False


def _order(calls):
    """'' if there is an order, else how far the search came and what could not follow."""
    search = _Search(calls)
    if search.run():
        return ''
    left = [str(call) for i, call in enumerate(search.calls) if not search.furthest >> i & 1]
    done = [str(call) for i, call in enumerate(search.calls) if search.furthest >> i & 1]
    return '\n  '.join([f'{calls[0].key}: no order of its {len(calls)} calls is possible; the longest ends with',
                        *done[-8:], 'and none of these can follow', *left[:8]])
