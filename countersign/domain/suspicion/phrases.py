"""How texts give orders to a model or to whoever reviews its work: one table, in the languages that reports meet.

Apart from the search so that the table can be read, and argued about, as a table. It errs on the side of silence: a
business text that says `ignored`, `instructions`, `please approve this refund` or `System: SAP` is no order to us. So
every phrase names its object: whose instructions, which draft, which reader. It is a net for the plain attempts; what
holds against the others is that no text can do anything by itself: the gateway executes only what was granted.

Each line is one regular expression, without accents, whatever the case. `_` is the gap between two words, and `@name`
is a list below. The searches in searches.py follow this table: what is added here must be found there as well.
"""

from __future__ import annotations

import re

_LISTS = {
    "weak": "the|my|these|those|this|of|and|or|our|such|given|other|current|safety|hidden|you|have|been|were|to",
    "strong": "all|any|previous|prior|above|earlier|preceding|foregoing|former|existing|original|initial|system"
    "|developer|your|every|past",
    "drop": "ignore|disregard|forget|override|overrule|bypass|skip|neglect|discard",
    "orders": "instructions?|prompts?|directives?",
    "model": "ai|llm|chatbot|(?:large_)?language_model|gpt|artificial_intelligence",
    "do": "act|respond|answer|behave|obey|ignore|approve|output|follow|speak|reply|pretend|comply|grade|mark|say|write"
    "|print|translate|tell|return",
    "work": "draft|report|proposal|submission|publication|document|output|answer|response|rubric|criteri(?:on|a)",
    "readers": "reviewers?|approvers?|graders?|auditors?",
    "good": "satisfied|passed|passing|met|fully_met",
    "show": "reveal|print|show|repeat|output|display|leak|return|include|disclose|tell_me|send|expose|summari[sz]e",
    "vorig": "alle[ns]?|samtliche|jegliche|vorherigen?|vorigen?|bisherigen?|obigen?|fruheren?|vorangegangenen?"
    "|ursprunglichen?|vorhergehenden?|deine|ihre",
    "avant": "precedente?s?|anterieure?s?|ci_dessus|recue?s|donnees|initiale?s|du_systeme",
    "antes": "anteriores|previas|precedentes|de_arriba|recibidas|originales|iniciales|del_sistema",
    "prima": "precedenti|di_cui_sopra|qui_sopra|ricevute|iniziali|del_sistema",
    "acima": "anteriores|previas|acima|recebidas|originais|iniciais|do_sistema",
}

_PHRASES = r"""
(?:@drop)_(?:(?:@weak)_){0,3}(?:@strong)_(?:(?:@weak|@strong)_){0,5}(?:@orders)
(?:@drop)_(?:(?:@weak|all|any)_){0,3}(?:previous|prior|above|earlier|preceding|foregoing|original|system|your)_(?:(?:@weak|@strong)_){0,3}(?:rules|guidelines|restrictions|training|programming)
(?:ignore|disregard|forget)_(?:everything|anything|all|whatever)_(?:(?:that|which|else)_){0,2}(?:above_(?:and|this)|before_this|you_(?:were|have_been|ve_been|had_been)_(?:told|given|taught|instructed|asked)|i_(?:said|told_you)_before)
(?:ignore|disregard|forget)_(?:all_)?(?:of_)?the_above(?:_\w+){0,2}_(?:and|then|instead)_(?:\w+_)?(?:@do)
(?:do_not|don.?t|never)_(?:follow|obey|comply_with|adhere_to)_(?:(?:@weak)_){0,2}(?:@strong)_(?:(?:@weak|@strong)_){0,3}(?:@orders|rules|guidelines)
stop_(?:following|obeying)_(?:(?:@weak|@strong)_){1,4}(?:@orders|rules|guidelines)
(?:instead_)?follow_(?:only_)?(?:these|the|my)_(?:new|following|actual|real)_(?:@orders)_(?:instead|only|and_ignore|from_now_on)
you_are_now_(?:(?:a|an|the|my|in|acting|as|to|act|no|longer)_)*(?:\w+_){0,2}?(?:(?:@model)|assistant|dan|jailbroken|unrestricted|unfiltered|developer_mode|god_mode|grader|the_(?:reviewer|approver))
from_now_on_you_(?:(?:are_to|will|shall|must|should|have_to|need_to)_)?(?:only_|always_)?(?:@do)
from_now_on_you_are_(?:a|an|the|no_longer)_(?:\w+_){0,2}(?:@model|assistant|grader|reviewer|approver)
(?:act|behave|respond|answer)_as_(?:if|though)_(?:you|there)_(?:are|were|have|had)_(?:no|not|an?|the|un\w+)_(?:\w+_){0,3}(?:@model|assistant|restrictions?|rules|limits|filters?|guidelines|instructions|reviewer|approver|grader|bound|restricted)
pretend_(?:that_)?(?:you_are|to_be)_(?:an?_|the_)?(?:\w+_){0,2}(?:@model|assistant|administrator|@readers)
do_anything_now
(?:@show)_(?:(?:me|us|the|your|all|of|entire|full|whole|hidden|complete|initial|original|contents?|text|exact)_){0,5}system_prompts?
(?:@show)_(?:(?:me|us|all|of|the|verbatim)_){0,3}your_(?:\w+_){0,2}(?:system|initial|hidden|developer|original|secret)_(?:messages?|@orders)
what_(?:is|are|was|were)_your_(?:system|initial|hidden|original)_(?:messages?|@orders)
new_system_(?:prompt|instructions?|message)
(?:begin|start|end)_(?:of_)?(?:the_)?(?:new_)?system_(?:prompt|message|instructions?)
(?:system|admin|administrator|developer|priority)_override_?[:：]
(?:message|instructions?|notice|note|attention|orders?|dear|hey|hello)_(?:for_|to_)?(?:the_|all_|any_|every_)?(?:llms?|language_models?|(?:ai|gpt)_(?:assistants?|agents?|models?|systems?|reviewers?|graders?|readers?)|reviewing_models?|grading_models?)
if_you_are_an?_(?:@model|automated_(?:agent|reviewer|grader))
as_an?_(?:@model)_(?:\w+_){0,2}you_(?:must|should|will|have_to|need_to|are_to)
(?:approve|accept|pass)_this_(?:draft|report|proposal|submission|publication|action|output|answer)
(?:approve|accept|authori[sz]e|publish)_(?:this|it|everything|the_\w+|all_\w+)_(?:\w+_){0,2}(?:without_(?:(?:further|any|a|human|additional|more)_)*(?:review|checks?|checking|questions?|approval|reading|verification|asking)|regardless_of|no_matter_what|unconditionally)
mark_(?:(?:this|it|all|every|each|the|any|these)_)?(?:\w+_){0,3}as_(?:satisfied|passing|fully_met)
mark_(?:this|the|all|every|each)_(?:\w+_)?(?:@work)_as_(?:approved|passed|met|compliant|correct)
(?:grade|score|evaluate|assess|judge|rate)_(?:(?:this|it|the|every|all|each|my|these)_)?(?:\w+_){0,3}as_(?:@good)
(?:grade|score|evaluate|assess|judge|rate)_(?:this|the|my)_(?:@work)_(?:as_)?(?:\w+_){0,2}(?:excellent|perfect|flawless|correct|highest|top|best|a_plus)
(?:give|award|assign)_(?:this|it|the|my)_(?:@work)_(?:an?_|the_)?(?:full|maximum|highest|perfect|top|passing|best)_(?:possible_)?(?:scores?|grades?|marks|verdict)
(?:set|return|output|answer|give|respond|reply|report)_(?:with_)?(?:the_|your_|a_)?(?:verdict|result|grade|outcome)_?(?:to|as|of|is|should_be)?_?satisfied
(?:always|just|only|simply)_(?:return|output|answer|respond|reply|say)_(?:with_)?satisfied
all_(?:\w+_){0,2}criteria_(?:should|must|shall|have_to)_be_(?:considered|treated|marked|graded|judged|regarded)
(?:do_not|don.?t|never)_(?:tell|inform|mention|alert|notify|warn|reveal|disclose|say)_(?:\w+_){0,4}(?:@readers)
(?:do_not|don.?t|never)_(?:tell|inform|alert)_the_(?:users?|humans?|operators?)_(?:about|that|of|this|anything)
(?:hide|conceal|keep)_(?:this|these|it|the_\w+)_(?:\w+_){0,3}from_(?:(?:the|any|all|human)_)*(?:@readers)
(?:api_keys?|credentials|secrets|conversation|chat_history|system_prompt)_to_(?:https?|[a-z0-9.]+@)
(?:ignorieren?|missachten?|vergiss|vergessen|vergesst|ubergehen?|umgehen?|verwirf|verwerfen)_(?:sie_)?(?:(?:die|diese|dir|alles)_){0,2}(?:@vorig)_(?:(?:die|@vorig|gegebenen)_){0,3}(?:anweisungen|instruktionen|vorgaben|befehle|prompts?|aufforderungen|systemprompts?)
(?:du_bist|sie_sind)_(?:jetzt|nun|ab_jetzt|ab_sofort)_(?:\w+_){0,3}(?:ki|assistent|chatbot|sprachmodell|gutachter|prufer)
(?:genehmigen?|bewillige|akzeptiere)_(?:sie_)?(?:diesen|dieses)_(?:bericht|entwurf|dokument|vorschlag)
(?:bewerten?|markieren?|benoten?|beurteilen?)_(?:sie_)?(?:dies\w*|alles?|den|das|die|es)_(?:\w+_){0,2}als_(?:erfullt|bestanden|satisfied)
(?:sag|sage|sagen|erzahle?|verrate?)_(?:sie_)?(?:es_|das_|dies_|davon_)?(?:dem|den|der)_(?:\w+_)?(?:prufern?|gutachtern?|genehmigern?|freigebern?)_(?:davon_)?nicht
(?:zeige?|gib|verrate?|nenne|wiederhole)_(?:\w+_){0,3}(?:systemprompt|system_prompt|systemanweisung(?:en)?)
(?:ignore[rz]?|oublie[rz]?|neglige[rz]?|contourne[rz]?|ne_(?:tiens|tenez)_pas_compte_(?:de|des))_(?:(?:toute?s|tous|les|tes|vos|de|des|mes|ces)_){0,3}(?:instructions|consignes|directives|regles|prompts?|ordres)_(?:\w+_)?(?:@avant)
(?:tu_es|vous_etes)_(?:maintenant|desormais)_(?:\w+_){0,3}(?:ia|assistant|chatbot|modele_de_langage|evaluateur|relecteur)
(?:approuve[rz]?|accepte[rz]?|valide[rz]?)_(?:ce_(?:rapport|brouillon|document_sans)|cette_ebauche)
ne_(?:le_|la_|les_)?(?:dis|dites|parle|parlez|informe[zs]?|mentionne[zs]?|previens|prevenez)_(?:\w+_){0,3}(?:relecteurs?|reviseurs?|evaluateurs?|approbateurs?|auditeurs?)
(?:ignora|ignore|ignorad|ignoren|olvida|olvide|olviden|desestima|haz_caso_omiso_de|haga_caso_omiso_de)_(?:(?:todas|todos|las|los|tus|sus|mis|estas)_){1,3}(?:instrucciones|ordenes|directrices|indicaciones|reglas)_(?:@antes)
(?:ahora_eres|a_partir_de_ahora_eres)_(?:\w+_){0,3}(?:ia|asistente|chatbot|modelo_de_lenguaje|evaluador|revisor)
(?:aprueba|apruebe|acepta)_este_(?:informe|borrador)
no_(?:se_)?(?:lo_)?(?:digas|diga|informes|informe|menciones|mencione|reveles)_(?:\w+_){0,3}(?:revisor(?:es)?|evaluador(?:es)?|auditor(?:es)?|aprobador(?:es)?)
(?:ignora|ignorate|ignori|dimentica|dimenticate|trascura|non_seguire)_(?:(?:tutte|tutti|le|gli|tue|queste|vostre)_){1,4}(?:istruzioni|direttive|indicazioni|regole|ordini)_(?:@prima)
(?:ignora|ignorate|ignori|dimentica|dimenticate|trascura|non_seguire)_(?:(?:tutte|tutti|le|gli|tue|queste|vostre)_){1,4}precedenti_(?:istruzioni|direttive|indicazioni|regole)
(?:approva|approvate|accetta)_questo_(?:rapporto|documento|report)_?(?:senza|subito|ora|!)
(?:ignore|ignora|esqueca|esquece|desconsidere|desconsidera)_(?:(?:todas|todos|as|os|suas|tuas|estas)_){1,3}(?:instrucoes|ordens|diretrizes|orientacoes|regras)_(?:@acima)
aprove_este_(?:relatorio|rascunho)
(?:negeer|vergeet|omzeil)_(?:(?:alle|al|de|je|uw|jouw)_){1,3}(?:(?:vorige|eerdere|voorgaande|bovenstaande|voorafgaande|oorspronkelijke)_)(?:instructies|aanwijzingen|opdrachten|regels|prompts?)
keur_dit_(?:rapport|concept)_goed
(?:忽略|无视|忘记|忘掉|不要理会|不用理会|绕过|抛开|不要遵守|不要遵循|停止遵守)(?:你|您|掉|所有|全部|一切|之前|以前|先前|上述|上面|以上|前面|此前|任何|原有|原来|系统|的|收到|给出|和|与|过|这些|那些|全都){1,10}(?:指令|指示|提示词|提示|命令|规则|设定)
(?:你|您)(?:现在|从现在起|从现在开始)(?:起|开始)?(?:就)?(?:是|扮演|将扮演|要扮演)[^。，,.\n]{0,8}(?:AI|人工智能|助手|语言模型|评分员|审核员|审批人|评审)
(?:输出|显示|泄露|打印|告诉我|重复|透露)[^。，,.\n]{0,8}系统提示词?
(?:请|务必|直接|必须|立即|立刻)(?:你|您|直接|立即|立刻|马上|无条件)*(?:批准|通过|同意)(?:这份|本|此|这篇)(?:报告|草稿|草案|提案)
(?:无需|不需要|不必|跳过|不经)[^。.\n]{0,6}(?:审核|审批|审查|复核|审阅)[^。.\n]{0,6}(?:发布|公布|批准|通过)(?:这份|本|此|这篇|该)(?:报告|草稿|草案|提案)
系统(?:提示|消息|指令)?[:：][^\n]{0,20}(?:你|您)[^\n]{0,6}(?:批准|同意|通过)了?(?:这份|本|此|这篇|该)(?:报告|草稿|草案|提案)
无条件(?:批准|通过)(?:这份|本|此|这篇|该)?(?:报告|草稿|草案|提案)?
(?:这份|本|此|所有|全部)(?:的)?(?:报告|草稿|标准|准则|评分项)[^。，,.\n]{0,4}(?:标记|评|判定|判|视)[^。，,.\n]{0,2}(?:为|成|作)(?:已满足|满足|通过|satisfied)
(?:不要|别|请勿|切勿|不得|勿)(?:告诉|告知|通知|提醒|让|向)(?:任何)?(?:人类|审核|审批|评审|复核|审计|批准|评分|审查)(?:员|人|者|人员|方)
如果(?:你|您)是(?:一个|一名)?(?:AI|人工智能|语言模型|大模型|大语言模型)
"""

_MARKERS = r"""
<\|(?:im_start|im_end|system|user|assistant|endoftext|eot_id|start_header_id|end_header_id|begin_of_text|channel|message)\|>
</?(?:system|assistant|system[_-]?prompt|rubric|transcript|tool[_-](?:calls?|results?|response)|function[_-]calls?)(?:-[0-9a-f]+)?(?:\s[^<>]{0,80})?>
</(?:instructions?|criteria|prompt|user[_-]input|untrusted[_-]?\w{0,20})(?:-[0-9a-f]+)?>
\[/?INST\]
<</?SYS>>
(?:^|\n)[ >]*#{2,4} ?(?:system|instructions?|assistant|human|response) ?: ?(?:\n|you|ignore|approve|$)
(?:^|\n)[ >*-]*assistant[ *]*[:：][ *]*(?:\S+ +){3,20}\S
(?:^|\n)[ >*-]*(?:system|developer)[ *]*[:：][^\n]{0,80}\b(?:your?|ignore|disregard|approve|satisfied)\b
(?:^|\n)(?:human|user)[ ]?:[^\n]+\n+assistant[ ]?:
\n[ \t]*\n\[(?:user|assistant|tool(?::[\w-]{1,60})?|system)\] ?\S
(?:-{3}|={3}|#{3}|\*{3}|<{3}) ?(?:begin|end|start)(?: of)?(?: the)? (?:prompt|system|user input|transcript|rubric)
"(?:earlier_draft|feedback)" ?: ?(?:null|\[|\{)
"task" ?: ?"(?:re)?write the report
"role" ?: ?"(?:system|assistant|developer)"
"""

_GAP = r"(?:[\W_]{1,4})"
_CHINESE = re.compile(r"[\u4e00-\u9fff]")
_LETTER = r"[^\W_]"


def _lines(table: str) -> tuple[str, ...]:
    return tuple(line for line in table.splitlines() if line)


def _written_out(phrase: str) -> str:
    """The regular expression of one phrase: its lists and gaps written out; a list may hold gaps, but no list."""
    for name in sorted(_LISTS, key=len, reverse=True):
        phrase = phrase.replace(f"@{name}", _LISTS[name])
    return phrase.replace("_", _GAP)


def _bounded(expression: str) -> str:
    """The expression with words of bounded length: Python tries every way of splitting a text into them."""
    return expression.replace(r"\w+", _LETTER + "{1,30}").replace(r"\w*", _LETTER + "{0,30}")


_PHRASE_LINES = _lines(_PHRASES)
_SPACED = "|".join(_bounded(_written_out(each)) for each in _PHRASE_LINES if not _CHINESE.search(each))
_UNSPACED = "|".join(_written_out(each) for each in _PHRASE_LINES if _CHINESE.search(each))

ORDERS = (
    # The letter before is looked at first, once for all phrases: most places of a text are inside a word.
    re.compile(f"(?<!{_LETTER})(?:{_SPACED})(?!{_LETTER})", re.IGNORECASE),
    re.compile(_UNSPACED, re.IGNORECASE),
)
"""Orders, to be looked for in text without accents and without what is not drawn; Chinese has no blanks."""
MARKERS = re.compile("|".join(_lines(_MARKERS)), re.IGNORECASE)
"""What imitates the frame of a conversation or of our own prompts, to be looked for in text as it is written."""
