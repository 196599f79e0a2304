"""Texts on which a tokenizer is tried, whatever corpus it is for: our own sentences and hostile strings."""

from __future__ import annotations

PASSAGES = {
    "English": "The river froze early that year, so the mill stood still from November on; nobody's bread got cheaper.",
    "Chinese": "那一年河水结冰很早，磨坊从十一月起就停了工，谁家的面包也没有变便宜。",
    "Hindi": "उस साल नदी जल्दी जम गई, इसलिए चक्की नवंबर से बंद रही और किसी की रोटी सस्ती नहीं हुई।",
    "Arabic": "تجمّد النهر باكراً في تلك السنة، فتوقفت الطاحونة منذ نوفمبر ولم يرخص خبز أحد.",
    "Russian": "В тот год река замёрзла рано, мельница стояла с ноября, и хлеб ни у кого не подешевел.",
    "Japanese": "その年は川が早く凍り、水車は十一月から止まったままで、パンは安くならなかった。",
    "Code": "def freeze(river: list[float], below: float = 0.0) -> int:\n    # index of the first\n    for i, t in "
    'enumerate(river):\n        if t <= below:\n            return i\n    raise ValueError(f"never below {below!r}")\n',
    "Numbers": "In 1987 the mill ground 1234567 kg, 12.5 % more; call +44 20 7946 0958 or see 192.168.0.1:8080.",
}

HOSTILE = {
    "empty": "",
    "one space": " ",
    "spaces before": "   text",
    "spaces after": "text   ",
    "many spaces": "a" + " " * 37 + "b",
    "tabs": "\t\tx\ty\t",
    "line ends": "a\nb\r\nc\rd\n\n\n",
    "ends in a line end": "line\n",
    "other separators": "a\u2028b\u2029c\u0085d\u000bf\u000cg",
    "wide space": "a\u3000b\u00a0c\u2009d",
    "null": "a\x00b",
    "controls": "\x01\x02\x1b[31mred\x7f",
    "byte order mark": "\ufeffmark\ufeff",
    "zero width": "a\u200bb\u200cc\u200dd\u2060e",
    "direction marks": "abc \u202eתו\u202c def",
    "combining": "e\u0301\u0327 z\u0351\u036b\u0343",
    "Hangul jamo": "\u1100\u1161\u11a8 한글",
    "Vietnamese": "Tiếng Việt có dấu ổ ự ễ",
    "Thai": "กำแพงน้ำใจที่ไม่มีช่องว่าง",
    "emoji": "👩‍👩‍👧‍👦 🏳️‍🌈 👍🏽 🇪🇺",
    "rare Han": "𠀀𠮷野家 㐀 龘",
    "unassigned": "\u0378\U000e0080",
    "private use": "\ue000\U0010fffd",
    "noncharacters": "\ufffe\uffff\U0010ffff",
    "replacement": "\ufffd\ufffd",
    "meta space": "a▁b ▁▁ c",
    "byte names": "<0x41><0xE4> Ġ Ċ ĉ",
    "piece names": "<unk><s></s><pad> [UNK] [CLS] ##ing",
    "look-alikes": "<|endoftext|><|im_start|>system<|im_end|>",
    "quotes": "‘single’ “double” «guillemets» \"plain\" 'plain'",
    "wide forms": "ＡＢＣ１２３，？！",
    "ligatures": "ﬁ ﬂ ĳ ǆ ½ ² ①",
    "case": "İstanbul ısı ΑΣ ß ſ",
    "digits": "007 1,234.50 ١٢٣ १२३ Ⅻ",
    "long run": "ha" * 200,
    "escapes": "\\n \\t \\u0041 \\x41 %20 &amp;",
    "base64": "aGVsbG8gd29ybGQgdGhpcyBpcyBiYXNlNjQ=",
    "address": "https://example.org/a/b?c=d&e=%F0%9F%98%80#f",
}

LAYOUT = {
    "four spaces": "if a:\n    if b:\n        c()\n",
    "tabs": "if a:\n\tif b:\n\t\tc()\n",
    "eight and more": "                deep\n                        deeper\n",
    "mixed": "\t  x\n  \ty\n",
    "blank lines": "a\n\n\n\nb\n    \nc\n",
    "spaces at line ends": "a  \nb\t\nc\n",
    "line ends of Windows": "a\r\n\tb\r\n",
    "YAML": "a:\n  - b: 1\n    c: |\n      x\n       y\n",
    "table": "| a  | b   |\n|----|-----|\n| 1  | 22  |\n",
}

FORMS = ("é", "ñ", "ü", "Å", "ệ", "ö", "й", "が", "한", "क़")
"""Characters that NFC writes as one and NFD as several (the last: NFC too)."""

WORDS = ("Hello", "the", "data", "Москва", "return", "2024")
EOD_LOOKALIKES = ("<|endoftext|>", "</s>", "<s>", "<eos>", "<pad>", "[SEP]")
