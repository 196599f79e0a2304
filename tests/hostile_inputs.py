"""Hostile and odd source files, each with the result we chose for it under every `on_error`.

One function makes one family of faults; those of containers are in `hostile_containers`, file names and links in
`hostile_tree`. `write_inputs` puts all files in a folder.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path

from tests.hostile_containers import columns_of_tables, gzip_streams, sizes, zstd_streams
from tests.hostile_entry import HostileInput, accepted, broken, documents, faulty, json_lines, undecodable
from tests.hostile_texts import CHINESE, CODE, ENGLISH, FAMILIES

UTF8 = r"invalid UTF-8 \(byte offset {}\); convert"


def foreign_encodings() -> Iterator[HostileInput]:
    mixed = ENGLISH + CHINESE
    yield accepted("enc/utf8_bom.txt", "UTF-8 mark", "\ufeff" + mixed, [mixed])
    yield accepted("enc/utf8_bom.jsonl", "UTF-8 mark", "\ufeff" + documents("a", "b"), ["a", "b"])
    yield accepted("enc/bom_mid.txt", "U+FEFF inside", f"a\ufeff{CHINESE}\n", [f"a\ufeff{CHINESE}\n"])
    yield broken("enc/utf16le_bom.txt", "UTF-16LE", ("\ufeff" + mixed).encode("utf-16-le"), "not UTF-8 .*UTF-16")
    yield broken("enc/utf16be_bom.jsonl", "UTF-16BE", ("\ufeff" + mixed).encode("utf-16-be"), "not UTF-8 .*UTF-16")
    yield broken("enc/utf16be_nobom.txt", "UTF-16BE, no mark", mixed.encode("utf-16-be"), "not UTF-8 .*UTF-16")
    yield broken("enc/utf16le_ascii.jsonl", "ASCII as UTF-16", documents("x").encode("utf-16-le"), "not UTF-8 .*UTF-16")
    yield broken("enc/utf32le.txt", "UTF-32LE", ("\ufeff" + mixed).encode("utf-32-le"), "not UTF-8 .*UTF-32")
    yield broken("enc/utf32be_nobom.txt", "UTF-32BE, no mark", mixed.encode("utf-32-be"), "not UTF-8 .*UTF-32")
    for codec, text in (
        ("latin1", "Café naïve façade, señor, Ærø, 50 £\n"),
        ("gb18030", CHINESE * 3),
        ("big5", "敏捷的棕色狐狸跳過了懶狗。"),
        ("shift_jis", "すばやい茶色の狐がのろまな犬を飛び越える。"),
    ):
        data = text.encode(codec)
        offset = 3 if codec == "latin1" else r"\d+"
        yield undecodable(f"enc/{codec}.txt", codec, data, UTF8.format(offset), [], [data.decode(errors="replace")])
    mojibake = "â€œSmart quotesâ€\x9d â€“ itâ€™s\n"
    yield accepted("enc/cp1252_mojibake.txt", "valid UTF-8 mojibake", mojibake, [mojibake])


def ill_formed_utf8() -> Iterator[HostileInput]:
    r"""Replacements written by hand: one U+FFFD for each maximal subpart (Unicode 16, section 3.9)."""
    bad = "\ufffd"
    for name, data, offset, mended in (
        (
            "cp1252_quotes",
            b"\x93Smart\x94 \x96 it\x92s 100\x80 \x85\n",
            0,
            f"{bad}Smart{bad} {bad} it{bad}s 100{bad} {bad}\n",
        ),
        (
            "stray",
            b"ok \xff\xfe bad \xc3\x28 \xe2\x82 \xf0\x9f\x98 end",
            3,
            f"ok {bad}{bad} bad {bad}( {bad} {bad} end",
        ),
        ("overlong", b"slash \xc0\xaf nul \xc0\x80 \xe0\x80\xaf", 6, f"slash {bad * 2} nul {bad * 2} {bad * 3}"),
        ("surrogates", b"cesu \xed\xa0\xbd\xed\xb8\x80", 5, "cesu " + bad * 6),
        ("beyond_10ffff", b"\xf4\x90\x80\x80 \xf8\x88\x80\x80\x80\n", 0, f"{bad * 4} {bad * 5}\n"),
        ("truncated_tail", CHINESE.encode()[:-1], 36, CHINESE[:-1] + bad),
    ):
        yield undecodable(f"enc/{name}.txt", name, data, UTF8.format(offset), [], [mended])
    nul = "before\0after\0\0\n" + ENGLISH
    yield accepted("enc/nul_bytes.txt", "NUL bytes are text", nul, [nul])


def line_ends() -> Iterator[HostileInput]:
    mixed = "a\nb\r\nc\rd\x0be\x0cf\x85g\u2028h\u2029i\n"
    in_json = "par\u2028sep\u2029nel\u0085vt end"
    yield accepted("eol/crlf.txt", "CRLF, a document a file", "one\r\n\r\n" + CHINESE, ["one\r\n\r\n" + CHINESE])
    yield accepted("eol/cr_only.txt", "CR only", "old mac\rtwo\r", ["old mac\rtwo\r"], txt_document="line")
    yield accepted("eol/mixed.txt", "all line breaks", mixed, [mixed])
    by_line = ["a", "b", "c\rd\x0be\x0cf\x85g\u2028h\u2029i"]
    yield accepted("eol/mixed_lines.txt", "only LF and CRLF end a line", mixed, by_line, txt_document="line")
    yield accepted("eol/no_final_newline.jsonl", "no last LF", documents("x", "y").rstrip("\n"), ["x", "y"])
    yield accepted("eol/crlf.jsonl", "CRLF", documents("x", CHINESE).replace("\n", "\r\n"), ["x", CHINESE])
    yield accepted("eol/u2028_in_json.jsonl", "raw U+2028 in JSON", documents(in_json, "next"), [in_json, "next"])
    blanks = "\n\n" + documents("x") + "\n   \n" + documents("y") + "\n"
    yield accepted("eol/blank_lines.jsonl", "blank lines are no documents", blanks, ["x", "y"])


def empties() -> Iterator[HostileInput]:
    yield accepted("empty/empty.txt", "0 bytes: no document", b"", [])
    yield accepted("empty/empty_lines.txt", "0 bytes: no lines", b"", [], txt_document="line")
    yield accepted("empty/empty.jsonl", "0 bytes: no document", b"", [])
    yield broken("empty/empty.csv", "0 bytes: no header", b"", "no header line")
    yield broken("empty/empty.arrow", "0 bytes", b"", "empty file is not Arrow")
    yield accepted("empty/newline_only.txt", "one document of LFs", "\n\n\n", ["\n\n\n"])
    yield accepted("empty/newline_lines.txt", "three empty documents", "\n\n\n", ["", "", ""], txt_document="line")
    yield accepted("empty/empty.jsonl.gz", "gzip of nothing", gzip.compress(b"", mtime=0), [])
    yield broken("empty/zero_byte.jsonl.gz", "0 bytes are no gzip stream", b"", "an empty file is not a gzip stream")
    yield broken("empty/zero_byte.jsonl.zst", "0 bytes are no zstd stream", b"", "an empty file is not a zstd stream")
    yield accepted("empty/empty_docs.jsonl", "empty texts are kept", documents("", "real", ""), ["", "real", ""])
    whitespace = [" ", "\n\n\t", "\u3000\u3000", "\u00a0\u2003\u200b", "ok"]
    yield accepted("empty/whitespace_docs.jsonl", "so is white space", documents(*whitespace), whitespace)


def json_syntax() -> Iterator[HostileInput]:
    ok = documents("ok")
    for name, bad, error in (
        ("trailing_comma", '{"text":"bad",}\n', "line 2: invalid JSON"),
        ("truncated_line", '{"text":"cut off in the mid', "line 2: invalid JSON"),
        ("concatenated", '{"text":"x"}{"text":"y"}\n', r"line 2: invalid JSON \(.*column 13\)"),
        ("nan", '{"text":"x","score":NaN}\n', "line 2: invalid JSON"),
        ("infinity", '{"text":"x","score":-Infinity}\n', "line 2: invalid JSON"),
        ("beyond_double", '{"text":"x","score":1e999}\n', "line 2: invalid JSON"),
        ("huge_int", '{"text":"x","n":' + "9" * 5000 + "}\n", "line 2: invalid JSON"),
        ("deep_nest", '{"text":"x","meta":' + "[" * 2000 + "]" * 2000 + "}\n", "line 2: invalid JSON"),
        ("raw_control", '{"text":"raw control \x01 in string"}\n', "line 2: invalid JSON"),
        ("single_quotes", "{'text':'x'}\n", "line 2: invalid JSON"),
        ("comment", "// comment\n", "line 2: invalid JSON"),
        ("string", '"just a string"\n', "line 2: not a JSON object"),
        ("number", "123\n", "line 2: not a JSON object"),
        ("null", "null\n", "line 2: not a JSON object"),
        ("array", "[]\n", "line 2: not a JSON object"),
        ("empty_object", "{}\n", "line 2: no text field"),
    ):
        yield faulty(f"jsonl/{name}.jsonl", name, ok + bad, error, ["ok"])
    array = [{"text": "x"}, {"text": "y"}]
    yield broken("jsonl/array_not_lines.jsonl", "an array", json_lines(array), "JSON array, not JSON lines; rewrite")
    yield broken("jsonl/pretty.json", "an array", json.dumps(array, indent=2), "JSON array, not JSON lines; rewrite")
    pretty = json.dumps({"text": "x"}, indent=2)
    yield broken("jsonl/pretty_object.json", "one object over lines", pretty, "is not JSON lines.*rewrite")
    yield accepted("jsonl/lines.json", "JSON lines named .json", documents("x", "y"), ["x", "y"])
    yield accepted("jsonl/bom_mid.jsonl", "mark at a line start, from cat", documents("x") + "\ufeff" + ok, ["x", "ok"])
    bad_line = ok.encode() + b'{"text":"bad \xff\xfe byte"}\n' + ok.encode()
    mended = ["ok", "bad \ufffd\ufffd byte", "ok"]
    yield undecodable(
        "jsonl/invalid_utf8.jsonl", "one bad line", bad_line, "line 2: invalid UTF-8", ["ok", "ok"], mended
    )


def json_values() -> Iterator[HostileInput]:
    ok = documents("ok")
    missing = json_lines({"id": "a"}, {"text": "ok"}, {"content": "other key"})
    yield faulty("jsonl/missing_text.jsonl", "no text", missing, "line 1: no text field .*fields found: id", ["ok"])
    chat = json_lines({"messages": [{"role": "user", "content": "hi"}]}, {"doc": {"text": "nested"}})
    yield faulty("jsonl/nested_text.jsonl", "text below the top", chat, "no text field .*messages", [])
    for name, value, error in (
        ("number", 42, "text is not a string .*a number"),
        ("float", 3.14, "text is not a string .*a number"),
        ("boolean", True, "text is not a string .*a boolean"),
        ("null", None, "null text"),
        ("array", ["a", 7], "text is not a string .*an array"),
        ("object", {"a": 1}, "text is not a string .*an object"),
    ):
        data = ok + json_lines({"text": value})
        yield faulty(f"jsonl/text_is_{name}.jsonl", name, data, f"line 2: {error}", ["ok"])
    yield accepted("jsonl/duplicate_keys.jsonl", "the last counts", '{"text":"first","text":"second"}\n', ["second"])
    extra = json_lines({"text": "x", "": "empty key", "日本": [1, {"text": "inner"}]})
    yield accepted("jsonl/extra_fields.jsonl", "other fields", extra, ["x"])
    escaped = 'tab\t nl\n cr\r nul\0 del\x7f esc\x1b / " \\ end'
    yield accepted("jsonl/escapes.jsonl", "escapes", json.dumps({"text": escaped}).replace("/", r"\/"), [escaped])
    surrogates = rb"""{"text":"\ud83d\ude00"}
{"text":"x\ud83dy"}
{"text":"x\ude00y"}
{"text":"\ude00\ud83d \\ud83d"}
"""
    mended = ["😀", "x\ufffdy", "x\ufffdy", "\ufffd\ufffd \\ud83d"]
    error = "line 2: lone surrogate in a JSON escape; .*replace"
    yield undecodable("jsonl/escaped_surrogates.jsonl", "lone surrogates", surrogates, error, ["😀"], mended)


def ids() -> Iterator[HostileInput]:
    ok = json_lines({"id": "a", "text": "ok"})
    for name, record, error in (
        ("absent", {"text": "x"}, "no id"),
        ("null", {"id": None, "text": "x"}, "no id"),
        ("empty", {"id": "", "text": "x"}, "no id"),
        ("object", {"id": {"a": 1}, "text": "x"}, "id is neither .*an object"),
        ("float", {"id": 1.0, "text": "x"}, "id is neither .*a number"),
        ("boolean", {"id": True, "text": "x"}, "id is neither .*a boolean"),
        ("beyond_64_bits", {"id": 2**64, "text": "x"}, "id is neither .*a number"),
    ):
        data = ok + json_lines(record)
        yield faulty(f"ids/{name}.jsonl", name, data, f"line 2: {error}", ["ok"], id_field="id")
    sound = json_lines(*({"id": value, "text": str(value)} for value in (1, -7, 2**64 - 1, "a/b\\c\n\0")))
    yield accepted(
        "ids/sound.jsonl", "integers, odd strings", sound, ["1", "-7", str(2**64 - 1), "a/b\\c\n\0"], id_field="id"
    )
    twice = json_lines(
        {"id": "same", "text": "first"}, {"id": "same", "text": "second"}, {"id": "same", "text": "first"}
    )
    yield accepted("ids/duplicate.jsonl", "all are kept", twice, ["first", "second", "first"], id_field="id")


def tables() -> Iterator[HostileInput]:
    quotes = (
        'id,text,lang\r\n1,"He said ""hi"", then left",en\r\n2,"line one\nline two, one field",en\r\n'
        f'3,"{CHINESE}",zh\r\n4,unquoted "inner" quote,en\r\n5,,en\r\n'
    )
    texts = ['He said "hi", then left', "line one\nline two, one field", CHINESE, 'unquoted "inner" quote', ""]
    yield accepted("tab/quotes.csv", "quotes, commas and LF in fields", quotes, texts, id_field="id", lang_field="lang")
    ragged = "id,text\n1,a\n2,b,extra\n3\n4,d\n"
    yield faulty(
        "tab/ragged.csv", "ragged", ragged, r"line 3: wrong number of fields \(3, the header has 2\)", ["a", "d"]
    )
    unclosed = 'id,text\n1,a\n"2,unterminated\n3,c\n'
    yield broken("tab/unclosed_quote.csv", "a quote never closed", unclosed, "line 3: wrong quoting.*close the quote")
    yield broken("tab/text_after_quote.csv", "text after a quote", 'text\n"a"b\n', "line 2: wrong quoting")
    yield broken("tab/cr_only.csv", "CR ends no record", "text\ra\r", "line 1: wrong quoting or line end")
    yield broken("tab/semicolon_bom.csv", "semicolons", "\ufeffid;text\n1;a, b\n", "no column 'text', only 'id;text'")
    yield broken("tab/twice.csv", "a column twice", "text,text\na,b\n", "column 'text' stands twice")
    yield accepted("tab/bom.csv", "a mark before the header", "\ufefftext,id\n\na,1\n", ["a"])
    yield accepted("tab/nul.csv", "NUL is text", "id,text\n1,a\0b\n", ["a\0b"])
    bad = b"id,text\n1,a\n2,b\xe9\n"
    yield undecodable("tab/latin1.csv", "one bad cell", bad, "line 3: invalid UTF-8", ["a"], ["a", "b\ufffd"])
    plain = f'id\ttext\n1\ta\\tb "quote\r\n2\t"{CHINESE}"\n'
    yield accepted("tab/plain.tsv", "no quoting in TSV", plain, ['a\\tb "quote', f'"{CHINESE}"'], id_field="id")
    yield faulty("tab/no_id.csv", "an empty id", "id,text\n,a\n2,b\n", "line 2: no id", ["b"], id_field="id")


def texts() -> Iterator[HostileInput]:
    for family, members in FAMILIES.items():
        found = list(members.values())
        yield accepted(f"text/{family}.jsonl", family, documents(*found), found)
        yield accepted(f"text/{family}_escaped.jsonl", family, "\n".join(json.dumps({"text": t}) for t in found), found)
    code = CODE["mixed indentation"]
    yield accepted("text/code_ws.txt", "indentation", code, [code])
    yield broken("text/code_ws.py", "a .py file", code, r"its extension is none of \.jsonl")


FAMILIES_OF_FAULTS = (
    foreign_encodings,
    ill_formed_utf8,
    line_ends,
    empties,
    json_syntax,
    json_values,
    ids,
    tables,
    gzip_streams,
    zstd_streams,
    columns_of_tables,
    sizes,
    texts,
)


def hostile_inputs() -> list[HostileInput]:
    return [entry for family in FAMILIES_OF_FAULTS for entry in family()]


def write_inputs(folder: Path) -> list[HostileInput]:
    """Write every file below `folder`, and return the entries."""
    entries = hostile_inputs()
    for entry in entries:
        path = folder / entry.file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(entry.data)
    return entries
