"""Many rounds in a few worlds beside each other, and the table of what came of them.

While one world waits for a time limit to pass, another one uses the machine.
"""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from tests.chaos.refunds import Outside
from tests.chaos.round import Played, chain_fault_of, play, record_fault_of
from tests.chaos.scenario import scenario
from tests.chaos.world import World


class Campaign:
    """Plays rounds; what happened after a round's end counts too, so effects are counted again at the end of all."""

    def __init__(self, folder: Path, *, seed: int, worlds: int) -> None:
        self._folder = folder
        self._seed = seed
        self._worlds = worlds

    async def play(self, numbers: Sequence[int], tell: Callable[[Played], None]) -> list[Played]:
        """Play the rounds of these numbers; each is told when it is over, as it is then."""
        coming = iter(numbers)
        tasks = [self._in_one_world(number, coming, tell) for number in range(min(self._worlds, len(numbers)))]
        return [played for results in await asyncio.gather(*tasks) for played in results]

    async def _in_one_world(self, number: int, coming: Iterator[int], tell: Callable[[Played], None]) -> list[Played]:
        world = World(self._folder / f"world-{number}", Outside(self._folder / f"outside-{number}"))
        played = []
        try:
            await world.open()
            for each in coming:
                one = await play(world, scenario(each, self._seed))
                tell(one)
                played.append(one)
            chain_fault = await asyncio.to_thread(chain_fault_of, world)
            return [_looked_at_again(world, one, chain_fault) for one in played]
        finally:
            world.close()


def _looked_at_again(world: World, played: Played, chain_fault: str) -> Played:
    """The round as it stands by now: nothing may have happened since its end."""
    effects = world.outside.effects(played.operation)
    fault = played.audit_fault or chain_fault or record_fault_of(world, played.operation, effects)
    return replace(played, effects=effects, audit_fault=fault)


def table(rounds: Sequence[Played]) -> list[str]:
    """One line for each part at each point or fault, and the sum as the last one."""
    rows: defaultdict[tuple[str, str], list[Played]] = defaultdict(list)
    for played in rounds:
        rows[played.scenario.part or "nothing", played.scenario.where].append(played)
    width = max(len(where) for _, where in rows)
    lines = [f"{'killed':<9} {'where':<{width}} rounds struck refunds messages ends"]
    for (part, where), of_row in sorted(rows.items()):
        ends = Counter(f"{one.scenario.course}:{one.end}" for one in of_row)
        struck, happened = sum(one.struck for one in of_row), [one.effects for one in of_row]
        refunds, messages = (sum(counts) for counts in zip(*happened, strict=True))
        counts = f"{len(of_row):6} {struck:6} {refunds:7} {messages:8}"
        lines.append(
            f"{part:<9} {where:<{width}} {counts} {', '.join(f'{n} {end}' for end, n in sorted(ends.items()))}"
        )
    return [*lines, total(rounds)]


def total(rounds: Sequence[Played]) -> str:
    """The line that says it all."""
    double, lost = sum(one.is_double for one in rounds), sum(one.is_lost for one in rounds)
    invalid = sum(bool(one.audit_fault) for one in rounds)
    return f"chaos rounds={len(rounds)} double={double} lost={lost} audit_invalid={invalid}"
