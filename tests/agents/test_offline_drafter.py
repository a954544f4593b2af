"""The offline drafter writes a report about any dataset that the deterministic checks have nothing to say against."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from countersign.agents.drafting import DeepAgentDrafter
from countersign.agents.grading import RubricGrader
from countersign.agents.models import ModelSettings, grade_model
from countersign.agents.offline_wording import EN, WORDING, ZH
from countersign.agents.report import REPORT_AGENT
from countersign.cases.case import read_draft
from countersign.cases.report.case import task_of
from countersign.cases.report.checks import check_draft
from countersign.cases.report.claims import Reading
from countersign.cases.report.rendering import render_report
from countersign.domain.figures.finding import find_numbers
from countersign.domain.report import Draft, ReportRequest
from countersign.domain.rubric import Verdict, gate
from countersign.evidence.dataset import Dataset
from countersign.ports import ReportMaterial, Written
from tests.agents.odd_tables import ODD_TABLES, PLAIN
from tests.agents.tables import reporter, unheard
from tests.agents.test_offline_grader import SHIPPED

Opened = tuple[ReportRequest, Dataset]
Reporter = DeepAgentDrafter[ReportMaterial]


class Tables:
    """Opens CSV texts as datasets with their request."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._opened: list[Dataset] = []

    def open(self, text: str, columns: dict[str, Any], name: str = "table_2026.csv", **request: Any) -> Opened:
        path = self._folder / name
        path.write_bytes(text.encode())
        sha256 = "sha256:" + hashlib.sha256(path.read_bytes()).hexdigest()
        asked = ReportRequest.model_validate(
            {
                "question": "What do we see?",
                "channel": "internal",
                "dataset": {"sha256": sha256, "name": name, "schema": {"columns": columns}},
            }
            | request
        )
        dataset = Dataset.open(path, sha256, asked.dataset.schema_, cache=self._folder / "cache")
        self._opened.append(dataset)
        return asked, dataset

    def close(self) -> None:
        for dataset in self._opened:
            dataset.close()


@pytest.fixture
def tables(tmp_path: Path) -> Iterator[Tables]:
    opened = Tables(tmp_path)
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def agent(tmp_path_factory: pytest.TempPathFactory) -> Reporter:
    path = tmp_path_factory.mktemp("offline") / "checkpoints.sqlite"
    return reporter(ModelSettings(), f"sqlite:///{path}")


@pytest.fixture(scope="module")
def grader() -> RubricGrader:
    return RubricGrader(grade_model(ModelSettings(), REPORT_AGENT.rules))


async def drafted(
    agent: Reporter, opened: Opened, earlier: Draft | None = None, feedback: tuple[str, ...] = ()
) -> Draft:
    request, dataset = opened
    before = None if earlier is None else earlier.model_dump(mode="json")
    thread = f"{request.model_dump_json(by_alias=True)}:{feedback}"
    written = await agent.draft(thread, 1, ReportMaterial(request, dataset), before, feedback, {}, True, unheard)
    assert isinstance(written, Written)
    assert written.model == "offline-drafter/1"
    return read_draft(Draft, written.draft)


def reading(dataset: Dataset) -> Reading:
    """How the checks read it."""
    return Reading(dataset.single_value, dataset.sensitive)


def sentences(draft: Draft) -> str:
    """The body as a reader sees it."""
    shown = {f"{{{{{claim.id}}}}}": claim.shown for claim in draft.claims}
    body = draft.body
    for reference, figure in shown.items():
        body = body.replace(reference, figure)
    return body


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("name", ODD_TABLES)
async def test_a_report_about_any_dataset_passes_the_checks_and_the_offline_grader(
    agent: Reporter, grader: RubricGrader, tables: Tables, name: str, language: str
) -> None:
    text, columns = ODD_TABLES[name]
    request, dataset = tables.open(text, columns, language=language)

    draft = await drafted(agent, (request, dataset))

    assert [each.sentence() for each in check_draft(draft, request, reading(dataset))] == []
    grade = gate(SHIPPED, await grader.grade(render_report(draft, request), SHIPPED, task_of(request), unheard))
    assert (grade.verdict, grade.feedback) == (Verdict.SATISFIED, ())


async def test_a_report_says_what_the_data_shows(agent: Reporter, tables: Tables) -> None:
    draft = await drafted(agent, tables.open(*ODD_TABLES["money"]))

    text = sentences(draft)
    assert "The dataset holds 3 rows." in text
    assert "The dates in “date” run from 2026-01-03 to 2026-02-09." in text
    assert "The total of “amount” is 21.10 USD." in text
    assert "By “region”, the largest total of “amount” belongs to North, with 14.10 USD." in text
    assert "From each month with data to the next, “amount” changed most in 2026-02: by 10.90 USD." in text
    assert (draft.source, draft.unit) == ("table_2026.csv", "USD; counts are in rows")


async def test_amounts_of_different_currencies_have_a_total_each(agent: Reporter, tables: Tables) -> None:
    draft = await drafted(agent, tables.open(*ODD_TABLES["several currencies"]))

    totals = [(claim.value, claim.unit) for claim in draft.claims if claim.query.startswith("SELECT sum")]
    assert totals[:2] == [("14", "USD"), ("7", "EUR")]
    assert ("21", "USD") not in [(claim.value, claim.unit) for claim in draft.claims]


async def test_of_groups_that_share_the_first_place_none_is_called_the_largest(agent: Reporter, tables: Tables) -> None:
    draft = await drafted(agent, tables.open(*ODD_TABLES["a tie"]))

    assert "largest" not in draft.body
    assert "The total of “amount” is 12." in sentences(draft)


async def test_what_a_unit_is_declared_for_comes_first(agent: Reporter, tables: Tables) -> None:
    rows = "carrier,hour,minute,second,wait,distance\nUA,1,2,3,4,100\nDL,5,6,7,8,300\n"
    draft = await drafted(agent, tables.open(rows, {"distance": {"type": "number", "unit": "miles"}}))

    assert "The total of “distance” is 400 miles." in sentences(draft)


async def test_a_year_is_shown_as_a_year_and_not_added_up(agent: Reporter, tables: Tables) -> None:
    draft = await drafted(agent, tables.open(*ODD_TABLES["identifiers"]))

    assert "The values of “year” lie between 2024 and 2026." in sentences(draft)
    assert "6075" not in {claim.value for claim in draft.claims}


async def test_blank_cells_are_told_and_named_as_a_limitation(agent: Reporter, tables: Tables) -> None:
    draft = await drafted(agent, tables.open(*ODD_TABLES["blanks everywhere"]))

    assert "“amount” is blank in 1 row." in sentences(draft)
    assert EN["limit_blanks"] in draft.limitations


async def test_names_that_hold_figures_are_shown_as_claims(agent: Reporter, tables: Tables) -> None:
    draft = await drafted(agent, tables.open(*ODD_TABLES["figures in names"]))

    assert "“q1_sales_2024” is 21 USD" in sentences(draft)
    assert "q1_sales_2024" not in draft.body
    assert "belongs to Area 51, with 14 USD" in sentences(draft)


async def test_a_report_in_chinese_is_in_chinese(agent: Reporter, tables: Tables) -> None:
    draft = await drafted(agent, tables.open(*ODD_TABLES["Chinese money"], language="zh"))

    assert "“销售额”的合计为12.10 元。" in sentences(draft)
    assert draft.title == ZH["title"]


async def test_the_same_request_gives_the_same_draft(tables: Tables, tmp_path: Path) -> None:
    opened = tables.open(PLAIN, {})
    drafts = [await drafted(reporter(ModelSettings(), f"sqlite:///{tmp_path}/{at}"), opened) for at in range(2)]

    assert drafts[0] == drafts[1]


async def test_the_requests_title_and_period_are_used(agent: Reporter, tables: Tables) -> None:
    request, dataset = tables.open(*ODD_TABLES["no dates"], title="Sales of Q3 2026", period="July to September 2026")

    draft = await drafted(agent, (request, dataset))

    assert (draft.title, draft.period) == ("Sales of Q3 2026", "July to September 2026")
    assert check_draft(draft, request, reading(dataset)) == ()


@pytest.mark.parametrize(
    "complaint",
    ["claims.{claim}.shown: shown_mismatch: expected 1, found 2", "body:{line}:3: unsupported_number: expected, found"],
)
async def test_what_was_complained_of_is_left_out_of_the_next_version(
    agent: Reporter, tables: Tables, complaint: str
) -> None:
    request, dataset = tables.open(*ODD_TABLES["money"], title=complaint[:6])
    first = await drafted(agent, (request, dataset))
    total = next(claim.id for claim in first.claims if claim.value == "21.10")
    line = next(at for at, text in enumerate(first.body.split("\n"), start=1) if f"{{{{{total}}}}}" in text)

    second = await drafted(agent, (request, dataset), first, (complaint.format(claim=total, line=line),))

    assert "The total of" in first.body
    assert "The total of" not in second.body
    assert total not in {claim.id for claim in second.claims}
    assert check_draft(second, request, reading(dataset)) == ()


async def test_when_everything_was_complained_of_a_report_is_still_written(agent: Reporter, tables: Tables) -> None:
    request, dataset = tables.open(*ODD_TABLES["money"], title="Again")
    first = await drafted(agent, (request, dataset))

    second = await drafted(agent, (request, dataset), first, tuple(f"claims.{claim.id}: bad" for claim in first.claims))

    assert [claim.query for claim in second.claims] == ["SELECT count(*) FROM data"]
    assert check_draft(second, request, reading(dataset)) == ()


@pytest.mark.parametrize("language", ["en", "zh"])
def test_no_sentence_holds_a_number_of_its_own(language: Any) -> None:
    assert {key: find_numbers(text) for key, text in WORDING[language].items() if find_numbers(text)} == {}


def test_both_languages_say_the_same_things() -> None:
    assert EN.keys() == ZH.keys()
    assert json.dumps(EN) != json.dumps(ZH)


async def test_rules_never_ask_for_leave_to_read_what_is_sensitive(agent: Reporter, tables: Tables) -> None:
    columns = {"pay": {"type": "number", "currency": "EUR", "sensitive": True}}
    request, dataset = tables.open("team,pay\nA,4100\nA,\nB,5200\n", columns)

    draft = await drafted(agent, (request, dataset))

    assert [claim.query for claim in draft.claims if dataset.sensitive(claim.query)] == []
    assert check_draft(draft, request, reading(dataset)) == ()
