"""Markdown to safe HTML, whole or while it streams in.

Owns what Markdown may become in a page. Two layers stand between a text and the page: the parser
escapes raw HTML and refuses dangerous links, and what it wrote passes an allow-list. What would
take long to render is bounded: such parts of a text, or all of it, are shown as their source.

A stream is a list of top-level blocks of which only the last can still change. However the text
is cut, the blocks joined are byte for byte what ``render`` makes of the whole. Link references
are off, since a later definition would change blocks that are finished.
"""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import nh3
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.rules_block import StateBlock, blockquote, table
from markdown_it.rules_core import StateCore
from markdown_it.rules_inline import StateInline, link
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name
from pygments.token import STANDARD_TYPES
from pygments.util import ClassNotFound

from web.kept import Kept

#: Longer texts are shown as their source: rendering 5 MB takes seconds.
MAX_RENDERED = 256 * 1024
#: So are texts with more signs that may be markup: each of them costs as much as a line of prose.
MAX_SIGNS = 40_000
SIGNS = "\n|*_`[<>~!&-+#"
#: The last texts up to this length are not rendered again: a transcript is shown many times.
MAX_KEPT = 8 * 1024
#: So many characters are kept in all, texts and what they became: a transcript of a year.
ROOM = 16 * 1024 * 1024
#: The code of a text beyond so many characters is shown without colours.
MAX_HIGHLIGHTED = 32 * 1024
#: A table with more cells is shown as its source: so few characters can stand for so many cells.
MAX_CELLS = 4000
#: Quotes in quotes beyond this are text: each level looks at every line of those below it.
MAX_QUOTES = 6
#: A paragraph with brackets nested deeper has no links: looking for their ends takes seconds.
MAX_BRACKET_DEPTH = 10
#: An open block is rendered again when it grew by this part of itself: never quadratic.
PATIENCE = 16

_formatter = HtmlFormatter(nowrap=True)


def _highlight(code: str, language: str, _attributes: str) -> str:
    if not language:
        return ""
    try:
        return highlight(code, get_lexer_by_name(language, stripnl=False), _formatter)
    except ClassNotFound:
        return ""


def _bounded_link(state: StateInline, silent: bool) -> bool:
    if state.src[state.pos] != "[":
        return False
    # The cache belongs to this paragraph and maps positions, which are never negative.
    if (depth := state.cache.get(-1)) is None:
        depth = state.cache[-1] = _bracket_depth(state.src)
    return depth <= MAX_BRACKET_DEPTH and link(state, silent)


def _bracket_depth(text: str) -> int:
    deepest = depth = 0
    for bracket in re.findall(r"[\[\]]", text):
        depth = depth + 1 if bracket == "[" else max(0, depth - 1)
        deepest = max(deepest, depth)
    return deepest


def _bounded_table(state: StateBlock, first: int, end: int, silent: bool) -> bool:
    before = len(state.tokens)
    if not table(state, first, end, silent):
        return False
    if (
        not silent
        and sum(each.tag in ("th", "td") for each in state.tokens[before:]) > 2 * MAX_CELLS
    ):
        del state.tokens[before:]
        source = state.push(TABLE_SOURCE, "code", 0)
        source.content = state.getLines(first, state.line, state.blkIndent, False)
        source.map = [first, state.line]
    return True


def _bounded_quote(state: StateBlock, first: int, end: int, silent: bool) -> bool:
    depth = state.env.get(_QUOTES, 0)
    if silent or depth >= MAX_QUOTES:
        return silent and blockquote(state, first, end, silent)
    state.env[_QUOTES] = depth + 1
    try:
        return blockquote(state, first, end, silent)
    finally:
        state.env[_QUOTES] = depth


def _tasks(state: StateCore) -> None:
    """The mark at the beginning of a list item, ``[ ]`` or ``[x]``, becomes a box."""
    for item, first, inline in zip(state.tokens, state.tokens[1:], state.tokens[2:], strict=False):
        if (item.type, first.type) != ("list_item_open", "paragraph_open"):
            continue
        if not (mark := _TASK.match(inline.content)):
            continue
        children = inline.children or []
        # Where the brackets are a link or escaped, the text does not begin with them.
        if not children or not children[0].content.startswith(mark[0]):
            continue
        children[0].content = children[0].content.removeprefix(mark[0])
        children.insert(0, Token(TASK, "span", 0, meta={"done": mark[0] != "[ ]"}))


_TASK = re.compile(r"\[[ xX]\](?=\s|$)")
TASK = "task"
DONE, OPEN = "Done:", "To do:"


def _task(
    _renderer: RendererHTML,
    tokens: Sequence[Token],
    index: int,
    _options: OptionsDict,
    _env: EnvType,
) -> str:
    """A box that is drawn by the style sheet, and read out as what it says."""
    if tokens[index].meta["done"]:
        return f'<span class="task done" role="img" aria-label="{DONE}">☑</span>'
    return f'<span class="task" role="img" aria-label="{OPEN}">☐</span>'


#: What is counted while a text is parsed and rendered.
_QUOTES, _HIGHLIGHTED = "quotes", "highlighted"
TABLE_SOURCE = "table_source"


def _cell_open(
    renderer: RendererHTML,
    tokens: Sequence[Token],
    index: int,
    options: OptionsDict,
    _env: EnvType,
) -> str:
    """Alignment as a class: the content security policy forbids inline styles."""
    token = tokens[index]
    if style := token.attrs.pop("style", None):
        token.attrSet("class", str(style).replace("text-align:", "align-"))
    return renderer.renderToken(tokens, index, options, _env)


def _fence(
    renderer: RendererHTML,
    tokens: Sequence[Token],
    index: int,
    options: OptionsDict,
    env: EnvType,
) -> str:
    token = tokens[index]
    if token.info.strip():
        highlighted = env.get(_HIGHLIGHTED, 0) + len(token.content)
        if highlighted > MAX_HIGHLIGHTED:
            token.info = ""
        else:
            env[_HIGHLIGHTED] = highlighted
    return renderer.fence(tokens, index, options, env)


def _parser(**options: Any) -> MarkdownIt:
    parser = MarkdownIt("js-default", {"html": False, "linkify": False, **options})
    parser.disable(["image", "reference"])
    parser.inline.ruler.at("link", _bounded_link)
    parser.block.ruler.at("table", _bounded_table, {"alt": ["paragraph", "reference"]})
    interrupted = ["paragraph", "reference", "blockquote", "list"]
    parser.block.ruler.at("blockquote", _bounded_quote, {"alt": interrupted})
    parser.core.ruler.push(TASK, _tasks)
    parser.add_render_rule(TASK, _task)
    parser.add_render_rule(TABLE_SOURCE, RendererHTML.code_block)
    parser.add_render_rule("fence", _fence)
    parser.add_render_rule("td_open", _cell_open)
    parser.add_render_rule("th_open", _cell_open)
    return parser


_finished = _parser(highlight=_highlight)
_open = _parser()

_alignments = {"align-left", "align-center", "align-right"}
_cleaner = nh3.Cleaner(
    tags={
        *("p", "br", "hr", "h1", "h2", "h3", "h4", "h5", "h6", "strong", "em", "s", "a", "code"),
        *("pre", "span", "blockquote", "ul", "ol", "li"),
        *("table", "thead", "tbody", "tr", "th", "td"),
    },
    attributes={"a": {"href", "title"}, "ol": {"start"}},
    allowed_classes={
        "span": {"task", "done", *filter(None, STANDARD_TYPES.values())},
        "th": _alignments,
        "td": _alignments,
    },
    tag_attribute_values={"span": {"role": {"img"}, "aria-label": {DONE, OPEN}}},
    # What scrolls must be reachable by keyboard.
    set_tag_attribute_values={"pre": {"tabindex": "0"}},
    url_schemes={"http", "https", "mailto"},
    link_rel="noopener noreferrer nofollow",
)


def render(text: str) -> str:
    """The whole text as HTML that is safe to be placed in a page as it is."""
    if is_too_much(text):
        return _source(_normalised(text))
    return _rendered_once(text) if len(text) <= MAX_KEPT else _rendered(text)


def is_too_much(text: str) -> bool:
    """Whether a text is shown as its source, which takes no time."""
    return len(text) > MAX_RENDERED or signs(_normalised(text)) > MAX_SIGNS


def signs(text: str) -> int:
    """How much of a text may be markup."""
    return sum(map(text.count, SIGNS))


def _rendered(text: str) -> str:
    return _cleaner.clean(_finished.render(text))


_rendered_once = Kept(_rendered, room=ROOM)


def _source(text: str) -> str:
    return f'<pre class="source" tabindex="0">{html.escape(text)}{_SOURCE_END}'


_SOURCE_END = "</pre>\n"


def _normalised(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "\N{REPLACEMENT CHARACTER}")


@dataclass(frozen=True, slots=True)
class Block:
    """Block ``index`` is now the first ``keep`` UTF-16 units of what it was, then ``html``.

    Blocks after it, where there are any, are gone.
    """

    index: int
    keep: int
    html: str


class MarkdownStream:
    """Feed it text as it comes; it answers which blocks are new and which changed."""

    def __init__(self) -> None:
        self._index = 0
        self._tail = ""
        self._carriage = ""
        self._fresh = 0
        self._length = 0
        self._signs = 0
        self._shown = ""
        self._whole: list[str] = []
        self._finished: list[str] = []
        self._counted: dict[str, Any] = {}

    @property
    def finished(self) -> str:
        """The HTML of all blocks that can no longer change."""
        return "".join(self._finished)

    @property
    def opened(self) -> Block | None:
        """The block that can still change, as it was last answered, whole."""
        return Block(self._index, 0, self._shown) if self._shown else None

    @property
    def open_length(self) -> int:
        """How much text is rendered again when more comes."""
        return len(self._tail)

    def feed(self, text: str, *, end: bool = False) -> list[Block]:
        """Take more text. With ``end`` nothing is left open, whatever was held back before."""
        self._length += len(text)
        text = self._carriage + text
        self._carriage = "\r" if text.endswith("\r") and not end else ""
        text = _normalised(text.removesuffix(self._carriage))
        self._whole.append(text)
        self._tail += text
        self._signs += signs(text)
        self._fresh += len(text)
        if not end and (not self._fresh or self._fresh * PATIENCE < len(self._tail)):
            return []
        self._fresh = 0
        if self._length > MAX_RENDERED or self._signs > MAX_SIGNS:
            return self._source_block()
        return self._markdown_blocks(end=end)

    def _markdown_blocks(self, *, end: bool) -> list[Block]:
        lines = self._tail.split("\n")
        parser = _finished if end else _open
        tokens = parser.parse(self._tail)
        starts = [i for i, token in enumerate(tokens) if token.level == 0 and token.nesting >= 0]
        if not end and len(starts) > 1 and not _is_apart(lines, tokens, starts):
            starts.pop()
        blocks: list[Block] = []
        for start, stop in pairwise([*starts, len(tokens)]):
            final = end or stop < len(tokens)
            renderer = _finished if final else _open
            counted = self._counted if final else {}
            written = renderer.renderer.render(tokens[start:stop], renderer.options, counted)
            blocks += self._changed(_cleaner.clean(written))
            if final:
                self._finished.append(self._shown)
                self._index += 1
                self._shown = ""
        if end:
            self._tail = ""
        elif starts:
            self._tail = "\n".join(lines[_first_line(tokens[starts[-1]]) :])
        return blocks

    def _source_block(self) -> list[Block]:
        if self._index or not self._shown.startswith('<pre class="source"'):
            self._index = 0
            self._shown = ""
            self._finished = []
        return self._changed(_source("".join(self._whole)))

    def _changed(self, written: str) -> list[Block]:
        if written == self._shown:
            return []
        keep = _common(self._shown, written)
        self._shown, old = written, self._shown
        return [Block(self._index, _utf16(old[:keep]), written[keep:])]


def _is_apart(lines: list[str], tokens: list[Token], starts: list[int]) -> bool:
    """Whether the last block stays one of its own, whatever its line goes on with.

    A line that is not yet whole may still turn out to continue the block before it: a ``*`` below
    a list may become ``**bold**``, a ``2`` may become ``2.``, and what is below a heading with a
    ``|`` in it may make a table of both.
    """
    first, before = _first_line(tokens[starts[-1]]), tokens[starts[-2]].type
    is_table = tokens[starts[-1]].type in ("table_open", TABLE_SOURCE)
    decided_by = first + 1 if is_table else first
    if decided_by < len(lines) - 1 or before in ("hr", "fence"):
        return True
    if before.endswith("list_open") and re.fullmatch(r"\s*\d+[.)]?", lines[-1]):
        return False
    return not lines[first - 1].strip(" \t")


def _first_line(token: Token) -> int:
    return token.map[0] if token.map else 0


def _common(one: str, other: str) -> int:
    """The length of the prefix that both share."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _utf16(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2
