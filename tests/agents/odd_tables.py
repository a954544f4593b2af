"""Datasets that a careless report would get wrong, by what is odd about them: CSV text and declarations of columns."""

from __future__ import annotations

from typing import Any

MONEY = {"type": "number", "currency": "USD"}
EUROPEAN = {"thousands": ".", "decimal": ",", "currency": "€"}
PLAIN = "date,region,amount\n2026-01-03,North,5.10\n2026-02-03,South,7\n2026-02-09,North,9\n"

ODD_TABLES: dict[str, tuple[str, dict[str, Any]]] = {
    "plain": (PLAIN, {}),
    "money": (PLAIN, {"amount": MONEY}),
    "no numbers": ("date,region\n2026-01-03,North\n2026-02-03,North\n2026-03-04,South\n", {}),
    "no dates": ("region,amount\nNorth,5\nSouth,7\nNorth,9\n", {}),
    "no texts": ("date,amount\n2026-01-03,5\n2026-01-04,-7.25\n", {}),
    "numbers only": ("a,b,c,d,e,f\n1,2,3,4,5,6\n7,8,9,10,11,12\n", {}),
    "texts only": ("a,b\nx,y\nz,w\n", {}),
    "foreign names": ("дата,регион,сумма\n2026-01-03,Север,5\n2026-02-03,Юг,7\n", {}),
    "kana names": ("ちいき,きんがく\nきた,5\nみなみ,7\nきた,9\n", {}),
    "one row": ("date,region,amount\n2026-01-03,North,5\n", {}),
    "one cell": ("amount\n5\n", {}),
    "one text cell": ("name\nx\n", {}),
    "a blank column": ("region,amount,note\nNorth,5,\nSouth,7,\nNorth,9,\n", {}),
    "a blank number column": ("region,amount\nNorth,\nSouth,\nNorth,\n", {"amount": {"type": "number"}}),
    "a blank date column": ("date,amount\n,1\n,2\n", {"date": {"type": "date"}}),
    "blanks everywhere": ("date,region,amount\n,North,5\n2026-02-03,,7\n2026-02-09,North,\n,,1\n", {}),
    "figures in names": (
        "q1_sales_2024,Region 7,2nd half,two\n5,Area 51,1,x\n7,Area 52,2,x\n9,Area 51,3,y\n",
        {"q1_sales_2024": MONEY},
    ),
    "words for numbers as names": ("one,twelve,half\n5,first,second\n7,first,third\n9,second,half\n", {}),
    "quotes and SQL in names": (
        '"a""b","select","x; drop table data","--","o\'hara"\nu,1,2,3,4\nu,5,6,7,8\nv,9,1,2,3\n', {},
    ),
    "newlines in names and cells": ('"two\nlines",amount\n"a\nb",5\n"a\nb",6\nc,7\n', {}),
    "references in names and cells": ("{{c1}},amount\n{{c2}},5\n{{c2}},6\n{{c9}},7\n", {}),
    "markup in names and cells": ("<b>bold</b>,*amount*,[a](b)\n<i>x</i>,5,`y`\n<i>x</i>,6,`y`\n| z |,7,# w\n", {}),
    "hidden characters in cells": ("region,amount\nNo\u202erth,5\nNo\u202erth,6\nSo\u200buth,7\n", {}),
    "hidden characters in names": ("re\u202egion,am\u200bount\nNorth,5\nNorth,6\nSouth,7\n", {}),
    "huge decimals": (
        "region,amount\nNorth,12345678901234567890123456789.12\nSouth,-0.01\nNorth,99999999999999999999999999999.99\n",
        {"amount": MONEY},
    ),
    "large integers": ("region,amount\nNorth,9007199254740993\nSouth,9007199254740995\nNorth,1\n", {}),
    "tiny decimals": ("region,amount\nNorth,0.0000001\nSouth,-0.0000002\nNorth,0.0000003\n", {}),
    "all zero": ("date,region,amount\n2026-01-01,North,0\n2026-02-01,South,0\n2026-03-01,North,0.00\n", {}),
    "all negative": ("date,region,amount\n2026-01-01,North,-5\n2026-02-01,South,-7\n2026-03-01,North,-9.5\n", {}),
    "several currencies": (
        "date,region,currency,amount\n2026-01-03,North,USD,5\n2026-02-03,South,EUR,7\n2026-02-09,North,USD,9\n",
        {"amount": {"type": "number", "currency_column": "currency"}},
    ),
    "many currencies": (
        "region,currency,amount\n"
        + "".join(f"North,{code},{at}\n" for at, code in enumerate("USD EUR GBP JPY CNY CHF SEK".split(), start=1)),
        {"amount": {"type": "number", "currency_column": "currency"}},
    ),
    "per cent": (
        "region,growth\nNorth,4.2 %\nSouth,-35 %\nNorth,0 %\n",
        {"growth": {"type": "number", "number": {"percent": True}}},
    ),
    "euros written the European way": (
        'region,amount\nNorth,"1.234,50 €"\nSouth,"-7,00 €"\nNorth,"2,25 €"\n',
        {"amount": {"type": "number", "number": EUROPEAN, "currency": "EUR"}},
    ),
    "a unit with a figure": ("plant,emission\nA,5\nB,7\nA,9\n", {"emission": {"type": "number", "unit": "t CO2"}}),
    "a unit of its own": ("shop,sold\nA,5\nB,7\nA,9\n", {"sold": {"type": "number", "unit": "orders"}}),
    "identifiers": ("id,code,year,amount\n1,007,2024,5\n2,008,2025,7\n3,007,2026,9\n", {}),
    "dates of one day": ("date,amount\n2026-01-03,5\n2026-01-03,7\n", {}),
    "dates of many years": ("date,amount\n1999-12-31,5\n2026-01-03,7\n2099-05-06,-900\n", {}),
    "dates in another order": (
        "day,amount\n31/12/2025,5\n03/01/2026,7\n04/02/2026,1\n",
        {"day": {"type": "date", "date_order": "dmy"}},
    ),
    "Chinese": ("日期,地区,销售额\n2026-01-03,华北一区,5.10\n2026-02-03,华南,7\n2026-02-09,华北一区,9\n", {}),
    "Chinese money": (
        "日期,地区,销售额\n2026-01-03,华北,5.10\n2026-02-03,华南,7\n",
        {"销售额": {"type": "number", "currency": "CNY"}},
    ),
    "long names and cells": (f"{'n' * 150},amount\n{'v' * 200},5\n{'v' * 200},6\nc,7\n", {}),
    "many columns": (
        ",".join(f"col{at}" for at in range(40)) + "\n" + ",".join(str(at) for at in range(40)) + "\n", {},
    ),
    "many groups": ("region,amount\n" + "".join(f"r{at},{at}\n" for at in range(200)), {}),
    "a tie": ("region,amount\nNorth,5\nSouth,5\nNorth,1\nSouth,1\n", {}),
}  # fmt: skip
