"""`manage.py create_token`: a token on standard output, everything else on standard error."""

import io

import pytest
from django.core.management import CommandError, call_command, execute_from_command_line

from accounts.models import ApiToken, User
from accounts.selectors import token_find


def run(*arguments):
    output = io.StringIO()
    call_command("create_token", *arguments, stdout=output)
    return output.getvalue()


def test_command_prints_a_token_and_nothing_else(user):
    printed = run("ada", "--name", "script")
    token = token_find(secret=printed.removesuffix("\n"))
    assert token is not None
    assert (token.owner, token.name) == (user, "script")
    assert token.scopes == ["read", "write", "chat"]


def test_command_gives_the_scopes_that_were_asked_for(user):
    run("ada", "--name", "n", "--scopes", " approve, read,admin")
    assert ApiToken.objects.get().scopes == ["read", "approve", "admin"]


def test_scopes_that_are_given_again_add_up(user):
    run("ada", "--name", "n", "--scopes", "read", "--scopes=approve,read")
    assert ApiToken.objects.get().scopes == ["read", "approve"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("nobody", "--name", "n"), "no user 'nobody'"),
        (("ada", "--name", "n", "--scopes", "read,fly"), "Unknown scope: fly"),
        (("ada", "--name", "n", "--scopes", ","), "at least one scope"),
        (("ada", "--name", " "), "a name of 1 to 100"),
        (("ada", "--name", "x" * 101), "a name of 1 to 100"),
        (("ada",), "--name"),
        (("ada", "--name", "n", "--scope", "read"), "--scope read"),
        (("ada", "--na", "n"), "--name"),
    ],
)
def test_command_says_what_is_wrong_and_makes_nothing(user, arguments, words):
    with pytest.raises(CommandError, match=words):
        run(*arguments)
    assert not ApiToken.objects.exists()


@pytest.mark.parametrize("arguments", [["ada"], ["nobody", "--name", "n"]])
def test_failing_command_prints_nothing_on_standard_output_and_exits_non_zero(
    user, arguments, capsys, monkeypatch
):
    monkeypatch.setattr("django.core.management.base.connections.close_all", lambda: None)
    with pytest.raises(SystemExit) as exited:
        execute_from_command_line(["manage.py", "create_token", *arguments])
    assert exited.value.code != 0
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "error" in printed.err.lower()


@pytest.mark.thorough
@pytest.mark.django_db
def test_createsuperuser_takes_the_environment_of_django(monkeypatch):
    monkeypatch.setenv("DJANGO_SUPERUSER_USERNAME", "root")
    monkeypatch.setenv("DJANGO_SUPERUSER_PASSWORD", "analytical engine")
    monkeypatch.setenv("DJANGO_SUPERUSER_EMAIL", "root@example.org")
    call_command("createsuperuser", "--noinput", verbosity=0)
    user = User.objects.get()
    assert user.is_superuser
    assert user.check_password("analytical engine")
