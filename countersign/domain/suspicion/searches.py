"""What a database is asked for, so that of millions of cells only those come back that may give orders.

Apart from the judgement over a text: a search may find too much, never decides, and is in RE2, which reads a column in
time that grows with its length alone. Each search has a bound of its own, so that many innocent finds of one (a column
of emoji) cannot crowd out those of another. They follow the table in phrases.py
and must find at least all that it does.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator

from countersign.domain.suspicion.phrases import MARKERS

_STEMS = r"""
(?:ignor|disregard|forget|overr|bypass|skip|neglect|discard).*(?:instruct|prompt|directive|rules|guideline|restriction|training|programming)
(?:ignore|disregard|forget)_(?:everything|anything|all|whatever|of|the)_.*(?:above|before|you_)
(?:follow|obey|comply|adhere).*(?:all|any|previous|prior|above|original|system|your|new|actual|real|initial|existing|every|past|earlier).*(?:instruct|prompt|directive|rules|guideline)
(?:missacht|vergiss|vergess|ubergeh|umgeh|verwirf|verwerf|ignorier).*(?:anweisung|instruktion|vorgabe|befehl|prompt|aufforderung)
(?:ignor|oubli|neglig|contourn|pas_compte).*(?:instruction|consigne|directive|regles|prompt|ordres)
(?:ignor|olvid|desestim|caso_omiso).*(?:instruccion|ordenes|directric|indicacion|reglas)
(?:ignor|dimentic|trascur|non_seguire).*(?:istruzion|direttiv|indicazion|regole|ordini)
(?:ignor|esquec|desconsider).*(?:instruc|ordens|diretriz|orientac|regras)
(?:negeer|vergeet|omzeil).*(?:instructie|aanwijzing|opdracht|regels|prompt)
(?:忽略|无视|忘记|忘掉|不要理会|不用理会|绕过|抛开|不要遵守|不要遵循|停止遵守).*(?:指令|指示|提示|命令|规则|设定)
you_are_now_|from_now_on_you_|as_(?:if|though)_(?:you|there)_|pretend_.*(?:you_are|to_be)_|do_anything_now
system_?prompt|systemanweisung|new_system_|system_(?:message|instruction)|override\s*[:：]
(?:reveal|print|show|repeat|output|display|leak|return|include|disclose|tell|send|expose|summari|what)[a-z]*_.*your_.*(?:message|prompt|instruct|directive)
(?:message|instruct|notice|note|attention|order|dear|hey|hello)[a-z]*_.*(?:llm|language_model|(?:ai|gpt|reviewing|grading)_(?:assist|agent|model|system|review|grader|reader))
(?:if_you_are|as)_an?_(?:ai|llm|chatbot|gpt|language|large|artificial|automated)_
(?:approve|accept|pass)_this_(?:draft|report|proposal|submission|publication|action|output|answer)
(?:approve|accept|authori[sz]e|publish)_.*(?:without_|regardless_|no_matter|unconditionally)
as_(?:satisfied|passed|passing|fully_met|approved|met|compliant|correct)
(?:grade|score|evaluate|assess|judge|rate)_(?:this|the|my)_(?:draft|report|proposal|submission|publication|document|output|answer|response|rubric|criteri)
(?:give|award|assign)_(?:this|it|the|my)_(?:draft|report|proposal|submission|publication|document|output|answer|response|rubric|criteri).*(?:score|grade|marks|verdict)
(?:verdict|result|grade|outcome|return|output|answer|respond|reply|say)_.*satisfied|criteria_.*be_(?:considered|treated|marked|graded|judged|regarded)
(?:do_not|don.?t|never|hide|conceal|keep)_.*(?:reviewer|approver|grader|auditor)
(?:tell|inform|alert)_the_(?:user|human|operator)s?_|(?:keys?|credentials|secrets|conversation|history)_to_(?:http|[a-z0-9.]+@)
(?:du_bist|sie_sind)_.*(?:ki|assistent|chatbot|sprachmodell|gutachter|prufer)
(?:genehmige|bewillige|akzeptiere)n?_.*(?:diesen|dieses)_|als_(?:erfullt|bestanden)
(?:sag|verrat|erzahl).*(?:prufer|gutachter|genehmiger|freigeber)
(?:tu_es|vous_etes)_(?:maintenant|desormais)_|(?:approuve|accepte|valide)[rz]?_(?:ce|cette)_
ne_.*(?:relecteur|reviseur|evaluateur|approbateur|auditeur)|(?:ahora|a_partir_de_ahora)_eres_
(?:aprueb|acept|aprov)[ae]_este_|no_.*(?:revisor|evaluador|auditor|aprobador)|(?:approva|accetta)[a-z]*_questo_|keur_dit_
(?:你|您)(?:现在|从现在).*(?:是|扮演)|系统提示|无条件(?:批准|通过)|(?:批准|通过|同意|发布|公布)了?(?:这份|本|此|这篇|该)(?:报告|草稿|草案|提案)
(?:报告|草稿|标准|准则|评分项).*(?:为|成|作)(?:已满足|满足|通过|satisfied)|如果(?:你|您)是
(?:不要|别|请勿|切勿|不得|勿)(?:告诉|告知|通知|提醒|让|向).*(?:人类|审核|审批|评审|复核|审计|批准|评分|审查)
"""
"""The stems of every phrase without bounds in between: bounded gaps would cost a database a hundred times as much."""

_FRAMES = re.sub(r"\{0,80\}", "*", MARKERS.pattern).replace("{3,20}", "+")
_ENCODED = "ignore disregard previous instruction prompt approve satisfied reviewer system".split()
_HIDDEN = (
    r"\x{00AD}\x{034F}\x{115F}\x{1160}\x{17B4}\x{17B5}\x{180B}-\x{180F}\x{200B}-\x{200F}\x{202A}-\x{202E}"
    r"\x{2060}-\x{206F}\x{3164}\x{FE00}-\x{FE0F}\x{FEFF}\x{FFA0}\x{E0000}-\x{E0FFF}"
)
_DISGUISES = (
    rf"\pL[{_HIDDEN}*`~\\]+\pL",
    rf"[{_HIDDEN}]{{4}}",
    r"[\x{202D}\x{202E}]",
    r"[A-Za-z][\x{0370}-\x{058F}]|[\x{0370}-\x{058F}][A-Za-z]",
    r"[\x{FF21}-\x{FF3A}\x{FF41}-\x{FF5A}]{3}|[\x{1D400}-\x{1D7FF}]{3}",
)


def _in_base64(word: str) -> Iterator[str]:
    """What the base64 of every text with this ASCII word holds, whatever stands before and after the word."""
    for before in range(3):
        encoded = base64.b64encode(b"\0" * before + word.encode()).decode()
        yield encoded[-(-8 * before // 6) : 8 * (before + len(word)) // 6]


_FORMS = (
    re.escape(form)
    for word in _ENCODED
    for spelt in (word, word.capitalize(), word.upper())
    for form in _in_base64(spelt)
)

SEARCHES = (
    f"(?is)(?:{'|'.join(_STEMS.split(chr(10))[1:-1])})".replace("_", r"[\W_]+"),
    f"(?i)(?:{_FRAMES})",
    "|".join(_FORMS),
    "|".join(_DISGUISES),
)
"""Phrases and forged frames as they are written; words in base64; letters in disguise."""
