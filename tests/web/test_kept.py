from web.kept import Kept


def test_what_was_used_last_is_kept_as_far_as_there_is_room():
    made: list[str] = []

    def shout(text: str) -> str:
        made.append(text)
        return text.upper()

    kept = Kept(shout, room=40)
    texts = [letter * 5 for letter in "abcd"]
    assert [kept(text) for text in texts * 2] == [text.upper() for text in texts] * 2
    assert made == texts
    kept("aaaaa")
    kept("eeeee")
    assert made == [*texts, "eeeee"]
    kept("aaaaa")
    kept("bbbbb")
    assert made == [*texts, "eeeee", "bbbbb"]


def test_what_has_no_room_is_made_and_not_kept():
    kept = Kept(lambda text: text * 2, room=10)
    assert (kept("a"), kept("b" * 9), kept("a")) == ("aa", "b" * 18, "aa")
