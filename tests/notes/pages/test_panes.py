"""The side of the notes pages: the folder tree and marked text."""

from html import unescape

from hypothesis import given
from hypothesis import strategies as st

from notes.pages.panes import Folder, folder_tree, marked
from notes.selectors import FolderCount


def test_folder_tree_adds_missing_parents_and_counts_what_is_below():
    counts = [
        FolderCount("/", 3),
        FolderCount("/a/b/", 2),
        FolderCount("/a/", 1),
        FolderCount("/B/", 4),
    ]
    assert folder_tree(counts) == [
        Folder("/a/", "a", 0, 3),
        Folder("/a/b/", "b", 1, 2),
        Folder("/B/", "B", 0, 4),
    ]


@given(st.text(alphabet="ab<>&\"'é🎉"), st.lists(st.integers(0, 12), max_size=6))
def test_marked_text_is_escaped_and_only_marks_are_elements(text, edges):
    edges = sorted({min(edge, len(text)) for edge in edges})
    marks = list(zip(edges[::2], edges[1::2], strict=False))
    html = marked(text, marks)
    bare = html.replace("<mark>", "").replace("</mark>", "")
    assert "<" not in bare
    assert unescape(bare) == text
    assert html.count("<mark>") == len(marks)
