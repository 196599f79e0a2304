"""Texts that break naive readers, normalizers and tokenizers, as documents by name. All must come back exactly."""

from __future__ import annotations

import unicodedata

ENGLISH = "The quick brown fox jumps over the lazy dog. "
CHINESE = "敏捷的棕色狐狸跳过了懒狗。"

EMOJI = {
    "zwj": "👨\u200d👩\u200d👧\u200d👦 🏳️\u200d🌈 👩🏽\u200d💻 🧑🏿\u200d🤝\u200d🧑🏻",
    "flags": "🇨🇳🇺🇸🇯🇵 odd: 🇨🇳🇺",
    "keycaps": "1️⃣ #️⃣ *️⃣",
    "variation selectors": "☺\ufe0e ☺\ufe0f ❤️",
    "tags": "🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f",
    "many": "😀" * 300,
}

_COMPOSED = "\u00c5 \u00e9 \u00f1 \u1ebf \u1ed9 \u01df \u304c \u30ac \ud55c \uac01"
NORMALIZATION = {
    "nfc": unicodedata.normalize("NFC", _COMPOSED),
    "nfd": unicodedata.normalize("NFD", _COMPOSED),
    "compatibility": "ﬁ ① ㎏ ｱｲｳ ＡＢＣ １２３ ² ½ Ⅳ ㍿ ﷺ … ™ ＇",
    "singletons": "\u212a \u212b \u2126 (KELVIN, ANGSTROM, OHM signs)",
    "mark order a": "q\u0307\u0323",
    "mark order b": "q\u0323\u0307",
    "marks": "Z" + "".join(chr(0x300 + i % 112) for i in range(400)) + "algo",
}

RIGHT_TO_LEFT = {
    "arabic": "السلام عليكم ورحمة الله — مرحباً بالعالم 123",
    "hebrew": "שָׁלוֹם עוֹלָם",
    "persian": "می‌خواهم این را بخوانم",
    "bidi controls": "a\u202eevil\u202c b\u2066iso\u2069 c\u200f\u200e\u061c",
    "tatweel": "مـــرحـــبـــا",
    "urdu": "یہ ایک جملہ ہے",
}

SCRIPTS = {
    "thai": "ภาษาไทยเขียนติดกันโดยไม่มีการเว้นวรรคระหว่างคำ" * 8,
    "khmer": "ភាសាខ្មែរសរសេរជាប់គ្នាដោយគ្មានដកឃ្លា" * 8,
    "lao": "ພາສາລາວຂຽນຕິດກັນບໍ່ມີຍະຫວ່າງ" * 8,
    "burmese": "မြန်မာစာသည်စကားလုံးများကြားတွင်အကွာအဝေးမထားဘဲရေးသည်" * 8,
    "tibetan": "བོད་ཡིག་ནི་ཚེག་གིས་བར་མཚམས་བཅད་པ་ཡིན།" * 6,
    "chinese": CHINESE * 60,
    "japanese": "日本語は単語の間に空白を入れずに書きます。" * 30,
    "hindi": "क्षत्रिय श्रृंखला ज़िन्दगी हिन्दी में १२३",
    "tamil": "தமிழ் மொழி ஸ்ரீ",
    "bengali": "বাংলা ক্ষ জ্ঞ",
    "malayalam": "മലയാളം ന്‍ ൻ",
    "sinhala": "සිංහල ක්‍ෂ",
    "rare": "ᏣᎳᎩ ⴰⵎⴰⵣⵉⵖ ߒߞߏ ᠮᠣᠩᠭᠣᠯ ܣܘܪܝܝܐ አማርኛ ქართული Հայերեն ᚠᚢᚦ 𒀀𒁀 𓀀𓂀 𐎀 𝔘𝕟𝕚𝒸𝑜𝒹𝑒 ꦗꦮ ᬩᬮᬶ ᐃᓄᒃᑎᑐᑦ",
}

CJK = {
    "extension b": "𠀀𠮷𡈽𪚥𫝆𬺰𰻝",
    "compatibility ideographs": "\uf914\u7f85 \uf900\u8c48 \u3400",
    "description": "⿰氵每",
    "variation sequences": "葛\U000e0100城 辻\U000e0101",
    "radicals": "⼀一 ⾦金",
    "full width": "ＡＢＣ　，。！？「」『』",
    "traditional and simplified": "後後后 裡里裏 髮发發 干乾幹",
    "bopomofo": "ㄅㄆㄇㄈ ㄓㄨㄥ",
    "hangul jamo": "\u314e\u314f\u3134 \ud55c \u1112\u1161\u11ab",
    "half-width kana": "ｶﾞ ガ ｶﾞｷﾞ ゟ ヿ",
}

INVISIBLE = {
    "zero width": "zero\u200bwidth\u200cjoin\u200der\u2060word\ufeffend",
    "soft hyphen": "soft\u00adhyphen",
    "mongolian separator": "mongolian\u180evowel",
    "spaces": "a\u00a0b\u1680c\u2000d\u2009e\u202ff\u205fg\u3000h",
    "homoglyphs": "раураl vs paypal",
    "grapheme joiner": "a\u034fb",
    "c0 controls": "".join(map(chr, range(1, 32))),
    "c1 controls": "".join(map(chr, range(0x7F, 0xA0))),
    "private use": "\ue000\uf8ff\U000f0000\U0010fffd",
    "noncharacters": "\ufdd0\uffff\U0001ffff\U0010ffff",
    "replacement character": "\ufffd\ufffc\ufff9a\ufffab\ufffb",
    "ansi": "\x1b[31mred\x1b[0m \x07 \x08",
    "unassigned": "\u0378\u0e5f\U0001f8ff\U000e01f0",
}

# fmt: off
_LOOK_ALIKES = [
    "<|endoftext|>", "<|im_start|>system\nYou are<|im_end|>", "<s>", "</s>", "<unk>", "<pad>", "[PAD]", "[CLS]",
    "[SEP]", "[MASK]", "[UNK]", "[INST] x [/INST]", "<<SYS>>", "<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>",
    "<bos>", "<eos>", "<0x0A>", "▁", "Ġ", "Ċ", "##ing", "<|eot_id|>", "<|begin_of_text|>", "<think>", "</think>",
    "<extra_id_0>", "<mask>", "<|endoftext", "|>", "<|ENDOFTEXT|>", "<| endoftext |>", "<|endoftext|><|endoftext|>"
]
# fmt: on
SPECIAL_TOKEN_LOOK_ALIKES = {f"special {text}": f"before {text} after" for text in _LOOK_ALIKES} | {
    "glued": "word<|endoftext|>word",
    "spaced": "<| endoftext |>",
    "full-width": "＜｜endoftext｜＞ <｜begin▁of▁sentence｜>",
    "gpt2 byte alphabet": "".join(
        map(chr, [*range(33, 127), *range(161, 173), *range(174, 256), 32, *range(256, 324)])
    ),
}

LONG_RUNS = {
    "letters": "a" * 20_000,
    "pairs": "ab" * 5_000,
    "ruler": "=" * 4_000,
    "base64": "aGVsbG8gd29ybGQh" * 800,
    "spaces": " " * 3_000 + "x",
    "tabs": "\t" * 500,
    "newlines": "\n" * 1_500 + "x",
    "dots": "." * 3_000,
    "han": "哈" * 3_000,
    "ideographic spaces": "\u3000" * 500,
    "digits": "7" * 3_000,
}

CODE = {
    "mixed indentation": 'def f(x):\n\tif x:\n\t\treturn {\n            "a": 1,\t# tab\n\t}\n    \t  \n    y = 1   \n',
    "markdown": '# 标题\n\n```python\nprint("你好")\n```\n\n| a | b |\n|---|---|\n',
    "tex": "$\\frac{\\partial^2 u}{\\partial t^2} = c^2 \\nabla^2 u$",
    "html": '<p class="x">a &amp; b &lt;c&gt; &#x4f60;&nbsp;</p>',
    "url": "https://例え.jp/パス?q=%E4%BD%A0%E5%A5%BD&a=1#frag user+tag@exämple.com",
    "regex": r"^(?:\p{L}+|\d{1,3})(?!\S)\\\\$",
    "contractions": "I'm you're we've they'll she'd IT'S don’t o'clock",
    "identifiers": "XMLHttpRequest getHTTPResponseCode snake_case_name SCREAMING kebab-case",
    "mixed scripts": "我用Python3写了一个GPT-4o的tokenizer,速度是10x。",
    "minified": '!function(e,t){"object"==typeof exports?module.exports=t():e.x=t()}(this,function(){return 1});',
    "numbers": "0 00 007 1,234,567.89 1.234.567,89 １２３４ ٠١٢٣٤ १२३ 〇一二三 ⅷ 1e-300 0x7fffffff 1_000_000 -0 +1 ½",
    "case": "İstanbul ıI iİ ß SS ſ ﬀ Σσς ǅ ŉ ΐ",
}

ONE_CHARACTER = {
    f"U+{ord(character[0]):04X}": character
    for character in ("a", " ", "\n", "中", "é", "e\u0301", "😀", "\u200b", "\0", "\ufffd", "𠮷")
}

FAMILIES: dict[str, dict[str, str]] = {
    "emoji": EMOJI,
    "normalization": NORMALIZATION,
    "right_to_left": RIGHT_TO_LEFT,
    "scripts": SCRIPTS,
    "cjk": CJK,
    "invisible": INVISIBLE,
    "special_tokens": SPECIAL_TOKEN_LOOK_ALIKES,
    "long_runs": LONG_RUNS,
    "code": CODE,
    "one_character": ONE_CHARACTER,
}
