"""The sentences of an offline report in English and Chinese; none of them holds a figure or a word for one.

They stand apart from the plan so that a translator, and the test that reads every sentence for numbers, see them whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

Language = Literal["en", "zh"]

EN: Mapping[str, str] = {
    "title": "Summary of the dataset",
    "space": " ",
    "findings": "Findings",
    "method": "How the figures were computed",
    "quoted": "“{name}”",
    "in_currency": "{name} in {currency}",
    "unnamed": "a column whose name is not repeated here",
    "rows_unit": "rows",
    "row_unit": "row",
    "rows": "The dataset holds {rows}.",
    "period": "The dates in {column} run from {start} to {end}.",
    "total": "The total of {column} is {total}.",
    "range": "The values of {column} lie between {low} and {high}.",
    "top_amount": "By {group}, the largest total of {column} belongs to {name}, with {amount}.",
    "top_rows": "By {group}, most rows belong to {name}, with {amount}.",
    "change_month": "From each month with data to the next, {column} changed most in {when}: by {change}.",
    "change_day": "From each date with data to the next, {column} changed most on {when}: by {change}.",
    "blanks": "{column} is blank in {count}.",
    "no_blanks": "No column has blank cells.",
    "method_text": (
        "Each figure is the exact result of a read-only query on the whole dataset, kept with the report as its "
        "calculation path. Blank cells count towards no total. Amounts of different currencies are never added up."
    ),
    "period_dates": "from {start} to {end}",
    "period_none": "The data states no period.",
    "unit_named": "{units}; counts are in rows",
    "unit_separator": ", ",
    "unit_none": "The data states no unit; counts are in rows.",
    "limit_rules": (
        "This report was written by fixed rules without a language model: it describes the dataset and does not "
        "interpret the question."
    ),
    "limit_source": "Whether the source data is complete and correct was not examined.",
    "limit_blanks": "Some cells are blank, so totals may be understated.",
    "limit_columns": "The dataset holds more amounts than this report describes.",
    "limit_currencies": "Totals are given only for some of the currencies in the data.",
}

ZH: Mapping[str, str] = {
    "title": "数据概要",
    "space": "",
    "findings": "主要发现",
    "method": "计算方法",
    "quoted": "“{name}”",
    "in_currency": "{name}（{currency}）",
    "unnamed": "名称未列出的某列",
    "rows_unit": "行",
    "row_unit": "行",
    "rows": "数据集共有{rows}。",
    "period": "{column}的日期从{start}到{end}。",
    "total": "{column}的合计为{total}。",
    "range": "{column}的取值介于{low}与{high}之间。",
    "top_amount": "按{group}划分，{column}合计最大的是{name}，为{amount}。",
    "top_rows": "按{group}划分，行数最多的是{name}，为{amount}。",
    "change_month": "在有数据的相邻月份之间，{column}合计的最大变动为{change}，发生在{when}。",
    "change_day": "在有数据的相邻日期之间，{column}合计的最大变动为{change}，发生在{when}。",
    "blanks": "{column}为空的有{count}。",
    "no_blanks": "各列均无空白单元格。",
    "method_text": (
        "每个数字都是对整个数据集执行只读查询得到的精确结果，查询作为计算路径随报告保存。"
        "空白单元格不计入合计。不同币种的金额从不相加。"
    ),
    "period_dates": "从{start}到{end}",
    "period_none": "数据未说明期间。",
    "unit_named": "{units}；计数以行为单位",
    "unit_separator": "、",
    "unit_none": "数据未说明单位；计数以行为单位。",
    "limit_rules": "本报告由固定规则写成，未使用语言模型：只描述数据，不解读所提问题。",
    "limit_source": "未核查源数据是否完整和正确。",
    "limit_blanks": "部分单元格为空，合计可能偏低。",
    "limit_columns": "数据集中的数值列或币种多于本报告所述。",
    "limit_currencies": "仅给出数据中部分币种的合计。",
}

WORDING: Mapping[Language, Mapping[str, str]] = {"en": EN, "zh": ZH}
