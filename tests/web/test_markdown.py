"""Markdown: what may come out, and that a stream cut anywhere gives the HTML of the whole."""

import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.effort import growth
from web import markdown
from web.markdown import Block, MarkdownStream, render

PIECES = [
    *("a", "b c", "  ", "    ", "\t", "\n", "\n\n", "\r\n", "\r", "-", "- ", "* ", "*", "**", "_"),
    *("1. ", "2) ", "+ ", "10. ", "# ", "> ", "```", "```python\n", "~~~", "~~", "---", "==="),
    *("|", "|-|-|\n", ":-:", "--|--\n", "a | b\n", "`", "[", "]", "](", "(", "[a](b)", "[a]: /x\n"),
    *("[ ] ", "[x]", "- [X] "),
    *("<b>", "<!--", "&amp;", "\\", "x = 1", "é", "🎉", "\u2028", "\x0b", "\0", "![i](j)"),
]
texts = st.lists(st.sampled_from(PIECES), max_size=40).map("".join)


def applied(blocks: list[Block], shown: list[str] | None = None) -> list[str]:
    """What the page does: it counts UTF-16 units, and drops the blocks after the one it gets."""
    shown = [] if shown is None else shown
    for block in blocks:
        assert block.index <= len(shown)
        old = shown[block.index] if block.index < len(shown) else ""
        kept = old.encode("utf-16-le")[: block.keep * 2].decode("utf-16-le")
        shown[block.index :] = [kept + block.html]
    return shown


def streamed(pieces: list[str]) -> str:
    stream = MarkdownStream()
    shown: list[str] = []
    for piece in pieces:
        applied(stream.feed(piece), shown)
    return "".join(applied(stream.feed("", end=True), shown))


@pytest.mark.thorough
@settings(max_examples=400, deadline=None)
@given(texts, st.lists(st.integers(0, 200), max_size=12))
@example("- a\n**bold**", [5])
@example("- a\n\n  b\n- c", [6, 8])
@example("> a\n-\n- b", [6])
@example("a | b\n--|--\n1 | 2\n\n🎉🎉 x", [3, 9, 20])
@example("one\r\ntwo", [4])
@example("1. a\n\n2. b", [6])
@example("text\n#x", [6])
@example("a\n|b c\n--|--\n_", [9, 12])
@example("# a | b\n--|--\n", [8, 9])
def test_stream_gives_the_html_of_the_whole_however_it_is_cut(text, cuts):
    edges = sorted({0, len(text), *(min(cut, len(text)) for cut in cuts)})
    pieces = [text[a:b] for a, b in zip(edges, edges[1:], strict=False)]
    assert streamed(pieces) == render(text)


@settings(max_examples=150, deadline=None)
@given(texts)
def test_stream_gives_the_html_of_the_whole_character_by_character(text):
    assert streamed(list(text)) == render(text)


def test_finished_blocks_are_never_sent_again():
    stream = MarkdownStream()
    seen: list[int] = []
    for line in ["# One\n", "\n", "Two\n", "\n", "```python\n", "x = 1\n", "```\n", "\n", "end"]:
        seen += [block.index for block in stream.feed(line)]
    assert seen == sorted(seen)
    assert max(seen) == 3


def test_code_is_coloured_only_when_its_block_is_finished():
    stream = MarkdownStream()
    (opened,) = stream.feed("```python\nprint('x')\n")
    assert "print(&#x27;x&#x27;)" in opened.html or "print('x')" in opened.html
    assert "<span" not in opened.html
    closed = applied(stream.feed("```\n\nnext", end=True), [opened.html])
    assert '<span class="nb">print</span>' in closed[0]


def test_long_text_is_shown_as_its_source_whole_and_streamed(monkeypatch):
    monkeypatch.setattr(markdown, "MAX_RENDERED", 40)
    text = "# Title\n\npara & <b>\n\n" + "more 🎉 " * 10
    whole = render(text)
    assert whole.startswith('<pre class="source"')
    assert "<h1>" not in whole
    assert "&amp; &lt;b&gt;" in whole
    for size in (1, 7, 30, 200):
        assert streamed([text[i : i + size] for i in range(0, len(text), size)]) == whole


TO_DO = '<span class="task" role="img" aria-label="To do:">☐</span>'
DONE = '<span class="task done" role="img" aria-label="Done:">☑</span>'


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("- [ ] milk", f"<ul>\n<li>{TO_DO} milk</li>\n</ul>\n"),
        ("- [x] *eggs*", f"<ul>\n<li>{DONE} <em>eggs</em></li>\n</ul>\n"),
        ("1. [X] one\n2. two", f"<ol>\n<li>{DONE} one</li>\n<li>two</li>\n</ol>\n"),
        ("- [ ]", f"<ul>\n<li>{TO_DO}</li>\n</ul>\n"),
        ("- [x]\n  <b>", f"<ul>\n<li>{DONE}\n&lt;b&gt;</li>\n</ul>\n"),
    ],
)
def test_item_of_a_task_list_has_a_box_that_can_be_read_out(text, html):
    assert render(text) == html
    assert streamed(list(text)) == html


def test_items_of_a_loose_and_of_a_nested_list_have_boxes():
    html = render("- [ ] a\n\n  - [x] b\n\n- c [ ] d")
    assert f"<p>{TO_DO} a</p>" in html
    assert f"<li>{DONE} b</li>" in html
    assert "<p>c [ ] d</p>" in html


@pytest.mark.parametrize(
    "text",
    [
        *("[ ] a", "- [x](https://example.org)", "- \\[x] a", "- [y] a", "- [x]a", "- [] a"),
        *("- `[x]` a", "- # [x] a", "- a\n  [x] b", "- &#91;x] a"),
    ],
)
def test_brackets_elsewhere_are_text(text):
    assert "task" not in render(text)
    assert render(text) == streamed(list(text))


HOSTILE = [
    "<script>pwned()</script>",
    "<img src=x onerror=pwned()>",
    "<svg onload=pwned()>",
    '<div onclick="pwned()">x</div>',
    "<iframe srcdoc='<script>pwned()</script>'></iframe>",
    "<a href='javascript:pwned()'>x</a>",
    "[x](javascript:pwned())",
    "[x](JaVaScRiPt:pwned())",
    "[x](java&#x0A;script:pwned())",
    "[x](vbscript:pwned())",
    "[x](data:text/html,<script>pwned()</script>)",
    "<javascript:pwned()>",
    "![x](javascript:pwned())",
    "![x](https://elsewhere.example/p.png)",
    '[x](https://example.org "onmouseover=pwned()")',
    '[x](https://example.org"onmouseover="pwned())',
    "```\"onmouseover='pwned()'\nx\n```",
    "```<img/onerror=pwned()>\nx\n```",
    "`<img src=x onerror=pwned()>`",
    "|<img src=x onerror=pwned()>|b|\n|-|-|\n|<script>pwned()</script>|d|",
    "[x]: javascript:pwned()\n\n[x]",
    "&lt;script&gt;pwned()&lt;/script&gt;",
    "<style>*{display:none}</style>",
    "<form action=/logout/><input name=csrfmiddlewaretoken></form>",
    '<p hx-get="/logout/" id="main" data-x="1">x</p>',
    '- [x] <span role="button" aria-label="Log out">x</span>',
]
TAGS = {
    *("p", "br", "hr", "h1", "h2", "h3", "h4", "h5", "h6", "strong", "em", "s", "a", "code", "pre"),
    *("span", "blockquote", "ul", "ol", "li", "table", "thead", "tbody", "tr", "th", "td"),
}
ATTRIBUTES = {"href", "title", "rel", "class", "start", "tabindex"}
TASK = {"role": {"img"}, "aria-label": {"Done:", "To do:"}}


def assert_harmless(html: str) -> None:
    for name, attributes in re.findall(r"<([a-z0-9]+)((?:\s[^<>]*)?)>", html):
        assert name in TAGS, html
        for attribute, value in re.findall(r'\s([a-zA-Z-]+)="([^"]*)"', attributes):
            assert attribute in ATTRIBUTES or value in TASK[attribute], html
            if attribute == "href":
                assert not re.match(r"(?i)\s*(javascript|vbscript|data):", value), html
        assert not re.sub(r'\s[a-zA-Z-]+="[^"]*"', "", attributes).strip(), html


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_markdown_comes_out_harmless(text):
    assert_harmless(render(text))
    assert "<img" not in render(text)


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_markdown_is_harmless_in_every_part_of_a_stream(text):
    stream = MarkdownStream()
    shown: list[str] = []
    for character in text:
        assert_harmless("".join(applied(stream.feed(character), shown)))
    assert_harmless("".join(applied(stream.feed("", end=True), shown)))


def test_links_keep_their_host_and_lose_their_referrer():
    assert render("[x](https://example.org/a?b=1)") == (
        '<p><a href="https://example.org/a?b=1" rel="noopener noreferrer nofollow">x</a></p>\n'
    )


def test_a_later_definition_does_not_change_an_earlier_block():
    assert "<a" not in render("[x]\n\n[x]: https://example.org")


def test_table_aligns_by_class():
    html = render("a | b\n:-: | -:\n1 | 2")
    assert '<th class="align-center">a</th>' in html
    assert '<td class="align-right">2</td>' in html
    assert "style" not in html


@pytest.mark.thorough
@pytest.mark.parametrize(
    "text",
    [
        "[" * 39_000,
        "![" * 19_000,
        "[](" * 9_500,
        "[[](x " * 9_500,
        "*a" * 39_000,
    ],
    ids=["opening", "images", "links", "mixed", "emphasis"],
)
@pytest.mark.parametrize("last", ["", "]("], ids=["open", "closed once"])
def test_rendering_nested_brackets_takes_time_in_proportion(text, last):
    def rendered(size):
        markdown._rendered_once.clear()
        assert 'class="source"' not in render(text[:size] + last)

    assert growth(rendered, len(text)) < 4


def table_of(columns: int, rows: int, row: str = "") -> str:
    head = "|" + "a |" * columns + "\n|" + "-|" * columns + "\n"
    return head + (row or "|" + "b|" * columns + "\n") * rows


@pytest.mark.thorough
def test_table_of_many_cells_is_shown_as_its_source():
    small, large = table_of(20, 100), table_of(500, 20)
    assert render(small).count("<td>") == 2000
    html = render(f"before\n\n{large}\nafter <b>")
    assert "<td" not in html
    assert f"<code>{large.rstrip()}</code>" in html
    assert html.endswith("<p>after &lt;b&gt;</p>\n")
    assert "<td" not in render(table_of(1000, 30, "x\n"))


def test_table_that_outgrows_its_limit_in_a_stream_becomes_its_source(monkeypatch):
    monkeypatch.setattr(markdown, "MAX_CELLS", 6)
    text = f"one\n{table_of(2, 4)}> two\n\n{table_of(2, 1)}"
    assert streamed(list(text)) == render(text)
    assert "<code>|a |a |" in render(text)
    assert "<td>b</td>" in render(text)


def test_quotes_in_quotes_beyond_the_limit_are_text():
    html = render(">" * 100 + " deep\nlazy")
    assert html.count("<blockquote>") == markdown.MAX_QUOTES
    assert "deep\nlazy" in html


def test_text_full_of_signs_is_shown_as_its_source_whole_and_streamed(monkeypatch):
    monkeypatch.setattr(markdown, "MAX_SIGNS", 20)
    text = "- a\r\n" * 11
    assert render(text).startswith('<pre class="source"')
    assert render("- a\r\n" * 10).startswith("<ul>")
    for size in (1, 7, 30):
        assert streamed([text[i : i + size] for i in range(0, len(text), size)]) == render(text)


def test_code_is_coloured_as_far_as_the_limit_of_the_text_whole_and_streamed(monkeypatch):
    monkeypatch.setattr(markdown, "MAX_HIGHLIGHTED", 30)
    text = "```python\nprint(1)\n```\n\n" * 5 + "- ```python\n  print(2)\n  ```\n"
    assert render(text).count('class="nb">print</span>') == 3
    assert streamed(list(text)) == render(text)


@pytest.mark.thorough
@pytest.mark.parametrize(
    "text",
    [
        table_of(2000, 12),
        table_of(1000, 20_000, "x\n"),
        "> " * 60 + "\n" + "a\n" * 15_000,
        "\n".join(">" * depth + " a" for depth in range(1, 240)),
        "\n".join("  " * depth + "- a" for depth in range(160)),
        "- a\n" * 9_000,
        "[a](b) " * 4_000,
        "<http://a.b> " * 3_000,
        "[^1]: a\n\n" * 4_000,
        "".join("`" * length + " " for length in range(1, 240)),
        "word " * 8_000,
        "```python\nx = (1)\n```\n\n" * 1_500,
    ],
    ids=[
        *("wide table", "short rows", "lazy quotes", "quotes", "lists", "flat list"),
        *("links", "autolinks", "footnotes", "backticks", "long line", "code"),
    ],
)
def test_rendering_takes_time_in_proportion(text):
    def rendered(size):
        markdown._rendered_once.clear()
        render(text[:size])

    assert growth(rendered, len(text)) < 4


@pytest.mark.thorough
@pytest.mark.parametrize(
    "text",
    [
        "| name | value |\n|---|--:|\n" + "| some words here | 12345 |\n" * 2_500,
        "- an item of some words\n" * 2_700,
        "```\n" + "x = some + code\n" * 4_000,
        "words " * 11_000,
    ],
    ids=["table", "list", "code", "paragraph"],
)
def test_flushes_of_one_long_block_take_time_in_proportion(text):
    def stream(size):
        blocks = MarkdownStream()
        for position in range(0, size, 20):
            blocks.feed(text[position : position + 20])

    assert growth(stream, 32 * 1024) < 4
